"""Results of commands, for people and programs: lines, JSON, tables, pictures."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from datetime import time as time_of_day
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np
from click.core import ParameterSource

import sketchshift
from sketchshift._paths import Place, RemotePath, parse_path
from sketchshift._pictures import draw_picture, require_matplotlib
from sketchshift._text import (
    cell,
    cluster_header,
    counted,
    finite,
    hide_passwords,
    number,
    visible,
    visible_lines,
    without_password,
)
from sketchshift._writing import draft_of, write_atomically
from sketchshift.errors import DataError, Option
from sketchshift.features import Ball, Cells, SketchSpec
from sketchshift.features.plan import cells_in_words, share_of_cells
from sketchshift.sketch import AnySketch, Sketch

if TYPE_CHECKING:
    from sketchshift.cli.inputs import KeyCounts
    from sketchshift.decoders import Decoding, KCurve
    from sketchshift.privacy import PrivateSketch
    from sketchshift.profiling.survey import Survey

__all__ = [
    "CSV",
    "QUERY",
    "RECIPE",
    "ClusterFiles",
    "Output",
    "Picture",
    "align",
    "check_output",
    "check_suffix",
    "cluster_records",
    "cluster_table",
    "count_data_columns",
    "count_hidden",
    "curve_record",
    "decoding_record",
    "describe_choice",
    "describe_file",
    "describe_keys",
    "describe_rows_left_out",
    "describe_survey",
    "describe_trust",
    "encode_clusters",
    "in_shell",
    "join_with_commas",
    "keys_in_words",
    "next_step",
    "note",
    "percent",
    "promise_lines",
    "quote",
    "repeat_command",
    "show_progress",
    "sketch_record",
    "spec_record",
    "survey_record",
    "typed_options",
    "warn_of_outcome",
]


@dataclass(frozen=True)
class Output:
    """Where a command reports its result: to people in lines, to programs as one JSON object.

    All that commands print passes here, and none of it can control a terminal.

    Attributes
    ----------
    as_json : bool
        Whether a program listens.
    """

    as_json: bool

    def report(
        self,
        record: Mapping[str, Any],
        lines: Iterable[str],
        then: Sequence[str | Place] = (),
    ) -> None:
        """Report the complete result.

        Parameters
        ----------
        record : mapping
            For programs: numbers, texts, lists and mappings of them. NaN and infinity become null.
        lines : iterable of str
            The same for people.
        then : sequence of str or Place
            For people: the arguments of the command to run next.
        """
        if self.as_json:
            click.echo(json.dumps(finite(record, hide_passwords), allow_nan=False))
            return
        self.say(*lines, *([next_step(*then)] if then else []))

    def say(self, *lines: str) -> None:
        """Print lines for people, and nothing where a program listens."""
        for line in () if self.as_json else lines:
            click.echo(visible(hide_passwords(line)))


def note(text: str) -> None:
    """Say something beside the result, to people and on stderr."""
    click.echo(visible_lines(hide_passwords(text)), err=True)


def show_progress(
    kind: str, label: str, *, then: str | None = None, show: bool | None = None
) -> AbstractContextManager[Callable[..., None] | None]:
    """A progress line on stderr while the body runs.

    Parameters
    ----------
    kind : {"rows", "fits", "items"}
        What is counted, and so what the body calls: see ``progress``.
    label : str
        What is being done.
    then : str or None
        What is being done from the first rows on, or after the last step; None: the same.
    show : bool or None
        None shows it only where stderr is a terminal.

    Returns
    -------
    context : context manager
        Yields what the body calls with each step; None when nothing is shown.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        return nullcontext()
    from sketchshift._progress import KINDS  # rich takes a while to import

    return KINDS[kind](label, then=then, show=show)


# What is told of specs and sketches.

MIDNIGHT = time_of_day()


def spec_record(spec: SketchSpec) -> dict[str, Any]:
    """What a spec says, defaults included; cheap, without the fingerprint."""
    waves = spec.waves
    return {
        "n_features": spec.n_features,
        "columns": spec.rows.names,
        "sketch_size": spec.sketch_size,
        "bandwidth": None if waves is None else waves.bandwidths,
        "seed": None if waves is None else waves.seed,
        "law": None if waves is None else waves.law,
        "structured": False if waves is None else waves.structured,
        "far_share": 0.0 if waves is None else waves.beyond,
        "precision": None if waves is None else waves.precision,
        "center": spec.rows.center,
        "scale": spec.rows.scale,
        "cells": None if spec.cells is None else _cells_record(spec, spec.cells),
        "origin": None if spec.rows.ball is None else _ball_record(spec.rows.ball),
        **({"families": [name for name, _ in spec.families]} if spec.families else {}),
    }


