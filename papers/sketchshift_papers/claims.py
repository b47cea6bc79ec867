"""Claims held against runs: a small vocabulary, numbers as evidence, and a verdict.

A check selects runs, averages a measure over the realizations at every point of the grid, and
compares. Its entries, as in the TOML files:

``of``         which runs: ``{decoder = "algorithm2", m = 1000, sigma = {from = 0.03, to = 0.3}}``;
               a list means any of these, a table a range with its ends
``measure``    a column of the runs, ``"rse"`` unless told; or ``"missed"``, the share of the
               realizations whose RSE is above 1.5
``statistic``  over the realizations: ``"mean"`` unless told, or ``"median"``
``reduce``     one number instead of one a point: ``"min"``, ``"max"``, ``"mean"``, ``"median"``;
               ``"m_of_min"``, the m of the smallest; or of the bandwidths at which the measure
               is at most ``threshold``: ``"count"``, ``"smallest"``, ``"largest"``
``op``         ``"<=" ">=" "<" ">" "within"``, with a number ``value`` (``within``: a pair) or with
               ``other``, a second selection, times ``factor``; ``within`` an ``other``: a ratio
               of at most ``factor`` either way
``along``      instead of ``op``: ``"m"``, ``"L"``, ``"d"`` or ``"sigma"``; the measure must
               ``trend = "rise"`` (or ``"fall"``) from end to end, by more than ``slack`` in
               relation nowhere going back; with ``reduce``, over the axes in ``over``,
               ``["sigma"]`` unless told

A claim holds, holds partly, or does not hold here: that is its :class:`Outcome`. One missed
cluster decides a mean, so that a claim about errors is judged by means and by medians; what its
file says is the verdict, the other stands beside it. So does each variant (``[[claims.also]]``).

The :class:`Standing` of a claim is where it is counted. The file may name a ``cause`` for which a
claim can fall short although the paper is right. ``"not testable"`` is never counted as
reproduced, nor as failed. Else what holds is reproduced whatever its cause. Else the cause
counts: ``"data"`` or ``"baseline"``, for a claim that holds partly too. Without a cause a claim
is reproduced in part, or not reproduced. No variant and no median moves a claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from sketchshift.errors import DataError
from sketchshift_papers.definition import Cause, Claim, Figure, selects
from sketchshift_papers.runner import Row

__all__ = [
    "AXES",
    "ERRORS",
    "LIMIT",
    "Evidence",
    "Judgement",
    "Outcome",
    "Point",
    "Standing",
    "Verdict",
    "evaluate",
    "judge",
    "outcome_of",
    "points_of",
    "standing_of",
    "values_of",
]

AXES = ("dataset", "d", "m", "sigma", "L")
ERRORS = ("rse", "mse")
LIMIT = 1.5  # a run with a larger RSE has missed a cluster
STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "median": median}
Point = tuple[Any, ...]
ENTRIES = {"of", "measure", "statistic", "reduce", "threshold", "over"}
ENTRIES |= {"op", "value", "other", "factor", "along", "trend", "slack"}
REDUCTIONS = STATISTICS | {"min": min, "max": max}
OPS: dict[str, Callable[[float, float], bool]] = {
    "<=": lambda x, y: x <= y,
    ">=": lambda x, y: x >= y,
    "<": lambda x, y: x < y,
    ">": lambda x, y: x > y,
}


@dataclass(frozen=True)
class Evidence:
    """What a check found.

    Attributes
    ----------
    n_satisfied, n_compared : int
        Comparisons that came out as claimed, and all; none compared: not measured.
    text : str
        The numbers.
    """

    n_satisfied: int
    n_compared: int
    text: str

    @property
    def share(self) -> float:
        """Of the comparisons, those as claimed."""
        return self.n_satisfied / self.n_compared if self.n_compared else math.nan


def values_of(
    rows: Iterable[Row], select: Mapping[str, Any], measure: str
) -> dict[Point, list[float]]:
    """What every realization has at every point (dataset, d, m, sigma, L) of a selection."""
    column = "rse" if measure == "missed" else measure
    values: dict[Point, list[float]] = {}
    for row in rows:
        if column in row and selects(select, row):
            value = row[column] if column == measure else float(not row[column] <= LIMIT)
            values.setdefault(tuple(row[axis] for axis in AXES), []).append(value)
    return values


def points_of(
    rows: Iterable[Row],
    select: Mapping[str, Any],
    measure: str,
    *,
    statistic: str = "mean",
) -> dict[Point, float]:
    """Means, or medians, over the realizations at every point of a selection."""
    if statistic not in STATISTICS:
        raise DataError(f"a check has no statistic {statistic!r}. Use mean or median.")
    if measure == "missed" and statistic != "mean":
        raise DataError("'missed' is a share already: a check of it has no statistic.")
    values = values_of(rows, select, measure)
    return {point: STATISTICS[statistic](found) for point, found in values.items()}


def evaluate(check: Mapping[str, Any], rows: Sequence[Row]) -> Evidence:
    """Hold one check against the runs.

    Parameters
    ----------
    check : mapping
        See the module's text.
    rows : sequence of rows
        The runs of a figure.

    Returns
    -------
    evidence : Evidence
        O(rows).
    """
    if unknown := ", ".join(sorted(set(check) - ENTRIES)):
        raise DataError(f"a check has no entry {unknown}. See sketchshift_papers.claims.")
    found = _found(check, rows, check["of"])
    if not found:
        return Evidence(0, 0, f"no runs with {_selection(check['of'])}")
    if "along" in check:
        return _trend(check, found)
    if "other" in check:
        return _against(check, found, _found(check, rows, check["other"]))
    values = [_reduced(check, found)] if "reduce" in check else list(found.values())
    wanted = check["value"]
    n = sum(_compare(check["op"], value, wanted) for value in values)
    text = f"{_name(check)} {_spread(values)}, wanted {check['op']} {_number(wanted)}"
    return Evidence(n, len(values), text + _of(n, len(values)))


def _found(
    check: Mapping[str, Any], rows: Sequence[Row], select: Mapping[str, Any]
) -> dict[Point, float]:
    statistic = check.get("statistic", "mean")
    return points_of(rows, select, check.get("measure", "rse"), statistic=statistic)


def _against(
    check: Mapping[str, Any], left: dict[Point, float], right: dict[Point, float]
) -> Evidence:
    """Two selections: point by point where they share what neither fixes, or reduced."""
    if not right:
        return Evidence(0, 0, f"no runs with {_selection(check['other'])}")
    if "reduce" in check:
        pairs = [(_reduced(check, left), _reduced(check, right))]
    else:
        shared = _shared_axes(check, left, right)
        others = _by(right, shared)
        pairs = [(v, others[k]) for p, v in left.items() if (k := _part(p, shared)) in others]
    factor = check.get("factor", 1.0)
    op = check["op"]
    if op == "within":
        n = sum(1 / factor <= _ratio(x, y) <= factor for x, y in pairs)
    else:
        n = sum(_compare(op, x, factor * y) for x, y in pairs)
    ratios = [_ratio(x, y) for x, y in pairs]
    if "reduce" in check:
        numbers = f"{_number(pairs[0][0])} against {_number(pairs[0][1])}"
    else:
        numbers = f"{_spread(ratios)} times that of {_selection(check['other'])}" if pairs else ""
    wanted = f", wanted {op} {factor:g}" if factor != 1.0 or op == "within" else f", wanted {op}"
    return Evidence(n, len(pairs), f"{_name(check)} {numbers}{wanted}{_of(n, len(pairs))}")


def _shared_axes(
    check: Mapping[str, Any], left: dict[Point, float], right: dict[Point, float]
) -> list[int]:
    """Axes on which points must agree: not those on which the selections themselves differ.

    Nor L, where only one of the two decoders has starts.
    """
    shared = []
    for i, name in enumerate(AXES):
        is_told_apart = check["of"].get(name) != check["other"].get(name)
        has_one_none = name == "L" and not {p[i] for p in left} & {p[i] for p in right}
        if not is_told_apart and not has_one_none:
            shared.append(i)
    return shared


def _trend(check: Mapping[str, Any], found: dict[Point, float]) -> Evidence:
    """Does the measure rise, or fall, along an axis? One comparison for each of the rest."""
    axis = AXES.index(check["along"])
    reduced = "reduce" in check
    fixed = [i for i in range(len(AXES)) if i != axis and AXES[i] not in _reduced_axes(check)]
    if check["along"] == "d":
        fixed = [i for i in fixed if AXES[i] not in ("dataset", "m")]
    groups: dict[Point, dict[Any, dict[Point, float]]] = {}
    for point, value in found.items():
        group = groups.setdefault(_part(point, fixed), {})
        group.setdefault(point[axis], {})[point] = value
    sign, slack = (1 if check["trend"] == "rise" else -1), check.get("slack", 0.0)
    n, n_groups, texts = 0, 0, []
    for key, group in sorted(groups.items(), key=lambda item: str(item[0])):
        steps = sorted(group)
        if len(steps) < 2:
            continue
        values = [_reduced(check, group[s]) if reduced else fmean(group[s].values()) for s in steps]
        n_groups += 1
        n += _rises([sign * v for v in values], slack)
        texts.append(_label(key, fixed, groups) + " → ".join(_number(v) for v in values))
    shown = "; ".join(texts[:4]) + (" ..." if len(texts) > 4 else "")
    text = f"{_name(check)} along {check['along']}: {shown}, wanted a {check['trend']}"
    return Evidence(n, n_groups, text + _of(n, n_groups))


def _label(key: Point, fixed: Sequence[int], groups: Iterable[Point]) -> str:
    """What tells a group from the others, as in ``"(m = 200) "``."""
    told = [i for i in range(len(fixed)) if len({other[i] for other in groups}) > 1]
    told = [i for i in told if AXES[fixed[i]] != "dataset" or len(told) == 1]
    words = [f"{AXES[fixed[i]]} = {key[i]}" for i in told]
    return f"({', '.join(words)}) " if words else ""


def _rises(values: Sequence[float], slack: float) -> bool:
    """Ends higher than it starts, and goes back nowhere by more than the slack."""
    back = all(b >= a - slack * abs(a) for a, b in pairwise(values))
    return back and values[-1] > values[0]


def _reduced_axes(check: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(check.get("over", ("sigma",))) if "reduce" in check else ()


def _reduced(check: Mapping[str, Any], found: Mapping[Point, float]) -> float:
    how, values = check["reduce"], list(found.values())
    if how in REDUCTIONS:
        return REDUCTIONS[how](values)
    if how == "m_of_min":
        return float(min(found, key=lambda point: found[point])[AXES.index("m")])
    sigmas = [float(p[AXES.index("sigma")]) for p, v in found.items() if v <= check["threshold"]]
    if how == "count":
        return float(len(sigmas))
    if how not in ("smallest", "largest"):
        raise DataError(f"a check cannot reduce by {how!r}. See sketchshift_papers.claims.")
    if not sigmas:
        return math.nan
    return min(sigmas) if how == "smallest" else max(sigmas)


def _compare(op: str, value: float, wanted: Any) -> bool:
    if op == "within":
        return bool(wanted[0] <= value <= wanted[1])
    if op not in OPS:
        raise DataError(f"a check cannot compare by {op!r}. Use one of {', '.join(OPS)}, within.")
    return OPS[op](value, wanted)


def _by(found: Mapping[Point, float], kept: Sequence[int]) -> dict[Point, float]:
    groups: dict[Point, list[float]] = {}
    for point, value in found.items():
        groups.setdefault(_part(point, kept), []).append(value)
    return {key: fmean(values) for key, values in groups.items()}


def _part(point: Point, kept: Sequence[int]) -> Point:
    return tuple(point[i] for i in kept)


def _ratio(x: float, y: float) -> float:
    return x / y if y else math.inf


def _of(n: int, n_all: int) -> str:
    return f" ({n} of {n_all})" if n_all != 1 else (" (yes)" if n else " (no)")


def _name(check: Mapping[str, Any]) -> str:
    measure = check.get("measure", "rse")
    if measure == "missed":
        what = f"share of runs with rse > {LIMIT:g}"
    else:
        what = f"{check.get('statistic', 'mean')} {measure}"
    how = f"{check['reduce']} of " if "reduce" in check else ""
    limit = f" where at most {check['threshold']:g}" if "threshold" in check else ""
    return f"{how}{what}{limit} of {_selection(check['of'])}:"


def _selection(select: Mapping[str, Any]) -> str:
    def shown(name: str, want: Any) -> str:
        if isinstance(want, Mapping):
            ends = [f"{want['from']:g} <=" if "from" in want else "", name]
            return " ".join([*ends, f"<= {want['to']:g}" if "to" in want else ""]).strip()
        return str(want) if name in ("decoder", "dataset") else f"{name} = {want}"

    return ", ".join(shown(name, want) for name, want in select.items())


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return _number(low) if len(values) == 1 else f"{_number(low)} to {_number(high)}"


def _number(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(_number(v) for v in value)
    return f"{value:.3g}"


# Verdicts: what the evidence says of a claim.


class Outcome(StrEnum):
    """How a claim fared; the value is shown to the user."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold here"
    UNMEASURED = "not measured"


