"""``sketchshift cluster``: from data or sketches to clusters."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from sketchshift.cli.centroids import check_suffix, cluster_facts, cluster_table, encode_clusters
from sketchshift.cli.command import command
from sketchshift.cli.decoder_options import (
    CLUSTERS,
    DECODER_FLAGS,
    decoder_of,
    decoder_options,
    domain_of,
)
from sketchshift.cli.facts import (
    column_names,
    counted,
    next_step,
    report,
    rows_in_words,
    sketch_facts,
)
from sketchshift.cli.files import check_output
from sketchshift.cli.inputs import Inputs, input_options
from sketchshift.decoders import Decoding, KCurve, Outcome
from sketchshift.sketch import AnySketch

__all__ = ["cluster"]

TABLES, PICTURES = (".csv", ".json", ".parquet"), (".png", ".pdf", ".svg")


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    required=True,
    help="Number k of clusters, or auto: chosen from the sketch.",
)
@click.option("-o", "--output", metavar="PATH", help="Write them (.csv, .json or .parquet).")
@click.option("--plot", metavar="PATH", help="Draw them (.png, .pdf or .svg); needs no data.")
@input_options
@decoder_options
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    help="Seed of the starts. The same sketch and seed give the same centroids.",
)
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress on stderr. Default: only if that is a terminal.",
)
@click.pass_context
def cluster(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    n_clusters: int | Literal["auto"],
    output: str | None,
    plot: str | None,
    progress: bool | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Find k clusters: of data, read once, or of sketches, without the data.

    INPUT is data (.parquet, .csv, .tsv, .arrow, .npy files, folders, quoted globs), which is
    planned for and read once, block by block; or sketches that `sketchshift sketch` wrote,
    which are merged first. Centroids are in the units of the data, heaviest first, numbered
    from 0; shares are those of the rows.

    Examples
    --------
      sketchshift cluster points.csv -k auto -o centroids.csv
      sketchshift cluster 'day*.sketch' -k 3 --plot clusters.png

    Then: `sketchshift cluster week.sketch -k 4`, to compare: a sketch serves any smaller k.
    """
    from sketchshift.cli.progress import decoding_progress

    given = Inputs(ctx, inputs)
    targets = _Targets.of(output, plot, given.files)
    decode = decoder_of(ctx, n_clusters, flags)
    sketch = given.sketch(n_clusters, progress)
    targets.check_names(sketch)
    domain = domain_of(sketch, flags["lower"], flags["upper"])
    start = time.perf_counter()
    with decoding_progress("Decoding", show=progress) as advance:
        decoding = decode(sketch, domain, flags["seed"], advance)
    seconds = time.perf_counter() - start
    targets.write(sketch, decoding)
    facts = {
        "command": "cluster",
        "inputs": [str(file) for file in given.files],
        "output": output,
        "plot": plot,
        "n_clusters": n_clusters,
        "decoder": {name: flags[name] for name in DECODER_FLAGS},
        "seconds": seconds,
        "residual_norm": decoding.residual_norm,
        "outcome": decoding.outcome.name,
        "sentence": str(decoding.outcome),
        "curve": _curve_facts(decoding.curve),
        "clusters": cluster_facts(decoding),
    } | sketch_facts(sketch, sketch.nbytes)
    lines = [*_story(sketch, decoding, seconds), *targets.lines(), _next(ctx, given)]
    report(facts, lines, as_json=as_json)
    if decoding.outcome is not Outcome.COMPLETE:
        click.echo(f"Warning: {_found(decoding)} of {n_clusters}. {decoding.outcome}", err=True)