def _cells_record(spec: SketchSpec, cells: Cells) -> dict[str, Any]:
    """How many cells a plan has, their share of a sketch's numbers, and the rows it saw."""
    return {
        "n_cells": cells.n_cells,
        "share_of_numbers": share_of_cells(spec),
        "rows_seen": cells.n_rows,
        "sentence": cells_in_words(spec),
    }


def _ball_record(ball: Ball) -> dict[str, Any]:
    """Where a plan that may be published comes from; the ledger has its charges."""
    return {"kind": ball.kind, "radius": ball.radius}


def sketch_record(sketch: AnySketch, n_bytes: int) -> dict[str, Any]:
    """What a sketch holds, beside its numbers."""
    record: dict[str, Any] = {"rows": sketch.count, "total_weight": sketch.total_weight}
    if isinstance(sketch, Sketch):
        record["left_out"] = sketch.n_invalid
        record["where"] = _places_record(sketch)
    if isinstance(sketch, sketchshift.privacy.PrivateSketch):
        record |= _privacy_record(sketch)
    record |= {"bytes": n_bytes, "fingerprint": sketch.fingerprint}
    return record | spec_record(sketch.spec)


def _places_record(sketch: Sketch) -> dict[str, Any] | None:
    """Where the rows are, by weight: in cells, beyond them, beyond waves too; None without cells.

    How far they are is told in spreads of the rows that the plan saw.
    """
    if sketch.cells is None:
        return None
    outer, far = sketch.outer, sketch.far
    farthest = np.abs(np.concatenate([outer.means, far.means])).max(initial=0.0)
    return {
        "in_cells": float(sketch.cells.weights.sum()),
        "outer": float(outer.weights.sum()),
        "far": float(far.weights.sum()),
        "farthest": float(farthest),
        "partial": sketch.n_partial,
    }


def _privacy_record(sketch: PrivateSketch) -> dict[str, Any]:
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


def promise_lines(sketch: AnySketch) -> list[str]:
    """The line that says what a private sketch promises; none for a raw one."""
    return (
        [f"Promise: {sketch.statement}."]
        if isinstance(sketch, sketchshift.privacy.PrivateSketch)
        else []
    )


def describe_file(output: str, sketch: AnySketch, n_bytes: int) -> str:
    """The sentence that says which sketch was written where."""
    columns = counted(sketch.spec.n_features, "column")
    if not isinstance(sketch, Sketch):
        promise = (
            f": {sketch.statement}" if isinstance(sketch, sketchshift.privacy.PrivateSketch) else ""
        )
        return f"Wrote {output}{promise} x {columns}, in {n_bytes:,} bytes."
    weight = sketch.total_weight
    total = f" of total weight {weight:.6g}" if weight != sketch.count else ""
    rows = counted(sketch.count, "row") + total
    skipped = describe_rows_left_out(sketch)
    return f"Wrote {output}: {rows} x {columns} in {n_bytes:,} bytes{skipped}."


def survey_record(survey: Survey | None) -> dict[str, Any]:
    """What was chosen of a table; nothing where there was nothing to choose."""
    return {} if survey is None else {"survey": survey.to_dict()}


def describe_survey(survey: Survey | None) -> list[str]:
    """Which columns were taken, which not, and why."""
    return [] if survey is None else survey.lines(in_shell)


def describe_rows_left_out(sketch: AnySketch) -> str:
    """How many rows were left out, to go on with a sentence; nothing if there are none."""
    n = sketch.n_invalid if isinstance(sketch, Sketch) else 0
    return f", {counted(n, 'row')} left out" if n else ""


# Words and tables.


def keys_in_words(keys: Sequence[Any]) -> list[str | None]:
    """Keys of the slices, of one column; times as dates, where all of them are midnights."""
    times = [key for key in keys if isinstance(key, datetime)]
    are_dates = all(time.timetz() == MIDNIGHT for time in times)
    shown = (key.date() if are_dates and isinstance(key, datetime) else key for key in keys)
    return [None if key is None else str(key) for key in shown]


