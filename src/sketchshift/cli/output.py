"""What commands tell and write: facts for people and programs, tables, pictures."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import click

from sketchshift._text import cell, visible, visible_lines
from sketchshift._writing import draft_of
from sketchshift.decoders import Decoding, KCurve
from sketchshift.decoders.choose_k import TOLERANCE, most_clusters
from sketchshift.errors import DataError
from sketchshift.features import Origin, SketchSpec
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch

__all__ = [
    "Targets",
    "aligned",
    "between_commas",
    "check_output",
    "check_suffix",
    "choice_facts",
    "choice_in_words",
    "cluster_facts",
    "cluster_table",
    "column_names",
    "counted",
    "encode_clusters",
    "keys_in_words",
    "left_out",
    "n_columns",
    "next_step",
    "number",
    "promise",
    "quoted",
    "report",
    "rows_in_words",
    "say",
    "sketch_facts",
    "spec_facts",
    "wrote",
]

# The facts a command reports: the same ones to people and to machines.

MIDNIGHT = time_of_day()


def report(facts: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print the facts as one JSON object, or the lines that tell them.

    Parameters
    ----------
    facts : mapping
        Numbers, texts, lists and mappings of them. NaN and infinity become null.
    lines : iterable of str
        The same facts for a person.
    as_json : bool
        Which of the two.
    """
    if as_json:
        say(json.dumps(_finite(facts), allow_nan=False))
        return
    for line in lines:
        say(visible(line))


def say(text: str, *, err: bool = False) -> None:
    """Print text: all that goes to a terminal passes here, and none of it can control one."""
    click.echo(visible_lines(text), err=err)


def spec_facts(spec: SketchSpec) -> dict[str, Any]:
    """What a spec says, defaults included; cheap, without the fingerprint."""
    tilt = None if spec.tilt is None else {"radius": spec.tilt.radius, "cap": spec.tilt.cap}
    return {
        "n_features": spec.n_features,
        "columns": spec.columns,
        "sketch_size": spec.sketch_size,
        "bandwidth": spec.bandwidth,
        "seed": spec.seed,
        "law": spec.law,
        "structured": spec.structured,
        "far_share": spec.far_share,
        "precision": spec.precision,
        "center": spec.center,
        "scale": spec.scale,
        "tilt": tilt,
        "origin": None if spec.origin is None else _origin_facts(spec.origin),
    }


def _origin_facts(origin: Origin) -> dict[str, Any]:
    """Where a plan that may be published comes from; the ledger has its charges."""
    return {"kind": origin.kind, "radius": origin.radius}


def column_names(spec: SketchSpec) -> Sequence[str]:
    """Names of the columns, or their positions in words."""
    return spec.columns or [f"column {i}" for i in range(spec.n_features)]


def sketch_facts(sketch: AnySketch, n_bytes: int) -> dict[str, Any]:
    """What a sketch holds, beside its numbers."""
    facts: dict[str, Any] = {"rows": sketch.count, "total_weight": sketch.total_weight}
    if isinstance(sketch, Sketch):
        facts["left_out"] = sketch.n_invalid
    if isinstance(sketch, PrivateSketch):
        facts |= _privacy_facts(sketch)
    facts |= {"bytes": n_bytes, "fingerprint": sketch.fingerprint}
    return facts | spec_facts(sketch.spec)


def _privacy_facts(sketch: PrivateSketch) -> dict[str, Any]:
    ledger = sketch.ledger
    return {
        "statement": sketch.statement,
        "rows_std": sketch.count_std,
        "epsilon": ledger.epsilon(),
        "delta": ledger.delta,
        "rho": ledger.rho,
        "adjacency": ledger.charges[0].adjacency,
        "rows_per_person": ledger.charges[0].rows_per_person,
        "noise_std": sketch.noise_std,
        "ledger": ledger.to_dict(),
    }


def rows_in_words(sketch: AnySketch) -> str:
    """How many rows there are, or about how many."""
    return sketch.about + counted(sketch.count, "row")


def promise(sketch: AnySketch) -> list[str]:
    """The line that says what a private sketch promises; none of a raw one."""
    return [f"Promise: {sketch.statement}."] if isinstance(sketch, PrivateSketch) else []


def wrote(output: str, sketch: AnySketch, n_bytes: int) -> str:
    """The sentence that says what was written."""
    if not isinstance(sketch, Sketch):
        columns = counted(sketch.spec.n_features, "column")
        promise = f": {sketch.statement}" if isinstance(sketch, PrivateSketch) else ""
        return f"Wrote {output}{promise} x {columns}, in {n_bytes:,} bytes."
    weight = sketch.total_weight
    weighed = f" of total weight {weight:.6g}" if weight != sketch.count else ""
    columns = counted(sketch.spec.n_features, "column")
    rows = counted(sketch.count, "row")
    return f"Wrote {output}: {rows}{weighed} x {columns} in {n_bytes:,} bytes{left_out(sketch)}."


