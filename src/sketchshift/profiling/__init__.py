"""What the columns of a table are, and how its rows become numbers."""

from __future__ import annotations

from sketchshift.profiling.columns import SurveyedColumn
from sketchshift.profiling.survey import Survey, survey
from sketchshift.recipe import Recipe

__all__ = ["Recipe", "Survey", "SurveyedColumn", "survey"]
