"""Centroids from sketches: as ``ss.plan`` makes them, with cells and without."""

from __future__ import annotations

import time

import sketchshift as ss
from quality.found import Found, Problem


def ours(problem: Problem) -> Found:
    """Waves and cells, nothing to choose."""
    return _decoded(problem, cells=True)


def waves(problem: Problem) -> Found:
    """Waves alone, as many numbers."""
    return _decoded(problem, cells=False)


def _decoded(problem: Problem, cells: bool) -> Found:
    options = {"sketch_size": problem.sketch_size, "seed": problem.seed, "cells": cells}
    times = [time.perf_counter()]
    spec = ss.plan(problem.seen, problem.k, **options)
    times.append(time.perf_counter())
    sketch = ss.sketch(problem.X, spec)
    times.append(time.perf_counter())
    decoding = ss.decode(sketch, problem.k, seed=problem.seed)
    times.append(time.perf_counter())
    facts = {
        f"seconds_{step}": round(times[i + 1] - times[i], 4)
        for i, step in enumerate(("plan", "pass", "decode"))
    }
    if decoding.trust is not None:
        facts |= {"estimate": decoding.cost, "bound": decoding.cost_bound}
        facts |= {"is_good": decoding.trust.is_good, "score": decoding.trust.score}
    return Found(decoding.centroids, sketch.nbytes, facts)
