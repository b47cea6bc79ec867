"""Sites that share no rows
========================

Three sites exchange files only, and one leaves without a trace.

Each site is a process of its own that sees its rows and the plan, and writes one sketch. The
coordinator adds the sketches, clusters, and later takes one site out by subtraction: what is left
is, to the bit, what the others would have made without it. Saves a picture of all sketches.

Run it::

    python examples/09_federated.py [folder]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view

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
    sites = [subprocess.Popen([sys.executable, sys.argv[0], folder, site]) for site in SITES]
    if any(site.wait() for site in sites):
        raise SystemExit("a site failed")

    parts = {site: ss.load(folder / f"{site}.sketch") for site in SITES}
    everybody = sum(parts.values())
    report("all three sites", everybody)

    without = everybody - parts["bergen"]
    others = parts["amsterdam"] + parts["cadiz"]
    assert without == others  # bit for bit
    report("after bergen left", without)
    sums = {"all three": everybody, "all three - bergen": without, "amsterdam + cadiz": others}
    draw(parts | sums, folder)


def report(title: str, sketch: ss.Sketch) -> None:
    """Print the clusters that a sketch shows."""
    print(f"{title}: {sketch.count} rows in {sketch.nbytes} bytes")
    found = ss.decode(sketch, n_clusters=4, seed=0)
    for i in np.lexsort(found.centroids.round().T):
        x, y = found.centroids[i].round(1) + 0.0
        print(f"  {found.weights[i]:.2f} of the rows near ({x:.1f}, {y:.1f})")


def draw(sketches: dict[str, ss.Sketch], folder: Path) -> None:
    """Save what each sketch shows of the rows it was made from."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    for ax, (title, sketch) in zip(figure.subplots(2, 3).flat, sketches.items(), strict=True):
        image, extent = view.correlation_image(sketch, lower=(-1, -1), upper=(5, 5))
        ax.imshow(image, extent=extent, origin="lower")
        ax.set_title(title)
    figure.savefig(folder / "federated.png", dpi=120)
    print(f"the picture: {folder / 'federated.png'}")


def main() -> None:
    """The coordinator, or with the name of a site that site."""
    folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
    if len(sys.argv) > 2:
        run_site(sys.argv[2], folder)
    else:
        coordinate(folder)


if __name__ == "__main__":
    main()
