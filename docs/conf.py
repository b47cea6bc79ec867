from __future__ import annotations

import sys
import warnings
from pathlib import Path

import sketchshift

DOCS = Path(__file__).parent
sys.path.append(str(DOCS))  # command_help, gallery_hooks, mathml
import gallery_hooks  # noqa: E402

project = "sketchshift"
author = "The sketchshift developers"
copyright = "2026, the sketchshift developers"
version = release = sketchshift.__version__

extensions = [
    "command_help",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
copybutton_exclude = ".linenos, .gp, .go"  # what is copied runs: no prompts, no output
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "sketchshift"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# In what a script prints, Spark's word on pandas would come with the paths of this machine.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": gallery_hooks.scripts_to_run(),
    "within_subsection_order": "FileNameSortKey",
    "reset_argv": "gallery_hooks.arguments",
    "image_scrapers": ("gallery_hooks.pictures",),
    "thumbnail_size": (640, 400),
    "notebook_extensions": set(),  # the scripts read their command line
    "download_all_examples": False,
    "write_computation_times": False,
}
