"""What ``compare`` and ``watch`` share: their flags, their picture, and how a distance is told."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sketchshift.cli.centroids import check_suffix
from sketchshift.cli.decoder_options import CLUSTERS
from sketchshift.cli.facts import number
from sketchshift.cli.files import check_output
from sketchshift.cli.targets import PICTURES
from sketchshift.drift import Distance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "distance_facts", "drift_options", "percent"]

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-k",
        "--n-clusters",
        type=CLUSTERS,
        default="auto",
        show_default=True,
        help="Number k of clusters to follow, or auto: chosen from the sketches.",
    ),
    click.option(
        "--false-alarm",
        type=click.FloatRange(1e-12, 0.5),
        default=0.01,
        show_default=True,
        help="The rate of alarms without drift; of `watch`, for the whole table.",
    ),
    click.option("--plot", metavar="PATH", help="Draw it (.png, .pdf or .svg); needs no data."),
    click.option(
        "--fail-on-drift", is_flag=True, help="Exit with status 1 if there is drift, for scripts."
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**64 - 1),
        default=0,
        show_default=True,
        help="Seed of the decoder.",
    ),
)


def drift_options(function: F) -> F:
    """Add the flags of both commands."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True)
class Picture:
    """A picture to draw, checked before the time is spent.

    Attributes
    ----------
    plot : str or None
        As typed.
    target : Path or None
        Where it goes.
    """

    plot: str | None
    target: Path | None

    @classmethod
    def of(cls, plot: str | None, inputs: Sequence[Path]) -> Picture:
        """Refuse what cannot be drawn or written."""
        if plot is None:
            return cls(None, None)
        from sketchshift.plots.correlation import require_matplotlib

        check_suffix("--plot", plot, PICTURES)
        require_matplotlib()
        return cls(plot, check_output(plot, inputs))

    def write(self, draw: Callable[[], Figure]) -> list[str]:
        """Draw it, if asked for; the lines that say so."""
        if self.plot is None or self.target is None:
            return []
        from sketchshift._writing import write_atomically

        drawn = io.BytesIO()
        draw().savefig(drawn, format=check_suffix("--plot", self.plot, PICTURES), dpi=150)
        write_atomically(self.target, drawn.getvalue())
        return [f"Wrote {self.plot}."]


def distance_facts(test: Distance) -> dict[str, Any]:
    """The numbers of a test, and what they say."""
    names = Distance.__dataclass_fields__
    return {name: getattr(test, name) for name in names} | {"drifted": test.drifted}


def percent(share: float) -> str:
    """A share of rows, one decimal; a dash where there is none."""
    return f"{100 * share:.1f} %" if share == share else number(share)