def percent(share: float) -> str:
    """A share of rows, one decimal; a dash where there is none."""
    return f"{100 * share:.1f} %" if share == share else number(share)


def next_step(*arguments: str | Place) -> str:
    """The line that names the command to run next, quoted for a shell, without passwords."""
    words = (without_password(str(argument)) for argument in arguments)
    return "Next: sketchshift " + " ".join(map(quote, words))


def quote(word: str) -> str:
    """Double quotes around a condition with single ones: easier to read than what shlex does."""
    is_plain = "'" in word and not any(sign in word for sign in '"$`\\!')
    return f'"{word}"' if is_plain else shlex.quote(word)


def join_with_commas(values: Sequence[Any]) -> str:
    """Names or numbers as an option takes them; a name that holds a comma in double quotes."""
    names = (f'"{v}"' if isinstance(v, str) and "," in v else str(v) for v in values)
    return ",".join(names)


def align(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
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


def count_hidden(hidden: Mapping[str, int], remedy: str) -> list[str]:
    """The line below a table that says what it leaves out, by noun; none if it is complete."""
    more = " and ".join(f"{counted(n, noun)} more" for noun, n in hidden.items() if n > 0)
    return [f"{more}: {remedy}."] if more else []


# Files to write, checked before the time is spent: a pass of hours must not end in "no such
# folder", and may not replace one of its own inputs.

TABLES, PICTURES = (".csv", ".json", ".parquet"), (".png", ".pdf", ".svg")


def check_suffix(flag: str, path: str, suffixes: Sequence[str]) -> str:
    """The suffix of an output, without its dot; one that means no format is misuse."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        known = " or ".join([", ".join(suffixes[:-1]), suffixes[-1]][len(suffixes) < 2 :])
        raise click.UsageError(f"the name after {flag} must end with {known}. Got {path!r}.")
    return suffix[1:]


def check_output(output: str, inputs: Sequence[Place] = ()) -> Place:
    """The file to write, symbolic links followed, once it is sure that it can be written.

    Parameters
    ----------
    output : str
        As the user gave it.
    inputs : sequence of Place
        Files that are read; the output must not be one of them.

    Returns
    -------
    target : Place
        Nothing has been written to it yet.
    """
    try:
        target = parse_path(output).resolve()
        if isinstance(target, RemotePath):
            target.check_writable()
        elif target.exists() and not target.is_file():
            kind = "a folder" if target.is_dir() else "not a regular file"
            raise DataError(f"cannot write {output!r}: it is {kind}. Give the name of a file.")
        elif not target.parent.is_dir():
            fact = f"there is no folder {str(target.parent)!r}"
            raise DataError(f"cannot write {output!r}: {fact}. Make it first.")
        else:
            with draft_of(target):
                pass
    except OSError as error:
        msg = f"cannot write {output!r}: {error.strerror}. Choose another folder or name."
        raise DataError(msg) from error
    if any(path.resolve() == target for path in inputs):
        msg = f"the output {output!r} is also an input. Write to another file."
        raise click.UsageError(msg)
    return target


@dataclass(frozen=True)
class Picture:
    """A picture to draw, if one was asked for.

    Attributes
    ----------
    name : str or None
        As typed after ``--plot``.
    path : Path or None
        Where it goes.
    """

    name: str | None
    path: Place | None

    @classmethod
    def check(cls, name: str | None, inputs: Sequence[Place]) -> Picture:
        """Refuse what cannot be drawn or written."""
        if name is None:
            return cls(None, None)
        check_suffix("--plot", name, PICTURES)
        require_matplotlib()
        return cls(name, check_output(name, inputs))

    def write(
        self, kind: Literal["comparison", "decoding", "watch"], *arguments: Any, **options: Any
    ) -> list[str]:
        """Draw the picture if it was requested; return status lines."""
        if self.name is None or self.path is None:
            return []
        image = io.BytesIO()
        figure = draw_picture(kind, *arguments, **options)
        figure.savefig(image, format=check_suffix("--plot", self.name, PICTURES), dpi=150)
        write_atomically(self.path, image.getvalue())
        return [f"Wrote {self.name}."]


@dataclass(frozen=True)
class ClusterFiles:
    """What ``cluster`` writes: a table and a picture, each if it was asked for.

    Attributes
    ----------
    output : str or None
        Name of the table, as typed.
    table : Path or None
        Where it goes.
    picture : Picture
        Of the decoding.
    """

    output: str | None
    table: Place | None
    picture: Picture

    @classmethod
    def check(cls, output: str | None, plot: str | None, inputs: Sequence[Place]) -> ClusterFiles:
        """Check all that can be checked without the sketch."""
        if output is not None:
            check_suffix("-o", output, TABLES)
        table = None if output is None else check_output(output, inputs)
        return cls(output, table, Picture.check(plot, inputs))

    def check_columns(self, sketch: AnySketch) -> None:
        """Refuse a table with two columns of one name."""
        twice = sorted({"cluster", "share"} & set(sketch.spec.rows.names or ()))
        if self.output is not None and twice and not self.output.lower().endswith(".json"):
            msg = (
                f"the data has a column {twice[0]!r}, and {self.output!r} would have two. Write a "
                ".json file, which keeps them apart."
            )
            raise click.UsageError(msg)

    def write(self, sketch: AnySketch, decoding: Decoding) -> list[str]:
        """Write what was asked for, each file at once; the lines that say so."""
        lines = []
        if self.output is not None and self.table is not None:
            kind = check_suffix("-o", self.output, TABLES)
            spec = sketch.spec
            made: dict[str, Any] = {}
            scale = spec.rows.scale if isinstance(spec.rows.scale, tuple) else ()
            if spec.rows.recipe is not None:
                made[RECIPE] = spec.rows.recipe.to_list()
            if spec.rows.metric != "euclidean":
                made["metric"] = spec.rows.metric
            data = encode_clusters(decoding, spec.rows.labels, kind, scale, made)
            write_atomically(self.table, data)
            lines = [f"Wrote {self.output}."]
        return lines + self.picture.write("decoding", sketch, decoding)


# Clusters as a table for people, and as a file for programs.
#
# Takes what a decoder found; hands lines to print and bytes to write. Clusters are numbered
# from 0, heaviest first: as the rows of ``Decoding.centroids``, as labels, and as the marks in
# the pictures.

COLUMNS_SHOWN, CLUSTERS_SHOWN, KEYS_SHOWN = 8, 40, 3
"""What a table for people holds; files and ``--json`` hold all."""


def cluster_records(decoding: Decoding) -> list[dict[str, Any]]:
    """One mapping a cluster; floats are those of the decoding, to the last bit."""
    records: list[dict[str, Any]] = []
    for i, (weight, centroid) in enumerate(
        zip(decoding.weights.tolist(), decoding.centroids.tolist(), strict=True)
    ):
        records.append({"cluster": i, "share": weight, "centroid": centroid})
        if decoding.covariances is not None:
            records[-1]["covariance"] = decoding.covariances[i].tolist()
    return records


def cluster_table(decoding: Decoding) -> list[str]:
    """Lines for people: number, share and mean of each cluster, with digits that mean something.

    Parameters
    ----------
    decoding : Decoding
        What was found.

    Returns
    -------
    lines : list of str
        At most ``COLUMNS_SHOWN`` columns, those that differ most between clusters, and
        ``CLUSTERS_SHOWN`` clusters; the last line says how to see the rest.
    """
    profile = decoding.profile
    shown = profile.most_telling(COLUMNS_SHOWN)
    rows = [["cluster", "share", *(profile.titles[j] for j in shown)]]
    for cluster, told in islice(zip(profile.clusters, profile.told, strict=True), CLUSTERS_SHOWN):
        means = [told[j].shown for j in shown]
        rows.append([str(cluster.number), f"{100 * cluster.share:.1f} %", *means])
    hidden = {
        "cluster": len(profile) - CLUSTERS_SHOWN,
        "column": len(profile.titles) - COLUMNS_SHOWN,
    }
    return align(rows, right=True) + count_hidden(hidden, "-o centroids.csv writes all")


RECIPE = "recipe"
"""The last column of a table of centroids whose numbers were made of other columns."""


def encode_clusters(
    decoding: Decoding,
    names: Sequence[str],
    kind: str,
    scale: Sequence[float] = (),
    made: Mapping[str, Any] | None = None,
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
    made : mapping or None
        How rows become numbers, where that is more than their columns: in tables, JSON in the
        first row of one more column, "recipe".

    Returns
    -------
    data : bytes
        Reading it gives the same floats.
    """
    if kind == "json":
        clusters: dict[str, Any] = {"columns": list(names), "clusters": cluster_records(decoding)}
        clusters |= ({"scale": list(scale)} if scale else {}) | dict(made or {})
        return json.dumps(clusters, indent=1, allow_nan=False).encode() + b"\n"
    if count_data_columns(names) < len(names):
        scale = scale or [1.0] * len(names)  # or names of the data would be read as scales
    head = cluster_header(names, has_scales=bool(scale)) + [RECIPE] * bool(made)
    how = [json.dumps(made), *[""] * len(decoding.weights)] if made else []
    if kind == "parquet":
        return _parquet(decoding, head, scale, how)
    lines: list[list[Any]] = [[cell(name) for name in head]]
    for record in cluster_records(decoding):
        i = record["cluster"]
        lines += [[i, record["share"], *record["centroid"], *scale, *how[i : i + 1]]]
    return "".join(map(_csv_line, lines)).encode()


def count_data_columns(names: Sequence[str]) -> int:
    """Of the names in a table of centroids, those of the data: scales follow, or do not."""
    d = len(names) // 2
    has_scales = d > 0 and cluster_header(names[:d], has_scales=True)[2:] == list(names)
    return d if has_scales else len(names)


def _csv_line(cells: Sequence[Any]) -> str:
    """A line of CSV; cells with a carriage return are quoted too, as they are not by default."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _parquet(
    decoding: Decoding, head: Sequence[str], scale: Sequence[float], how: Sequence[str]
) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    arrays = [pa.array(range(len(decoding.weights)), type=pa.int64())]
    arrays += [pa.array(column) for column in (decoding.weights, *decoding.centroids.T)]
    arrays += [pa.array([width] * len(decoding.weights)) for width in scale]
    arrays += [pa.array(how[: len(decoding.weights)])] if how else []
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_arrays(arrays, names=list(head)), sink)
    return bytes(sink.getvalue().to_pybytes())


def describe_keys(keys: KeyCounts | None) -> list[str]:
    """Which slices each cluster's rows are from, where that is not as for all rows."""
    if keys is None:
        return []
    lines = [f"By {keys.by}:"]
    for i, shares in enumerate(keys.shares):
        order = np.argsort(-shares, kind="stable")[:KEYS_SHOWN]
        parts = [
            f"{keys.values[j]} {100 * shares[j]:.0f} % (of all rows {100 * keys.of_all[j]:.0f} %)"
            for j in order
        ]
        lines.append(f"{i}  " + ", ".join(parts))
    return [*lines, ""]


# How far clusters can be trusted.


def decoding_record(decoding: Decoding) -> dict[str, Any]:
    """How a decoding went, what it leaves, and what is known of its cost."""
    trust = None if decoding.trust is None else asdict(decoding.trust)
    return {
        "outcome": decoding.outcome.name,
        "sentence": decoding.sentence,
        "residual_norm": decoding.residual_norm,
        "cost": decoding.cost,
        "cost_bound": decoding.cost_bound,
        "trust": trust,
    }


def describe_trust(decoding: Decoding | None) -> list[str]:
    """The sentence beside clusters that are good; what is wrong with others is told on stderr."""
    return [decoding.sentence] if decoding is not None and decoding.is_good else []


def warn_of_outcome(decoding: Decoding, n_clusters: int | str) -> None:
    """Say on stderr that clusters are fewer than asked for, and why."""
    if decoding.outcome.name != "COMPLETE":
        found = counted(len(decoding.weights), "cluster")
        note(f"Warning: {found} of {n_clusters}. {decoding.outcome}")


# How ``-k auto`` chose the number of clusters: for people, and for programs.


def curve_record(curve: KCurve | None) -> dict[str, Any] | None:
    """The whole curve; None where k was given."""
    if curve is None:
        return None
    arrays = {name: getattr(curve, name).tolist() for name in ("n_clusters", "misfit", "score")}
    return arrays | {
        "explained": (1.0 - curve.inertia).tolist(),
        "chosen": curve.chosen,
        "criterion": curve.criterion,
        "is_natural": curve.is_natural,
        "alternatives": list(curve.alternatives),
    }


def describe_choice(curve: KCurve | None, spec: SketchSpec, *, is_data: bool) -> list[str]:
    """Why there are so many clusters, or that no number is natural; and what else to try.

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
        Sentences, and below them commands that can be pasted.
    """
    if curve is None:
        return []
    k, most = curve.chosen, len(curve.n_clusters)
    if curve.criterion == "distinct points":
        return [f"Chose k = {k}: the rows have {counted(k, 'distinct value')}."]
    if k == 1:
        line = f"The rows are one group: up to {most} clusters would only cut it into pieces."
        return [line, *_describe_alternatives(curve, "What such pieces would show: ")]
    if curve.is_natural:
        line = (
            f"Chose k = {k} of 1 to {most}: fewer clusters would mix groups, more would cut groups "
            "into pieces."
        )
        return [line, *_look_further(curve, spec, is_data=is_data)]
    return [
        f"There is no natural number of clusters up to {most}: more clusters go on explaining "
        f"more. Here is k = {k}.",
        *_describe_alternatives(curve),
        *_look_further(curve, spec, is_data=is_data),
    ]


def _describe_alternatives(curve: KCurve, opening: str = "") -> list[str]:
    """What other numbers of clusters explain, and the commands that show them."""
    others = curve.alternatives
    if not others:
        return []
    shares = [f"{100 * (1.0 - curve.inertia[k - 1]):.0f} %" for k in others]
    told = [f"k = {k} explains {share}" for k, share in zip(others, shares, strict=True)]
    told[0] += " of the variance"
    commands = [f"  {repeat_command('-k', str(k))}" for k in others if k != curve.chosen]
    return [f"{opening}{', '.join(told)}.", *commands]


def _look_further(curve: KCurve, spec: SketchSpec, *, is_data: bool) -> list[str]:
    """How to look at more clusters, where the most have the best score and the curve ends."""
    from sketchshift.decoders.choose_k import most_clusters

    most = len(curve.n_clusters)
    best = int(curve.score.argmin()) + 1
    if best < most or (curve.is_natural and curve.chosen < most - 1):
        return []
    line = f"More than {most} clusters were not looked at."
    if is_data or 2 * most <= most_clusters(spec, None):
        further = repeat_command("-k", "auto", "--max-clusters", str(2 * most))
        return [f"{line} To look further:", f"  {further}"]
    return [f"{line} To look further, sketch the data again with -k {2 * most}."]


CSV, QUERY = "sketchshift.csv", "sketchshift.query"
"""Where a command keeps options that no function is passed."""

_NOT_REPEATED = {"n_clusters", "max_clusters", "output", "plot"}


def repeat_command(*more: str) -> str:
    """The running command as it is typed, with another number of clusters and without files.

    Parameters
    ----------
    *more : str
        Options to add.

    Returns
    -------
    line : str
        Quoted for a shell.
    """
    ctx = click.get_current_context()
    words = [str(ctx.info_name)]
    for param in ctx.command.params:
        if isinstance(param, click.Argument):
            value = ctx.params[str(param.name)]
            words += value if isinstance(value, tuple) else [str(value)]
    words += typed_options(ctx, but=_NOT_REPEATED)
    return " ".join(["sketchshift", *(quote(str(word)) for word in (*words, *more))])


def typed_options(
    ctx: click.Context, only: Container[str] | None = None, but: Iterable[str] = ()
) -> list[str]:
    """The options of a running command that were typed, as they are typed again.

    Parameters
    ----------
    ctx : click.Context
        Of the command.
    only : container of str or None
        Names of the options that another command has as well; None: all.
    but : iterable of str
        Names of those to leave out.

    Returns
    -------
    words : list of str
        Not quoted yet.
    """
    values = ctx.params | {"csv": ctx.meta.get(CSV), "query": ctx.meta.get(QUERY)}
    words: list[str] = []
    for param in ctx.command.params:
        name = str(param.name)
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        is_meant = name not in ("out", *but) and (only is None or name in only)
        if isinstance(param, click.Option) and is_typed and is_meant:
            words += _spell_option(param, values[name])
    return words


def _spell_option(option: click.Option, value: Any) -> list[str]:
    """An option as it is typed."""
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    if option.name == "csv":
        return [word for item in value for word in (option.opts[0], item)]
    text = join_with_commas(value) if isinstance(value, tuple) else str(value)
    return [option.opts[0], text]


def in_shell(advice: Option) -> str:
    """Word an option to pass: for the running command, or for ``plan`` if it has no such option."""
    ctx = click.get_current_context(silent=True)
    words = advice.in_shell()
    flag = words.split()[0]
    is_known = ctx is None or any(flag in param.opts for param in ctx.command.params)
    return words if is_known else f"`sketchshift plan DATA {words}`"
