"""The methods, and which single runs there are: method, dataset, size, seed, bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from quality import baselines, sketched
from quality.datasets import RECIPES, WITHOUT_LABELS, Dataset
from quality.found import Found

MULTIPLES = (2, 4, 10, 20)
"""Sketch sizes, in k d."""
SEEDS = (0, 1, 2, 3, 4)
HINDSIGHT_MULTIPLE, HINDSIGHT_SEEDS, HINDSIGHT_CLUSTERS = 10, 2, 20
"""The decoders that need a bandwidth are run at one size, for few seeds and clusters; digits,
with minutes a run, are left out."""


@dataclass(frozen=True)
class Run:
    """One decoding: what is done on which data."""

    dataset: str
    method: str
    multiple: int | None
    seed: int
    bandwidth: float | None = None


@dataclass(frozen=True)
class Method:
    """A way to find centroids.

    Exactly one of the functions is given: of a sketch size m and a seed, of bytes and a seed,
    of a seed alone, or a decoder that needs a bandwidth.
    """

    label: str
    of_size: Callable[[Dataset, int, int], Found] | None = None
    of_bytes: Callable[[Dataset, int, int], Found] | None = None
    of_seed: Callable[[Dataset, int], Found] | None = None
    decoder: sketched.Decode | None = None
    needs_labels: bool = False

    def __call__(self, data: Dataset, run: Run) -> Found:
        """Do it."""
        if self.of_seed is not None:
            return self.of_seed(data, run.seed)
        m = sketch_size(data, run)
        if self.of_size is not None:
            return self.of_size(data, m, run.seed)
        if self.of_bytes is not None:
            return self.of_bytes(data, sketched.planned_sketch(data, m, run.seed).nbytes, run.seed)
        return sketched.at_bandwidth(data, m, run.seed, run.bandwidth, self.decoder)


def _shifted(n_initializations: int, refine: bool) -> Method:
    words = f"Algorithm 2, L = {n_initializations}" + (", refined" if refine else "")
    return Method(words, decoder=sketched.sketch_and_shift(n_initializations, refine))


METHODS = {
    "turnkey": Method("turnkey", of_size=sketched.turnkey),
    "coreset": Method("lightweight coreset", of_bytes=baselines.coreset),
    "uniform": Method("uniform sample", of_bytes=baselines.uniform),
    "algorithm2": _shifted(1000, refine=False),
    "algorithm2-refined": _shifted(1000, refine=True),
    "algorithm2-quick": _shifted(100, refine=False),
    "algorithm2-refined-quick": _shifted(100, refine=True),
    "cl-ompr": Method("CL-OMPR", decoder=sketched.cl_ompr),
    "mini-batch": Method("mini-batch, one pass, file order", of_seed=baselines.mini_batch),
    "mini-batch-sorted": Method(
        "mini-batch, one pass, label order", of_seed=baselines.mini_batch_sorted, needs_labels=True
    ),
    "lloyd": Method("Lloyd, one run", of_seed=baselines.lloyd),
}
QUICK = tuple(name for name in METHODS if name.endswith("-quick"))
SLOW = tuple(name.removesuffix("-quick") for name in QUICK)


def sketch_size(data: Dataset, run: Run) -> int | None:
    """The m of a run; None where there is no sketch and nothing of its size."""
    return None if run.multiple is None else run.multiple * data.k * data.d


def planned(
    datasets: Sequence[str], methods: Sequence[str], multiples: Sequence[int], seeds: Sequence[int]
) -> Iterator[Run]:
    """All runs, dataset by dataset; those that share a sketch follow each other."""
    for dataset in datasets:
        for multiple, seed, name in product(multiples, seeds, methods):
            if METHODS[name].of_size is not None or METHODS[name].of_bytes is not None:
                yield Run(dataset, name, multiple, seed)
        for name in methods:
            yield from _of_any_size(dataset, name, multiples, seeds)


def _of_any_size(
    dataset: str, name: str, multiples: Sequence[int], seeds: Sequence[int]
) -> Iterator[Run]:
    method = METHODS[name]
    if method.of_seed is not None and not (method.needs_labels and dataset in WITHOUT_LABELS):
        for seed in seeds:
            yield Run(dataset, name, None, seed)
    recipe = RECIPES[dataset]
    is_cheap = recipe.k <= HINDSIGHT_CLUSTERS and recipe.group != "further"
    if method.decoder is not None and is_cheap and HINDSIGHT_MULTIPLE in multiples:
        shares = (sketched.SMALL_SHARES if recipe.group == "sipu" else ()) + sketched.SHARES
        for seed, share in product(seeds[:HINDSIGHT_SEEDS], shares):
            yield Run(dataset, name, HINDSIGHT_MULTIPLE, seed, share)
