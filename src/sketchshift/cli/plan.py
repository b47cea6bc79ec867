"""``sketchshift plan``: write down the spec that all machines share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sketchshift.cli.command import command
from sketchshift.cli.facts import counted, next_step, number, report, spec_facts
from sketchshift.cli.files import check_output, data_files
from sketchshift.cli.spec_options import build_spec, columns_option, schema_of, spec_options
from sketchshift.features import SketchSpec

__all__ = ["plan"]


@command
@click.argument("data", required=False)
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.json).")
@spec_options
@columns_option
@click.option("--n-features", type=click.IntRange(min=1), help="Number d of columns, without DATA.")
@click.option("--weights", metavar="COLUMN", help="Column of weights, not one of the columns.")
def plan(
    data: str | None,
    output: str,
    columns: tuple[str, ...] | None,
    n_features: int | None,
    weights: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Write the plan that every sketch to be merged must share.

    DATA is a file (.parquet, .csv, .tsv, .arrow, .npy), a folder or a quoted glob; only
    its column names are read. Sketches taken with one plan add up exactly, on whatever
    machine and day they were taken.

    Examples
    --------
      sketchshift plan points.csv -o plan.json --bandwidth 0.3
      sketchshift plan -o plan.json -s 0.3 --bandwidth-high 3 -m 5000 --columns x,y

    Then: `sketchshift sketch points.csv --plan plan.json -o day1.sketch`.
    """
    if flags["bandwidth"] is None:
        raise click.UsageError("give the bandwidth, in the units of the data: --bandwidth 0.3.")
    inputs = [] if data is None else data_files([data])
    target = check_output(output, inputs)
    d, names = _shape(inputs, columns, n_features, weights)
    spec = build_spec(flags, n_features=d, columns=names)
    _write(spec, target)
    facts = {"command": "plan", "output": output, "fingerprint": spec.fingerprint}
    step = next_step("sketch", data or "DATA", "--plan", output, "-o", "day1.sketch")
    report(facts | spec_facts(spec), [_wrote(output, spec), step], as_json=as_json)


def _shape(
    files: Sequence[Path],
    columns: tuple[str, ...] | None,
    n_features: int | None,
    weights: str | None,
) -> tuple[int, tuple[str, ...] | None]:
    """Number and names of the columns: from the data, or from the flags alone."""
    if files and n_features is not None:
        msg = "give DATA or --n-features, not both: the data says how many columns there are."
        raise click.UsageError(msg)
    if files:
        return schema_of(files[0], columns, weights)
    if n_features is None and columns is None:
        msg = "give DATA to take its columns, or --columns, or --n-features."
        raise click.UsageError(msg)
    if n_features is not None:
        return n_features, columns
    assert columns is not None
    return len(columns), columns


def _write(spec: SketchSpec, target: Path) -> None:
    from sketchshift.sketch.format import write_atomically

    write_atomically(target, spec.to_json().encode() + b"\n")


def _wrote(output: str, spec: SketchSpec) -> str:
    shown = spec.bandwidth if isinstance(spec.bandwidth, tuple) else (spec.bandwidth,)
    bandwidth = " to ".join(map(number, shown))
    return (
        f"Wrote {output}: {counted(spec.n_features, 'column')}, m = {spec.sketch_size:,}, "
        f"bandwidth {bandwidth}, seed {spec.seed}, fingerprint {spec.fingerprint[:8]}."
    )