def left_out(sketch: AnySketch) -> str:
    """How many rows were left out, to go on with a sentence; nothing if there are none."""
    n = sketch.n_invalid if isinstance(sketch, Sketch) else 0
    return f", {counted(n, 'row')} left out" if n else ""


def keys_in_words(keys: Sequence[Any]) -> list[str | None]:
    """Keys of the slices, of one column; times as dates, where all of them are midnights."""
    times = [key for key in keys if isinstance(key, datetime)]
    are_dates = all(time.timetz() == MIDNIGHT for time in times)
    shown = (key.date() if are_dates and isinstance(key, datetime) else key for key in keys)
    return [None if key is None else str(key) for key in shown]


def counted(n: int, noun: str) -> str:
    """A number of things: ``"1 row"``, ``"2,000 rows"``."""
    plural = noun if n == 1 else noun + ("es" if noun.endswith("ch") else "s")
    return f"{n:,} {plural}"


def next_step(*arguments: str | Path) -> str:
    """The line that names the command to run next, quoted for a shell."""
    return "Next: sketchshift " + " ".join(quoted(str(argument)) for argument in arguments)


def quoted(word: str) -> str:
    """Double quotes around a condition with single ones: easier to read than what shlex does."""
    is_plain = "'" in word and not any(sign in word for sign in '"$`\\!')
    return f'"{word}"' if is_plain else shlex.quote(word)


def between_commas(values: Sequence[Any]) -> str:
    """Names or numbers as an option takes them; a name that holds a comma in double quotes."""
    names = (f'"{v}"' if isinstance(v, str) and "," in v else str(v) for v in values)
    return ",".join(names)


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Lines of a table: cells padded to the widest of their column, two blanks between.

    Parameters
    ----------
    rows : sequence of rows of str
        All of one length.
    right : bool
        Whether all columns but the first are set flush right, as numbers are.

    Returns
    -------
    lines : list of str
        Without blanks at their ends.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def pad(i: int, cell: str) -> str:
        return cell.rjust(widths[i]) if right and i else cell.ljust(widths[i])

    return ["  ".join(pad(i, cell) for i, cell in enumerate(row)).rstrip() for row in rows]


def number(value: float) -> str:
    """Six significant digits; a dash where there is no number."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# Clusters as a table for people, and as a file for programs.
#
# Takes what a decoder found; hands lines to print and bytes to write. Clusters are numbered
# from 0, heaviest first: as the rows of ``Decoding.centroids``, as labels, and as the marks in
# the pictures.

COLUMNS_SHOWN, CLUSTERS_SHOWN = 8, 40
"""What a table for people holds; files and ``--json`` hold all."""


def check_suffix(flag: str, path: str, suffixes: Sequence[str]) -> str:
    """The suffix of an output, without its dot; one that means no format is misuse."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        known = " or ".join([", ".join(suffixes[:-1]), suffixes[-1]][len(suffixes) < 2 :])
        raise click.UsageError(f"the name after {flag} must end with {known}. Got {path!r}.")
    return suffix[1:]


def cluster_facts(decoding: Decoding) -> list[dict[str, Any]]:
    """One mapping a cluster; floats are those of the decoding, to the last bit."""
    facts: list[dict[str, Any]] = []
    for i, (weight, centroid) in enumerate(
        zip(decoding.weights.tolist(), decoding.centroids.tolist(), strict=True)
    ):
        facts.append({"cluster": i, "share": weight, "centroid": centroid})
        if decoding.covariances is not None:
            facts[-1]["covariance"] = decoding.covariances[i].tolist()
    return facts


def cluster_table(decoding: Decoding, names: Sequence[str]) -> list[str]:
    """Lines for people: number, share and centroid of each cluster.

    Parameters
    ----------
    decoding : Decoding
        What was found.
    names : sequence of str
        Of the columns.

    Returns
    -------
    lines : list of str
        At most ``COLUMNS_SHOWN`` columns and ``CLUSTERS_SHOWN`` clusters; the last line says
        how to see the rest.
    """
    k, d = decoding.centroids.shape
    shown = decoding.centroids[:CLUSTERS_SHOWN, :COLUMNS_SHOWN]
    columns = [_numbers(column.tolist()) for column in shown.T]
    shares = [f"{100 * weight:.1f} %" for weight in decoding.weights[:CLUSTERS_SHOWN]]
    rows = [["cluster", "share", *names[:COLUMNS_SHOWN]]]
    rows += [[str(i), shares[i], *(column[i] for column in columns)] for i in range(len(shown))]
    hidden = [(k - CLUSTERS_SHOWN, "cluster"), (d - COLUMNS_SHOWN, "column")]
    more = " and ".join(f"{counted(n, noun)} more" for n, noun in hidden if n > 0)
    return aligned(rows, right=True) + [f"{more}: -o centroids.csv writes all."] * bool(more)


