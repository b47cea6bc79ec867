"""Count which of 120 small faults in the source the tests find.

``draw`` chooses mutations of cosmic-ray by a seed, the same number in each module, and writes them to a file.
``run`` makes each of them in a copy of the package and runs the tests that cover the changed line, the
fastest first, until one fails. ``make mutants`` does both.

usage: python .ci/mutants.py draw --coverage FILE [--seed 0] > mutants.json
       python .ci/mutants.py run mutants.json --coverage FILE --durations JUNIT.xml --python PYTHON
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cosmic_ray.commands.init import _all_work_items
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sketchshift"
# What adds, merges, stores, proves, charges and follows.
MODULES = (
    "sketch/totals.py",
    "sketch/digits.py",
    "sketch/moments.py",
    "sketch/cells.py",
    "sketch/outliers.py",
    "sketch/file.py",
    "sketch/stored.py",
    "sketch/table.py",
    "features/spec.py",
    "decoders/certificate.py",
    "privacy/ledger.py",
    "live/cube_log.py",
)
N_MUTANTS = 120
# Tests of one mutant take at most this long, in seconds, by their times without it.
LONGEST = 60.0
FIRST_TESTS = 40


def spans_of_annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where type annotations start and end: no test can see a fault there."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    parts = [getattr(node, name, None) for node in nodes for name in ("annotation", "returns")]
    return [
        ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))
        for part in parts
        if part is not None
    ]


def tests_of_lines(coverage: Path, module: str) -> dict[int, set[str]]:
    """Map each line of a module to the tests that run it."""
    data = CoverageData(str(coverage))
    data.read()
    (path,) = [name for name in data.measured_files() if name.endswith(f"sketchshift/{module}")]
    return {
        line: {context.rpartition("|")[0] for context in contexts if "::" in context}
        for line, contexts in data.contexts_by_lineno(path).items()
    }


def draw(coverage: Path, seed: int) -> list[dict[str, object]]:
    """Draw positions that some test runs, and one mutation of each."""
    rng = random.Random(seed)
    drawn: list[dict[str, object]] = []
    for module in MODULES:
        tests = tests_of_lines(coverage, module)
        annotations = spans_of_annotations(PACKAGE / module)
        places = defaultdict(list)
        for item in _all_work_items([PACKAGE / module], {}):
            mutation = item.mutations[0]
            place = mutation.start_pos
            hidden = any(start <= place < stop for start, stop in annotations)
            if tests.get(place[0]) and not hidden:
                places[place].append((mutation.operator_name, mutation.occurrence))
        for place in rng.sample(sorted(places), N_MUTANTS // len(MODULES)):
            operator, occurrence = rng.choice(places[place])
            drawn.append(
                {"module": module, "line": place[0], "operator": operator, "number": occurrence}
            )
    return drawn


def seconds_of_tests(junit: list[Path]) -> dict[str, float]:
    """Map names of tests to the times that pytest has reported for them."""
    return {
        f"{case.get('classname')}::{case.get('name')}": float(case.get("time", 0))
        for path in junit
        for case in ET.parse(path).iter("testcase")
    }


def seconds(test: str, known: dict[str, float]) -> float:
    path, _, name = test.partition("::")
    return known.get(f"{path.removesuffix('.py').replace('/', '.')}::{name}", 1.0)


def outcome(mutant: dict[str, object], tests: list[str], python: str) -> str:
    """Run tests on a copy of the package with one mutation; ``killed`` where one fails."""
    module = str(mutant["module"])
    source = (PACKAGE / module).read_text(encoding="utf-8")
    operator = get_operator(mutant["operator"])()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src" / "sketchshift"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        code = mutate_code(source, operator, mutant["number"])
        (copy / module).write_text(code, encoding="utf-8")
        bare = os.environ | {"PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        for some in (tests[:FIRST_TESTS], tests[FIRST_TESTS:]):
            if some:
                names = Path(folder) / "tests"
                names.write_text("\n".join(some), encoding="utf-8")
                words = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"@{names}"]
                words += ["--tier", "all", "--timeout", "240"]
                try:
                    done = subprocess.run(
                        words, cwd=ROOT, env=bare, capture_output=True, text=True, timeout=900
                    )
                except subprocess.TimeoutExpired:
                    return "killed (it hangs)"
                if done.returncode:
                    lines = (done.stdout + done.stderr).splitlines()
                    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
                    return f"killed by {failed[0][:120] if failed else lines[-1:]}"
    return "survived"


def run(
    drawn: list[dict[str, object]], coverage: Path, junit: list[Path], python: str, jobs: int
) -> None:
    """Print a line for each mutant, and the share of each module that was killed."""
    known = seconds_of_tests(junit)

    def judge(mutant: dict[str, object]) -> str:
        all_tests = tests_of_lines(coverage, str(mutant["module"]))[int(str(mutant["line"]))]
        tests, total = [], 0.0
        for test in sorted(all_tests, key=lambda test: (seconds(test, known), test)):
            total += seconds(test, known)
            if total > LONGEST and tests:
                break
            tests.append(test)
        said = outcome(mutant, tests, python)
        words = f"{mutant['module']}:{mutant['line']} {mutant['operator']} {mutant['number']}"
        print(f"{words}: {said} ({len(tests)} of {len(all_tests)} tests)", flush=True)
        return said

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(judge, drawn))
    for module in MODULES:
        own = [
            said for mutant, said in zip(drawn, results, strict=True) if mutant["module"] == module
        ]
        print(f"{module}: {sum(s != 'survived' for s in own)} of {len(own)} killed")
    print(f"{sum(s != 'survived' for s in results)} of {len(results)} killed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing, running = commands.add_parser("draw"), commands.add_parser("run")
    for command in (drawing, running):
        command.add_argument("--coverage", type=Path, required=True)
    drawing.add_argument("--seed", type=int, default=0)
    running.add_argument("mutants", type=Path)
    running.add_argument("--durations", type=Path, nargs="+", required=True)
    running.add_argument("--python", default=sys.executable)
    running.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.command == "draw":
        print(json.dumps(draw(given.coverage, given.seed), indent=0))
    else:
        drawn = json.loads(given.mutants.read_text(encoding="utf-8"))
        run(drawn, given.coverage, given.durations, given.python, given.jobs)


if __name__ == "__main__":
    main()
