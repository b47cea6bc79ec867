"""Pages to look at: a report in one file, and an explorer served to this machine alone."""

from __future__ import annotations

from sketchshift.errors import find_renamed
from sketchshift.report.document import SketchFile
from sketchshift.report.page import render_report, report_on

__all__ = ["SketchFile", "render_report", "report_on"]

_RENAMED = {"Subject": "SketchFile", "report_of": "render_report"}
"""Old names, until the next version, and what they are now."""


def __getattr__(name: str) -> object:
    """An old name, with a warning."""
    return globals()[find_renamed(__name__, name, _RENAMED)]
