"""Pages to look at: a report in one file, and an explorer served to this machine alone."""

from __future__ import annotations

from sketchshift.report.document import Subject
from sketchshift.report.page import report_of, report_on

__all__ = ["Subject", "report_of", "report_on"]