class Standing(StrEnum):
    """Where a claim is counted; see the module's text."""

    REPRODUCED = "reproduced"
    IN_PART = "reproduced in part"
    DATA = "data unknown"
    BASELINE = "depends on the baseline"
    NOT_TESTABLE = "not testable"
    FAILED = "not reproduced"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Judgement:
    """What the checks of a claim found, or those of a variant of it.

    Attributes
    ----------
    evidence : tuple of Evidence
        One a check, as the file has it.
    by : mapping
        Evidence with all errors (RSE, MSE) averaged by ``"mean"`` and by ``"median"``; empty
        where no check is about errors.
    """

    evidence: tuple[Evidence, ...]
    by: Mapping[str, tuple[Evidence, ...]]

    @property
    def outcome(self) -> Outcome:
        """As the file has it."""
        return outcome_of(self.evidence)


@dataclass(frozen=True)
class Verdict:
    """A claim, what its checks found, and its variants by name."""

    claim: Claim
    said: Judgement
    also: Mapping[str, Judgement]

    @property
    def outcome(self) -> Outcome:
        """Of the claim itself."""
        return self.said.outcome

    @property
    def standing(self) -> Standing:
        """Where it is counted."""
        return standing_of(self.outcome, self.claim.cause)


def judge(figure: Figure, rows: Sequence[Row]) -> list[Verdict]:
    """Hold every claim of a figure against its runs.

    Parameters
    ----------
    figure : Figure
        Whose claims.
    rows : sequence of rows
        Its runs.

    Returns
    -------
    verdicts : list of Verdict
        A claim holds if every comparison of every check comes out as claimed, does not if no
        check has half of them, and holds partly in between.
    """
    verdicts = []
    for claim in figure.claims:
        also = {variant.name: _judged(variant.checks, rows) for variant in claim.also}
        verdicts.append(Verdict(claim, _judged(claim.checks, rows), also))
    return verdicts