@dataclass(frozen=True)
class _Targets:
    """The files to write, checked before the time is spent."""

    output: str | None
    plot: str | None
    table: Path | None
    picture: Path | None

    @classmethod
    def of(cls, output: str | None, plot: str | None, inputs: Sequence[Path]) -> _Targets:
        if output is not None:
            check_suffix("-o", output, TABLES)
        if plot is not None:
            from sketchshift.plots.correlation import require_matplotlib

            check_suffix("--plot", plot, PICTURES)
            require_matplotlib()
        table, picture = (
            None if path is None else check_output(path, inputs) for path in (output, plot)
        )
        return cls(output, plot, table, picture)

    def check_names(self, sketch: AnySketch) -> None:
        """Refuse a table with two columns of one name, which few programs can read."""
        twice = sorted({"cluster", "share"} & set(sketch.spec.columns or ()))
        if self.output is not None and twice and not self.output.lower().endswith(".json"):
            msg = (
                f"the data has a column {twice[0]!r}, and {self.output!r} would have two. Write a "
                ".json file, which keeps them apart."
            )
            raise click.UsageError(msg)

    def write(self, sketch: AnySketch, decoding: Decoding) -> None:
        from sketchshift.sketch.container import write_atomically

        if self.output is not None and self.table is not None:
            kind = check_suffix("-o", self.output, TABLES)
            data = encode_clusters(decoding, column_names(sketch.spec), kind)
            write_atomically(self.table, data)
        if self.plot is not None and self.picture is not None:
            from sketchshift.plots import decoding_figure

            drawn = io.BytesIO()
            kind = check_suffix("--plot", self.plot, PICTURES)
            decoding_figure(sketch, decoding).savefig(drawn, format=kind, dpi=150)
            write_atomically(self.picture, drawn.getvalue())

    def lines(self) -> list[str]:
        return [f"Wrote {path}." for path in (self.output, self.plot) if path is not None]


def _story(sketch: AnySketch, decoding: Decoding, seconds: float) -> list[str]:
    rows, columns = rows_in_words(sketch), counted(sketch.spec.n_features, "column")
    return [
        f"{_found(decoding)} in {rows} x {columns}, decoded from {sketch.nbytes:,} bytes in "
        f"{seconds:.2f} s.",
        "",
        *cluster_table(decoding, column_names(sketch.spec)),
        "",
        *_choice(decoding.curve),
        f"Residual norm {decoding.residual_norm:.3g} of the sketch's: 0 if the clusters were "
        "all there is.",
        str(decoding.outcome),
    ]


def _choice(curve: KCurve | None) -> list[str]:
    """How k was chosen: the curve around it."""
    if curve is None:
        return []
    near = range(max(1, curve.chosen - 3), min(len(curve.n_clusters), curve.chosen + 3) + 1)
    scores = ", ".join(f"{k}: {curve.score[k - 1]:.3g}" for k in near)
    most = counted(len(curve.n_clusters), "cluster")
    return [f"Chose k = {curve.chosen} of 1 to {most}, by the {curve.criterion}. Scores  {scores}."]


def _curve_facts(curve: KCurve | None) -> dict[str, Any] | None:
    if curve is None:
        return None
    arrays = {name: getattr(curve, name).tolist() for name in ("n_clusters", "residual", "score")}
    return arrays | {"chosen": curve.chosen, "criterion": curve.criterion}


def _found(decoding: Decoding) -> str:
    return counted(len(decoding.weights), "cluster")


def _next(ctx: click.Context, given: Inputs) -> str:
    """The same command, with what was not asked for yet."""
    if ctx.params["output"] is None:
        more = ["-o", "centroids.csv"]
    elif ctx.params["plot"] is None:
        more = ["--plot", "clusters.png"]
    else:
        return next_step("inspect", given.files[0])
    words = ["cluster", *ctx.params["inputs"]]
    for param in ctx.command.params:
        name, value = str(param.name), ctx.params.get(str(param.name))
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_typed and isinstance(param, click.Option) and name not in _ABOUT_OUTPUT:
            words += _as_typed(param, value)
    return next_step(*words, *more)


_ABOUT_OUTPUT = ("output", "plot", "progress", "as_json", "debug")


def _as_typed(option: click.Option, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    text = ",".join(map(repr, value)) if isinstance(value, tuple) else str(value)
    return [option.opts[0], text]
