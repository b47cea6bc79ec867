"""Errors of workers, found in what an engine reports of them."""

from __future__ import annotations

import pytest

from sketchshift.engines.driver import raise_own_errors
from sketchshift.errors import InvalidRowsError, MissingDependencyError

REPORT = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in read
{last} SQLSTATE: 38000

at org.apache.spark.SomeException
"""


def report(last):
    return RuntimeError(REPORT.format(last=last))


def test_a_workers_own_error_is_raised_with_its_sentence():
    last = "sketchshift.errors.InvalidRowsError: partition 3: row 7\nhas NaN.\n"
    sentence = r"\Apartition 3: row 7\nhas NaN\.\Z"

    with pytest.raises(InvalidRowsError, match=sentence), raise_own_errors(RuntimeError):
        raise report(last)


@pytest.mark.parametrize("module", ["sketchshift", "sklearn.cluster"])
def test_workers_without_the_package_are_told_from_those_that_fail(module):
    last, remedy = f"ModuleNotFoundError: No module named '{module}'\n", "Install sketchshift where"

    with pytest.raises(MissingDependencyError, match=remedy), raise_own_errors(RuntimeError):
        raise report(last)


@pytest.mark.parametrize(
    "last", ["ValueError: not ours\n", "sketchshift.errors.OfALaterVersion: unknown here\n"]
)
def test_other_reports_are_raised_as_they_are(last):
    with pytest.raises(RuntimeError, match="SQLSTATE"), raise_own_errors(RuntimeError):
        raise report(last)