def _judged(checks: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> Judgement:
    def evidence(told: Mapping[str, str]) -> tuple[Evidence, ...]:
        averaged = ({**check, **told} if _is_of_errors(check) else check for check in checks)
        return tuple(evaluate(check, rows) for check in averaged)

    has_errors = any(map(_is_of_errors, checks))
    by = {name: evidence({"statistic": name}) for name in STATISTICS} if has_errors else {}
    return Judgement(evidence({}), by)


def _is_of_errors(check: Mapping[str, Any]) -> bool:
    return check.get("measure", "rse") in ERRORS


def outcome_of(evidence: Sequence[Evidence]) -> Outcome:
    """The outcome of a claim with these checks."""
    shares = [found.share for found in evidence if found.n_compared]
    if len(shares) < len(evidence) or not shares:
        return Outcome.UNMEASURED
    if min(shares) == 1.0:
        return Outcome.HOLDS
    return Outcome.FAILS if max(shares) < 0.5 else Outcome.PARTLY


def standing_of(outcome: Outcome, cause: Cause | None) -> Standing:
    """Where a claim with this outcome and cause is counted."""
    if cause is Cause.NOT_TESTABLE:
        return Standing.NOT_TESTABLE
    if outcome is Outcome.UNMEASURED:
        return Standing.UNMEASURED
    if outcome is Outcome.HOLDS:
        return Standing.REPRODUCED
    if cause is not None:
        return Standing.DATA if cause is Cause.DATA else Standing.BASELINE
    return Standing.IN_PART if outcome is Outcome.PARTLY else Standing.FAILED
