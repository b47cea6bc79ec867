from __future__ import annotations

import sys
from pathlib import Path

import sketchshift

sys.path.append(str(Path(__file__).parent))  # command_help

project = "sketchshift"
author = "The sketchshift developers"
copyright = "2026, the sketchshift developers"
version = release = sketchshift.__version__

extensions = [
    "command_help",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
copybutton_exclude = ".linenos, .gp, .go"  # what is copied runs: no prompts, no output
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "sketchshift"
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
