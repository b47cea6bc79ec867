from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import sketchshift as ss
from sketchshift.data import open as door
from sketchshift.decoders import decoder
from sketchshift.features import Range, frequencies
from sketchshift.kernels import select
from sketchshift_papers import data as datasets

REGISTRIES = (
    *((door, name) for name in ("_formats", "_engines")),
    (decoder, "DECODERS"),
    (frequencies, "LAWS"),
)
SAMPLES = Path(__file__).parent / "samples"
NOT_HERE = f"a dataset is not in {datasets.data_folder()}: `make data` fetches the public ones"

# the same examples in every run, and no limit of time, which means nothing on shared machines
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background: children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The marks that each tier adds. A test without any of them belongs to `make test`.
TIERS = {
    "quick": (),
    "all": (
        "brokers", "browser", "data", "engines", "prometheus", "rates", "stores", "thorough",
    ),
    "slow": ("slow",),
    "workflows": ("workflows",),
}  # fmt: skip
COMMANDS = {"all": "make test-all", "slow": "make test-slow", "workflows": "make test-workflows"}
LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier", choices=TIERS, default="quick", help="all includes quick; the others stand alone"
    )


def tier_of(item: pytest.Item) -> str:
    """Return the last tier that one of the test's marks belongs to."""
    marks = {mark.name for mark in item.iter_markers()}
    return [tier for tier, own in TIERS.items() if tier == "quick" or marks & set(own)][-1]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen tier, and skip those whose datasets are missing."""
    wanted = config.getoption("tier")
    run = {"quick", "all"} if wanted == "all" else {wanted}
    left_out = [item for item in items if tier_of(item) not in run]
    config.stash[LEFT_OUT].update(map(tier_of, left_out))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if tier_of(item) in run]
    for item in items:
        names = [name for mark in item.iter_markers("data") for name in mark.args]
        missing = [name for name in names if not datasets.is_here(name)]
        if missing:
            item.add_marker(pytest.mark.skip(reason=NOT_HERE))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse test modules that add rows while they are imported: every worker imports all of them."""
    loads = select._load_fastest.cache_info().misses
    report = yield
    if select._load_fastest.cache_info().misses != loads:
        report.outcome = "failed"
        report.longrepr = (
            f"{collector.nodeid} plans or sketches when imported: make a fixture of it."
        )
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts of a worker of pytest-xdist to its controller."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report which tests the other tiers would run."""
    counts = terminalreporter.config.stash[LEFT_OUT]
    for tier, command in COMMANDS.items():
        if counts[tier]:
            terminalreporter.write_line(f"{command} would run {counts[tier]:,} more tests.")
    if counts["quick"]:
        terminalreporter.write_line(f"make test has {counts['quick']:,} others.")


@pytest.fixture(autouse=True)
def forget_what_was_registered() -> Iterator[None]:
    """Formats, engines, decoders and laws as they were, when a test is over."""
    before = [(getattr(*place), getattr(*place).copy()) for place in REGISTRIES]
    yield
    for registry, content in before:
        registry.clear()
        if isinstance(registry, dict):
            registry.update(content)
        else:
            registry.extend(content)


def sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a real dataset that comes with the tests, in part."""
    with np.load(SAMPLES / f"{name}.npz", allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]


@pytest.fixture
def skin() -> np.ndarray:
    """Pixels of faces and of other things: every 25th."""
    return sample("skin")[0].astype(float)


@pytest.fixture(
    params=["every seventh row", pytest.param("all", marks=pytest.mark.data("spectral_mnist"))]
)
def spectral_mnist(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """Ten spectral features of the images of MNIST, and the digits."""
    if request.param == "all":
        return datasets.load("spectral_mnist"), datasets.load_labels("spectral_mnist")
    X, y = sample("spectral_mnist")
    return X.astype(np.float32), y


@pytest.fixture
def set_free(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the bytes of memory that passes believe to have."""
    module = import_module("sketchshift.sketch.slices")
    return lambda n: monkeypatch.setattr(module, "free_memory", lambda: float(n))


@pytest.fixture
def X() -> np.ndarray:
    """A small cloud away from the origin, with unlike columns."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.1] + [5.0, -1.0, 0.3]


SPECS = {
    "plain": ss.SketchSpec(n_features=3, sketch_size=50, bandwidth=0.7),
    "range": ss.SketchSpec(
        n_features=3,
        sketch_size=50,
        bandwidth=Range(0.2, 3.0, 0.15),
        center=(5.0, -1.0, 0.3),
        scale=2.0,
    ),
    "double": ss.SketchSpec(
        n_features=3, sketch_size=33, bandwidth=0.7, law="adapted_radius", precision="float64"
    ),
    "standardised": ss.SketchSpec(
        n_features=3,
        sketch_size=64,
        bandwidth=0.5,
        law="folded_gaussian",
        center=(5.0, -1.0, 0.3),
        scale=(1.0, 2.0, 0.1),
    ),
}


@pytest.fixture(params=list(SPECS))
def spec(request: pytest.FixtureRequest) -> ss.SketchSpec:
    """Every kind of spec there is for three columns."""
    return SPECS[request.param]


@pytest.fixture
def seeded_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases with the noise that OpenDP would add, from a seed, which OpenDP does not take."""
    from sketchshift.privacy import mechanism

    rng, calibrated = np.random.default_rng(0), mechanism._calibrated

    def seeded(sensitivity, budget, share):
        _, scale, rho = calibrated(sensitivity, budget, share)
        return lambda numbers: np.rint(rng.normal(numbers, scale)), scale, rho

    monkeypatch.setattr(mechanism, "_calibrated", seeded)


@pytest.fixture(scope="session")
def central_differences():
    """Derivatives of a function of points by each coordinate, on a new last axis."""

    def derivatives(g, C, h):
        steps = np.eye(C.shape[1]) * h
        return np.stack([(g(C + step) - g(C - step)) / (2 * h) for step in steps], axis=-1)

    return derivatives


PASSWORD = "pass-word-5ecret"


def postgres_programs() -> Path | None:
    """The folder of a PostgreSQL server: of Debian, or of the package pgserver."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = find_spec("pgserver")
    if found is not None and found.origin is not None:
        folders.append(Path(found.origin).parent / "pginstall" / "bin")
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address, with a password, of a server on a socket in a folder of its own."""
    pytest.importorskip("adbc_driver_postgresql", reason="needs adbc-driver-postgresql")
    programs = postgres_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL server here: apt-get install postgresql")
    # a server refuses root, and other users cannot enter the folders of pytest
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    (folder / "password").write_text(PASSWORD)
    as_user: dict[str, object] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    if os.geteuid() == 0:
        owner = "postgres" if str(programs).startswith("/usr/lib") else "nobody"
        shutil.chown(folder, owner)
        shutil.chown(folder / "password", owner)
        as_user |= {"user": owner, "extra_groups": ()}
    data = str(folder / "data")
    make = ["-D", data, "-A", "scram-sha-256", "-U", "owner", "--locale=C", "-E", "UTF8"]
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    start = ["-D", data, "-o", settings, "-l", str(folder / "log"), "-w", "start"]
    try:
        subprocess.run(
            [programs / "initdb", *make, "--pwfile", folder / "password", "--no-sync"], **as_user
        )
        subprocess.run([programs / "pg_ctl", *start], **as_user)
        yield f"postgresql://owner:{PASSWORD}@/postgres?host={folder}"
    finally:
        subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **as_user)
        shutil.rmtree(folder)