def encode_clusters(
    decoding: Decoding, names: Sequence[str], kind: str, scale: Sequence[float] = ()
) -> bytes:
    """The clusters as a file.

    Parameters
    ----------
    decoding : Decoding
        What was found.
    names : sequence of str
        Of the columns.
    kind : {"csv", "json", "parquet"}
        Of the file. Tables have the columns "cluster", "share", then those of the data; JSON
        also holds covariances, where there are any. Names that a spreadsheet would take for
        formulas have an apostrophe in front in CSV.
    scale : sequence of float
        Of each column, if they have scales of their own: what distances are measured in. In
        tables, more columns: "x scale" for the column "x".

    Returns
    -------
    data : bytes
        Reading it gives the same floats.
    """
    if kind == "json":
        clusters = {"columns": list(names), "clusters": cluster_facts(decoding)}
        clusters |= {"scale": list(scale)} if scale else {}
        return json.dumps(clusters, indent=1, allow_nan=False).encode() + b"\n"
    if n_columns(names) < len(names):
        scale = scale or [1.0] * len(names)  # said, since names of the data look like scales
    head = ["cluster", "share", *names, *(_scale_name(name) for name in names if scale)]
    if kind == "parquet":
        return _parquet(decoding, head, scale)
    lines: list[list[Any]] = [[cell(name) for name in head]]
    lines += [[f["cluster"], f["share"], *f["centroid"], *scale] for f in cluster_facts(decoding)]
    return "".join(map(_csv_line, lines)).encode()


def n_columns(names: Sequence[str]) -> int:
    """Of the names in a table of centroids, those of the data: scales follow, or do not."""
    d = len(names) // 2
    has_scales = d > 0 and list(names[d:]) == [_scale_name(name) for name in names[:d]]
    return d if has_scales else len(names)


def _csv_line(cells: Sequence[Any]) -> str:
    """A line of CSV; cells with a carriage return are quoted too, as they are not by default."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _scale_name(name: str) -> str:
    """The column that holds the scale of a column."""
    return f"{name} scale"


def _numbers(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as leave the largest six digits."""
    largest = max(map(abs, values), default=0.0)
    if not 1e-3 <= largest < 1e6:
        return [number(value) for value in values]
    decimals = 5 - math.floor(math.log10(largest))
    return [f"{value:.{decimals}f}" for value in values]


def _parquet(decoding: Decoding, head: Sequence[str], scale: Sequence[float]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    arrays = [pa.array(range(len(decoding.weights)), type=pa.int64())]
    arrays += [pa.array(column) for column in (decoding.weights, *decoding.centroids.T)]
    arrays += [pa.array([width] * len(decoding.weights)) for width in scale]
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_arrays(arrays, names=list(head)), sink)
    return bytes(sink.getvalue().to_pybytes())


# What ``cluster`` writes: a table and a picture, checked before the time is spent.

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
            from sketchshift.plots.plane import require_matplotlib

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


def check_output(output: str, inputs: Sequence[Path] = ()) -> Path:
    """The file to write, symbolic links followed, once it is sure that it can be written.

    Parameters
    ----------
    output : str
        As the user gave it.
    inputs : sequence of Path
        Files that are read; the output must not be one of them.

    Returns
    -------
    target : Path
        Nothing has been written to it yet.
    """
    try:
        target = Path(output).expanduser().resolve()
        if target.exists() and not target.is_file():
            kind = "a folder" if target.is_dir() else "not a regular file"
            raise DataError(f"cannot write {output!r}: it is {kind}. Give the name of a file.")
        if not target.parent.is_dir():
            fact = f"there is no folder {str(target.parent)!r}"
            raise DataError(f"cannot write {output!r}: {fact}. Make it first.")
        with draft_of(target):
            pass
    except OSError as error:
        msg = f"cannot write {output!r}: {error.strerror}. Choose another folder or name."
        raise DataError(msg) from error
    if any(path.resolve() == target for path in inputs):
        msg = f"the output {output!r} is also an input. Write to another file."
        raise click.UsageError(msg)
    return target


# How ``-k auto`` chose the number of clusters: for people, and for programs.

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
