"""``sketchshift certify``: what anybody's centroids cost at most, proved without the data."""

from __future__ import annotations

import click

from sketchshift._text import column_names, counted, nameless_columns, number, rows_in_words
from sketchshift._typing import FloatArray
from sketchshift.cli.assign import read_centroids
from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_sum, sketch_files
from sketchshift.cli.options import where_option
from sketchshift.cli.output import Output
from sketchshift.decoders.certificate import certify as prove
from sketchshift.errors import DataError
from sketchshift.sketch import AnySketch

__all__ = ["certify"]


@command
@click.argument("sketches", nargs=-1, required=True, metavar="SKETCH...")
@click.option(
    "--centroids", required=True, metavar="PATH", help="A table such as `cluster -o` writes."
)
@where_option
def certify(sketches: tuple[str, ...], centroids: str, where: str | None, out: Output) -> None:
    """Prove what centroids cost at most on the rows of SKETCH, without the rows.

    The cost is the mean squared distance of a row to its nearest centroid, in the units of the
    data. The centroids may be anybody's; their columns are those of the sketch, by name. Several
    sketches are merged first. The proof needs sketches that were made with -k and without
    --no-cells.

    Examples
    --------
      sketchshift certify points.sketch --centroids centroids.csv
      sketchshift certify 'points*.sketch' --centroids centroids.csv --json

    Then: `sketchshift cluster points.sketch -k 3`, to see whether others do better.
    """
    sketch = load_sum(sketch_files(sketches), where)
    C = _read(centroids, sketch)
    found = prove(sketch, C)
    k = len(C)
    record = {
        "command": "certify",
        "inputs": list(sketches),
        "centroids": centroids,
        "rows": sketch.count,
        "n_clusters": k,
        "cost_bound": found.cost_bound,
        "confidence": found.confidence,
        "clusters": [
            {"cluster": i, "share": share, "bound": bound}
            for i, (share, bound) in enumerate(
                zip(found.weights.tolist(), found.bounds.tolist(), strict=True)
            )
        ],
    }
    sure = "" if found.confidence == 1.0 else f", with a confidence of {found.confidence:g}"
    line = (
        f"The mean squared distance of {rows_in_words(sketch)} to {counted(k, 'centroid')} is "
        f"proved to be at most {number(found.cost_bound)}{sure}."
    )
    condition = [] if where is None else ["--where", where]
    out.report(record, [line], then=["cluster", *sketches, *condition, "-k", str(k)])


def _read(path: str, sketch: AnySketch) -> FloatArray:
    """The centroids, their columns in the order of the sketch: shape (k, d)."""
    clusters = read_centroids(path)
    names, C = clusters.names, clusters.points
    wanted = list(column_names(sketch.spec))
    if len(names) == len(wanted) and nameless_columns(len(names)) in (names, wanted):
        return C
    missing = [name for name in wanted if name not in names]
    if missing:
        msg = (
            f"{path!r} has no column {missing[0]!r}, which the sketch has. Its columns are "
            f"{', '.join(map(repr, names[:8]))}."
        )
        raise DataError(msg)
    return C[:, [names.index(name) for name in wanted]]
