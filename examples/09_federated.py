"""Three sites sketch their own rows with one plan; only files travel, and one site leaves.

Each site is a process of its own that sees its rows and the plan, and writes one sketch. The
coordinator adds the sketches, clusters, and later takes one site out by subtraction: what is left
is, to the bit, what the others would have made without it.

Run: python examples/09_federated.py [folder]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import sketchshift as ss

SITES = ("amsterdam", "bergen", "cadiz")
CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]])


def rows_of(site: str) -> np.ndarray:
    """What a site has and shows to nobody: each sees three of the four clusters."""
    number = SITES.index(site)
    rng = np.random.default_rng(number)
    seen = np.delete(CENTERS, number, axis=0)
    return seen[rng.integers(3, size=20_000)] + 0.3 * rng.normal(size=(20_000, 2))


def agree_on_a_plan(folder: Path) -> None:
    """From public or synthetic rows like those of the sites; here, from the known extent."""
    public = np.random.default_rng(9).uniform(-1.0, 5.0, size=(2000, 2))
    (folder / "plan.json").write_text(ss.plan(public, n_clusters=4).to_json())


def run_site(site: str, folder: Path) -> None:
    """All that happens at a site: a plan comes in, one sketch goes out."""
    plan = ss.SketchSpec.from_json((folder / "plan.json").read_text())
    ss.sketch(rows_of(site), plan).save(folder / f"{site}.sketch")


def coordinate(folder: Path) -> None:
    """Start the sites, add up what they wrote, and let one of them leave."""
    agree_on_a_plan(folder)
    command = [sys.executable, __file__]
    sites = [subprocess.Popen([*command, str(folder), site]) for site in SITES]
    if any(site.wait() for site in sites):
        raise SystemExit("a site failed")

    parts = {site: ss.load(folder / f"{site}.sketch") for site in SITES}
    everybody = sum(parts.values())
    report("all three sites", everybody)

    without = everybody - parts["bergen"]
    assert without == parts["amsterdam"] + parts["cadiz"]  # bit for bit
    report("after bergen left", without)


def report(title: str, sketch: ss.Sketch) -> None:
    """Print the clusters that a sketch shows."""
    print(f"{title}: {sketch.count} rows in {sketch.nbytes} bytes")
    found = ss.decode(sketch, n_clusters=4, seed=0)
    for i in np.lexsort(found.centroids.round().T):
        x, y = found.centroids[i] + 0.0
        print(f"  {found.weights[i]:.2f} of the rows near ({x:.1f}, {y:.1f})")


def main() -> None:
    """The coordinator, or with the name of a site that site."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    if len(sys.argv) > 2:
        run_site(sys.argv[2], folder)
    else:
        coordinate(folder)


if __name__ == "__main__":
    main()
