"""The report: what one decoding says about a sketch or a table, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sketchshift.decoders import Decoding, KCurve, decode
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.decoders.decoding import Progress
from sketchshift.report.document import curve_facts, document, view
from sketchshift.report.page import render
from sketchshift.report.subject import Choice, Subject
from sketchshift.report.trends import trends

__all__ = ["report_of", "report_on"]


def report_on(
    subject: Subject,
    n_clusters: int | Literal["auto"],
    *,
    seed: int = 0,
    commands: Sequence[str] = (),
    progress: Progress | None = None,
) -> tuple[str, Decoding]:
    """Decode all rows of a subject and write the report.

    Parameters
    ----------
    subject : Subject
        With at least as many rows as clusters.
    n_clusters : int or "auto"
        As in :func:`sketchshift.decode`.
    seed : int, default=0
        Of the decoder. The same subject and seed give the same text.
    commands : sequence of str
        Lines that give the same result again.
    progress : callable or None
        Called after each fit of the clusters; the curve over k costs one more decoding.

    Returns
    -------
    text : str
        HTML.
    decoding : Decoding
        The clusters in it.
    """
    decoding = decode(subject.whole, n_clusters, seed=seed, progress=progress)
    curve = decoding.curve
    if curve is None:
        most = max(len(decoding.weights), most_clusters(subject.whole.spec, None))
        curve = decode(subject.whole, "auto", max_clusters=most, seed=seed).curve
    return report_of(subject, subject.choices[0], decoding, curve, commands), decoding


def report_of(
    subject: Subject,
    choice: Choice,
    decoding: Decoding,
    curve: KCurve | None,
    commands: Sequence[str],
) -> str:
    """The report on a decoding that is there already.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    choice : Choice
        The rows that were decoded.
    decoding : Decoding
        Their clusters.
    curve : KCurve or None
        Theirs, for other numbers of clusters.
    commands : sequence of str
        Lines that give the same result again.

    Returns
    -------
    text : str
        HTML.
    """
    sketch = subject.sketch_of(choice)
    facts = document(subject, commands) | {
        "view": view(choice, sketch, decoding),
        "curve": curve_facts(curve),
        "trends": trends(subject, decoding, sketch),
    }
    return render(facts)
