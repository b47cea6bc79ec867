"""How ``-k auto`` chose the number of clusters: for people, and for programs."""

from __future__ import annotations

from typing import Any

from sketchshift.cli.facts import counted
from sketchshift.decoders import KCurve
from sketchshift.decoders.choose_k import TOLERANCE, most_clusters
from sketchshift.features import SketchSpec

__all__ = ["choice_facts", "choice_in_words"]

RULE = f" (the smallest k within {100 * (TOLERANCE - 1):.2g} % of the best score)"


def choice_facts(curve: KCurve | None) -> dict[str, Any] | None:
    """The whole curve; None where k was given."""
    if curve is None:
        return None
    arrays = {name: getattr(curve, name).tolist() for name in ("n_clusters", "residual", "score")}
    return arrays | {"chosen": curve.chosen, "criterion": curve.criterion}


def choice_in_words(curve: KCurve | None, spec: SketchSpec, *, is_data: bool) -> list[str]:
    """The rule and the scores around the choice, and what to do where it lies at the edge.

    Parameters
    ----------
    curve : KCurve or None
        None where k was given: there is nothing to say then.
    spec : SketchSpec
        Of the sketch, which may serve more clusters than were looked at.
    is_data : bool
        Whether the command read data, and would plan for more clusters if asked to.

    Returns
    -------
    lines : list of str
        None, one or two.
    """
    if curve is None:
        return []
    most, is_scored = len(curve.n_clusters), curve.criterion == "residual"
    near = range(max(1, curve.chosen - 3), min(most, curve.chosen + 3) + 1)
    scores = ", ".join(f"{k}: {curve.score[k - 1]:.3g}" for k in near)
    line = (
        f"Chose k = {curve.chosen} of 1 to {counted(most, 'cluster')}, by the {curve.criterion}"
        f"{RULE if is_scored else ''}. Scores  {scores}."
    )
    if not (is_scored and _is_at_edge(curve)):
        return [line]
    is_served = is_data or 2 * most <= most_clusters(spec, None)
    remedy = "Look further with --max-clusters" if is_served else "Sketch the data again with -k"
    return [line, f"This is at the edge: there may be more clusters. {remedy} {2 * most}."]


def _is_at_edge(curve: KCurve) -> bool:
    """Whether the largest k has the best score, and the choice is that one or next to it."""
    last = len(curve.n_clusters)
    return int(curve.score.argmin()) + 1 == last and curve.chosen >= last - 1
