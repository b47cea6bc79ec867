"""What ``cluster`` writes: a table and a picture, checked before the time is spent."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from sketchshift.cli.centroids import check_suffix, encode_clusters
from sketchshift.cli.facts import column_names
from sketchshift.cli.files import check_output
from sketchshift.decoders import Decoding
from sketchshift.sketch import AnySketch

__all__ = ["Targets"]

TABLES, PICTURES = (".csv", ".json", ".parquet"), (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Targets:
    """The files to write, as they were named and where they are.

    Attributes
    ----------
    output, plot : str or None
        As typed.
    plot_columns : tuple of str or None
        Columns to draw over, by name or position.
    table, picture : Path or None
        Where they go.
    """

    output: str | None
    plot: str | None
    plot_columns: tuple[str, ...] | None
    table: Path | None
    picture: Path | None

    @classmethod
    def of(
        cls,
        output: str | None,
        plot: str | None,
        plot_columns: tuple[str, ...] | None,
        inputs: Sequence[Path],
    ) -> Targets:
        """Check all that can be checked without the sketch."""
        if output is not None:
            check_suffix("-o", output, TABLES)
        if plot is not None:
            from sketchshift.plots.correlation import require_matplotlib

            check_suffix("--plot", plot, PICTURES)
            require_matplotlib()
        elif plot_columns is not None:
            raise click.UsageError("--plot-columns says what to draw. Say where, with --plot PATH.")
        table, picture = (
            None if path is None else check_output(path, inputs) for path in (output, plot)
        )
        return cls(output, plot, plot_columns, table, picture)

    @property
    def paths(self) -> list[Path]:
        """Those that will be written."""
        return [path for path in (self.table, self.picture) if path is not None]

    def check_columns(self, sketch: AnySketch) -> None:
        """Refuse columns that are not there, and a table with two columns of one name."""
        self._pair(sketch)
        twice = sorted({"cluster", "share"} & set(sketch.spec.columns or ()))
        if self.output is not None and twice and not self.output.lower().endswith(".json"):
            msg = (
                f"the data has a column {twice[0]!r}, and {self.output!r} would have two. Write a "
                ".json file, which keeps them apart."
            )
            raise click.UsageError(msg)

    def write(self, sketch: AnySketch, decoding: Decoding) -> None:
        """Write what was asked for, each file at once."""
        from sketchshift._writing import write_atomically

        if self.output is not None and self.table is not None:
            kind = check_suffix("-o", self.output, TABLES)
            scale = sketch.spec.scale if isinstance(sketch.spec.scale, tuple) else ()
            data = encode_clusters(decoding, column_names(sketch.spec), kind, scale)
            write_atomically(self.table, data)
        if self.plot is not None and self.picture is not None:
            from sketchshift.plots import decoding_figure

            drawn = io.BytesIO()
            kind = check_suffix("--plot", self.plot, PICTURES)
            figure = decoding_figure(sketch, decoding, columns=self._pair(sketch))
            figure.savefig(drawn, format=kind, dpi=150)
            write_atomically(self.picture, drawn.getvalue())

    def lines(self) -> list[str]:
        """What was written, for people."""
        return [f"Wrote {path}." for path in (self.output, self.plot) if path is not None]

    def _pair(self, sketch: AnySketch) -> list[int] | None:
        """Positions of the columns to draw over."""
        if self.plot_columns is None:
            return None
        names = {name: i for i, name in enumerate(column_names(sketch.spec))}
        positions = {str(i): i for i in range(len(names))}
        found = [(positions | names).get(column, -1) for column in self.plot_columns]
        if len(found) != 2 or len(set(found)) != 2 or -1 in found:
            msg = (
                "--plot-columns must be two different columns, by name or position, among "
                f"{', '.join(map(repr, list(names)[:8]))}. Got {','.join(self.plot_columns)!r}."
            )
            raise click.UsageError(msg)
        return found
