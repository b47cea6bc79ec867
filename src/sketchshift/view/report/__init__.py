"""Pages to look at: a report in one file, and an explorer served to this machine alone."""

from __future__ import annotations

from sketchshift.view.report.document import SketchFile
from sketchshift.view.report.page import render_report, report_on

__all__ = ["SketchFile", "render_report", "report_on"]
