"""The release: one joint vector of noisy integers, and nothing else of the raw sketch.

Symbols
-------
m         frequencies
Q         2**22, what a cosine of 1 adds to a total
kappa     scale of the noise for each unit of sensitivity: scale / (sqrt(m) Q)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sketchshift._typing import IntArray
from sketchshift._validation import check_flag, parameter_error
from sketchshift.errors import PrivacyError, PrivacyWarning, warn
from sketchshift.features import Ball, Charge, SketchSpec
from sketchshift.kernels import BITS
from sketchshift.privacy.ledger import Account, Ledger, check_account
from sketchshift.privacy.mechanism import LARGEST, Budget, epsilon_of
from sketchshift.privacy.sketch import NoisyTotals, PrivateSketch
from sketchshift.sketch import Sketch, SketchTable
from sketchshift.sketch.family import Family
from sketchshift.sketch.totals import Layout

__all__ = [
    "cell_factor",
    "count_factor",
    "release",
    "release_vector",
    "rows_needed",
    "sensitivity",
]

COUNT_SHARE = 100  # the count has one part in so many of the squared sensitivity
CELL_SHARE = 5  # cells have one part in so many of what waves and cells have
GOOD, POOR = 1.0, 0.3  # rows, in m kappa, for errors of about 1.1 and 1.5 times those of k-means


def count_factor(spec: SketchSpec) -> int:
    """What the number of rows is multiplied by, to be one more coordinate of the release."""
    return math.isqrt(_row_square(spec) // (COUNT_SHARE - 1))


def cell_factor(spec: SketchSpec) -> int:
    """What the integers of cells are multiplied by, to have their share of the sensitivity."""
    squares = {family.name: family.row_square or 0 for family in Layout.of(spec).released}
    if "clipped" not in squares:
        return 1
    return max(1, math.isqrt(squares["waves"] // ((CELL_SHARE - 1) * squares["clipped"])))


def sensitivity(spec: SketchSpec) -> int:
    r"""L2 norm of what one row adds to the vector of a release, rounded up to an integer.

    .. math:: \Delta = \lceil \sqrt{m \, G_2 + f^2 C_2 + s^2} \rceil, \quad
        s = \lfloor \sqrt{(m G_2 + f^2 C_2) / 99} \rfloor, \quad
        f = \lfloor \sqrt{m G_2 / 4 C_2} \rfloor

    with :math:`G_2` the exhaustive maximum of :math:`a^2 + b^2` over all that the kernels can
    add at one frequency, and :math:`C_2`, 0 without cells, the bound on the square of what a row
    adds to its cell. Without cells every row comes within 1e-6 of it, with cells those at the
    radius of their cell.
    """
    square = _row_square(spec) + count_factor(spec) ** 2
    return math.isqrt(square - 1) + 1


def _row_square(spec: SketchSpec) -> int:
    """Largest squared norm of what one row adds to all released parts: m G_2 for the waves."""
    return sum(factor**2 * (family.row_square or 0) for family, factor in _released(spec))


def _released(spec: SketchSpec) -> list[tuple[Family, int]]:
    """The families of a release, and what the integers of each are multiplied by."""
    of_cells = cell_factor(spec)
    families = Layout.of(spec).released
    return [(family, of_cells if family.name == "clipped" else 1) for family in families]


def release_vector(sketch: Sketch) -> IntArray:
    """All that is released of a raw sketch, before the noise: int64 of shape (2 m + 1,).

    With cells J (2 + d) integers more, before the count.
    """
    spec, count = sketch.spec, sketch.count * count_factor(sketch.spec)
    if max(count, sketch.count * cell_factor(spec) << BITS) >= LARGEST:
        msg = (
            f"{sketch.count} rows are too many for one release at m={spec.sketch_size}: its "
            "integers would reach 2**62. Release parts of the data, and merge these with "
            "disjoint=True."
        )
        raise PrivacyError(msg)
    totals = sketch._totals
    parts = [totals.integers(own.name).ravel() * factor for own, factor in _released(spec)]
    return np.concatenate([*parts, [count]])


def rows_needed(sketch_size: int, scale: float) -> float:
    """Rows from which clusters are within some 10 % of those without noise: m kappa.

    A third of them gives errors of about 1.5. Measured for m = 10 k d, k to 40, d to 20.
    """
    return GOOD * math.sqrt(sketch_size) * scale / 2.0**BITS


def release(
    sketch: Sketch,
    epsilon: float,
    delta: float,
    adjacency: str = "add_remove",
    rows_per_person: int = 1,
    *,
    account: Account | None = None,
    force: bool = False,
) -> PrivateSketch:
    """Release a sketch with differential privacy: z, cells and the count, with noise.

    The noise is discrete Gaussian, drawn once for all numbers by OpenDP, and calibrated to the
    exhaustively computed sensitivity of the kernels. Means, covariances, numbers of invalid
    rows and everything else are left out.

    Parameters
    ----------
    sketch : Sketch
        Taken with a spec that may be published: see :func:`plan`, :func:`plan_declared` and
        :func:`plan_public`.
    epsilon, delta : float
        What is promised. delta should be well below one over the number of people, and must
        not be computed from the data.
    adjacency : {"add_remove", "replace_one"}
        Whether a person is in the data or not, or is one person or another; the latter doubles
        the noise, and keeps no secret of the number of rows.
    rows_per_person : int, default=1
        How many rows a person has at most; the noise grows in proportion.
    account : Account or None
        A budget that this release is charged to, or refused by before anything is told.
    force : bool, default=False
        Release although the rows are so few that clusters will be mostly noise. Without it they
        are refused, which costs as much, since it tells of them: the error says so, and has the
        ledger in its ``ledger``.

    Returns
    -------
    released : PrivateSketch
        With its ledger: the charge of this release and those of the plan. O(m).

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> spec = ss.privacy.plan_declared(center=[0, 0], spread=1.5, n_clusters=3)
    >>> private = ss.privacy.release(ss.sketch(X, spec), epsilon=1, delta=1e-8)
    >>> round(private.ledger.epsilon(1e-8), 3)
    1.0
    """
    budget = Budget(epsilon, delta, adjacency, rows_per_person).check("release")
    check_flag("release", "force", force)
    check_account("release", account)
    ball, spec = _ball_of(sketch), sketch.spec
    _check_promises(ball, budget)
    vector = release_vector(sketch)
    look = budget.look(sensitivity(spec), "release")
    ledger = Ledger.of((*ball.charges, look.charge))
    if account is not None:
        account.add(ledger.charges)
    noisy, factor = look.draw(vector), count_factor(spec)
    totals = NoisyTotals(noisy, Layout.of(spec), factor, look.charge.scale, cell_factor(spec))
    released = PrivateSketch(spec, sketch.fingerprint, totals, ledger)
    if not force:
        _check_rows(released, look.charge, account)
    _warn_of_few_rows(released)
    return released


def _ball_of(sketch: Any) -> Ball:
    """Where the spec of a raw sketch comes from, if it may be published."""
    if isinstance(sketch, PrivateSketch):
        msg = (
            "this sketch is private already: use it as it is, at no further cost. For less noise, "
            "release the raw sketch once more; the costs of both releases add up."
        )
        raise PrivacyError(msg)
    if isinstance(sketch, SketchTable):
        msg = (
            "this is a table of sketches, and one sketch is released at a time. Release the whole, "
            "table.merge(), or slice by slice if the keys are public. Releases of slices merge "
            "with disjoint=True, if no person has rows in two of them."
        )
        raise PrivacyError(msg)
    if not isinstance(sketch, Sketch):
        raise parameter_error("release", "sketch", "a Sketch", sketch)
    spec = sketch.spec
    if spec.rows.ball is None:
        msg = (
            "the plan of this sketch may tell of private rows: it is published with a release, and "
            "its numbers may come from the data. Sketch the data with a plan of ss.privacy.plan, "
            "plan_declared or plan_public (sketchshift plan --private or --public)."
        )
        raise PrivacyError(msg)
    return spec.rows.ball


def _check_promises(ball: Ball, budget: Budget) -> None:
    """Refuse to add a charge to those of a plan that promised something else."""
    for charge in ball.charges:
        planned = (charge.adjacency, charge.rows_per_person)
        if planned != (budget.adjacency, budget.rows_per_person):
            msg = (
                f"the plan was charged for {charge.adjacency}, rows_per_person="
                f"{charge.rows_per_person}, and this release for {budget.adjacency}, "
                f"rows_per_person={budget.rows_per_person}. Use the same for both."
            )
            raise PrivacyError(msg)


def _check_rows(released: PrivateSketch, charge: Charge, account: Account | None) -> None:
    """Refuse a release that is mostly noise; judged by the noisy count.

    That is a look at the rows, paid for as any other. Without an account the count is not told:
    what nobody has written down should say as little as it can.
    """
    needed = rows_needed(released.spec.sketch_size, released._totals.scale)
    if released.total_weight >= POOR * needed:
        return
    rows = "the" if account is None else f"about {released.count:,}"
    kept = (
        f"by the charge {charge.id[:8]}, and no account keeps it: note it down"
        if account is None
        else f"in {account.path}"
    )
    msg = (
        f"{rows} rows are too few: at m={released.spec.sketch_size} this noise needs some "
        f"{needed:,.0f}, and clusters would be mostly noise. To find this out has cost epsilon "
        f"{epsilon_of(charge.rho, charge.delta):.4g} at delta {charge.delta:g} {kept}. Gather more "
        "rows, plan for fewer clusters, raise epsilon, or release it all the same: force=True "
        "(--force)."
    )
    raise PrivacyError(msg, ledger=released.ledger)


def _warn_of_few_rows(released: PrivateSketch) -> None:
    needed = rows_needed(released.spec.sketch_size, released._totals.scale)
    if released.total_weight < needed:
        msg = (
            f"about {released.count:,} rows are few: for errors within some 10 % of those without "
            f"noise, m={released.spec.sketch_size} at this epsilon needs about {needed:,.0f} rows."
        )
        warn(msg, PrivacyWarning)
