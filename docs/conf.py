from __future__ import annotations

import sketchshift

project = "sketchshift"
author = "The sketchshift developers"
copyright = "2026, the sketchshift developers"
version = release = sketchshift.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "sketchshift"
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
