"""Pages to look at: a report in one file, and an explorer served to this machine alone."""

from __future__ import annotations

from sketchshift.report.report import report_of, report_on
from sketchshift.report.subject import Subject

__all__ = ["Subject", "report_of", "report_on"]
