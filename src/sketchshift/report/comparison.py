"""Two slices side by side: whether the data changed, and which clusters did."""

from __future__ import annotations

from typing import Any

from sketchshift.drift import Comparison, compare
from sketchshift.errors import DataError
from sketchshift.report.subject import Choice, Subject

__all__ = ["compare_slices", "rest_of"]


def rest_of(subject: Subject, choice: Choice) -> Choice:
    """All rows that are not in a choice."""
    others = sorted(set(range(len(subject.sketches))) - set(choice.members))
    if not others:
        raise DataError(f"there are no rows beside {choice.label}. Choose another slice.")
    return Choice("all other rows", None, None, tuple(others))


def compare_slices(subject: Subject, before: Choice, after: Choice, k: int) -> dict[str, Any]:
    """What :func:`sketchshift.compare` says of two choices without common rows.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    before, after : Choice
        Rows that have none in common: the threshold is that of independent ones.
    k : int
        Clusters of both together to report on.

    Returns
    -------
    facts : dict
        A sentence, and the clusters with their shares on both sides.
    """
    if set(before.members) & set(after.members):
        msg = f"{before.label} and {after.label} share rows. Compare slices without common rows."
        raise DataError(msg)
    found = compare(subject.sketch_of(before), subject.sketch_of(after), n_clusters=k)
    clusters = [
        {
            "centroid": change.centroid.tolist(),
            "before": change.share_a,
            "after": change.share_b,
            "verdict": change.verdict,
        }
        for change in found.clusters
    ]
    return {"sentence": _sentence(found, before, after), "clusters": clusters}


def _sentence(found: Comparison, before: Choice, after: Choice) -> str:
    verdict = "differ" if found.drifted else "do not differ more than chance allows"
    return (
        f"{before.label} and {after.label} {verdict}: their sketches are {found.distance:.3g} "
        f"apart, and without drift {found.threshold:.3g} is exceeded in "
        f"{100 * found.false_alarm:g} % of cases (p = {found.p_value:.2g})."
    )
