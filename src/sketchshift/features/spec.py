"""Everything that must be equal for two sketches to add up.

A :class:`SketchSpec` is frozen and small; frequencies are drawn from it where they are
needed. It goes into every sketch file, and its fingerprint guards every merge.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import (
    check_choice,
    check_flag,
    check_integer,
    check_names,
    check_number,
    parameter_error,
)
from sketchshift.errors import SpecError
from sketchshift.features.checks import CALLER, check_bandwidth, check_scale, check_vector
from sketchshift.features.frequencies import LAWS, Frequencies, draw_frequencies
from sketchshift.features.origin import Origin
from sketchshift.features.structured import MIN_FEATURES
from sketchshift.features.tilt import Tilt
from sketchshift.kernels import BITS, MOMENT_BITS, PHASE_LIMIT

__all__ = [
    "FULL_COVARIANCE_FEATURES",
    "MAX_FEATURES",
    "MAX_NUMBERS",
    "MAX_SKETCH_SIZE",
    "SketchSpec",
]

MAX_FEATURES = 2**20
MAX_SKETCH_SIZE = 2**24
MAX_NUMBERS = 2**31  # d m for frequencies drawn one by one
FULL_COVARIANCE_FEATURES = 64  # beyond, the diagonal alone is kept
_SCHEMA = 1


@dataclass(frozen=True)
class SketchSpec:
    r"""The sketching operator: which features are summed, and in which integers.

    A row x is normalised to x' = (x - center) / scale and adds, for each frequency
    :math:`\omega_j`, the integers nearest to :math:`2^{22} \cos\langle\omega_j, x'\rangle` and
    :math:`2^{22} \sin\langle\omega_j, x'\rangle` (with a tilt, times :math:`t(x) / 2^e`).

    Parameters
    ----------
    n_features : int
        Dimension d of a row.
    sketch_size : int
        Number m of frequencies; about 10 k d for k clusters.
    bandwidth : float or pair of float
        Bandwidth of the Gaussian kernel, in the units of x'. A pair (low, high) gives each
        frequency a bandwidth of its own, log-uniform between the two.
    seed : int, default=0
        From 0 to 2**64 - 1. Sketches add up only if it is the same.
    law : {"gaussian", "folded_gaussian", "adapted_radius"}
        Law of the length of the frequencies; the paper's is Gaussian.
    structured : bool, default=False
        Fast Hadamard blocks instead of independent directions; needs d >= 64.
    columns : sequence of str or None
        Names of the columns: sources that have names are read by them.
    center : sequence of float or None
        Subtracted from each row.
    scale : float, sequence of float or None
        Divides each row: one number keeps the distances of k-means, one a column
        standardises.
    tilt : Tilt or None
        Weights that see far points; None is the paper's sketch.
    far_share : float, default=0
        With a range of bandwidths: the share of frequencies with bandwidths beyond it, up to
        100 times its upper end.
    precision : {"float32", "float64"}
        Of the phases. float32 has an error of about 4e-8 :math:`|\langle\omega, x'\rangle|`
        radians a row; take float64 for data far from the center.
    origin : Origin or None
        That these numbers may be published, for private releases: see
        :mod:`sketchshift.privacy`. Rows are then clipped to a ball, and NaN dropped in silence.

    Examples
    --------
    >>> import sketchshift as ss
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=100, bandwidth=0.3)
    >>> ss.SketchSpec.from_json(spec.to_json()) == spec
    True
    """

    n_features: int
    sketch_size: int
    bandwidth: float | tuple[float, float]
    seed: int = 0
    law: str = "gaussian"
    structured: bool = False
    columns: tuple[str, ...] | None = None
    center: tuple[float, ...] | None = None
    scale: float | tuple[float, ...] | None = None
    tilt: Tilt | None = None
    far_share: float = 0.0
    precision: str = "float32"
    origin: Origin | None = None

    def __post_init__(self) -> None:
        d = check_integer(CALLER, "n_features", self.n_features, 1, MAX_FEATURES)
        m = check_integer(CALLER, "sketch_size", self.sketch_size, 1, MAX_SKETCH_SIZE)
        checked: dict[str, Any] = {
            "n_features": d,
            "sketch_size": m,
            "bandwidth": check_bandwidth(self.bandwidth),
            "seed": check_integer(CALLER, "seed", self.seed, 0, 2**64 - 1),
            "law": check_choice(CALLER, "law", self.law, LAWS),
            "structured": check_flag(CALLER, "structured", self.structured),
            "center": check_vector("center", self.center, d),
            "scale": check_scale(self.scale, d),
            "far_share": check_number(CALLER, "far_share", self.far_share, low=0.0, high=1.0),
            "precision": check_choice(CALLER, "precision", self.precision, ("float32", "float64")),
        }
        if self.columns is not None:
            checked["columns"] = check_names(CALLER, "columns", self.columns, d)
        if self.tilt is not None and not isinstance(self.tilt, Tilt):
            raise parameter_error(CALLER, "tilt", "a Tilt or None", self.tilt)
        if self.origin is not None and not isinstance(self.origin, Origin):
            raise parameter_error(CALLER, "origin", "an Origin or None", self.origin)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_together()

    def _check_together(self) -> None:
        d, m = self.n_features, self.sketch_size
        if self.structured and d < MIN_FEATURES:
            msg = (
                f"structured frequencies need at least {MIN_FEATURES} columns, and there are {d}. "
                "Leave structured=False: at this dimension it is as fast."
            )
            raise SpecError(msg)
        if not self.structured and d * m > MAX_NUMBERS:
            msg = (
                f"n_features x sketch_size = {d} x {m} is more than {MAX_NUMBERS} numbers. "
                "Use a smaller sketch_size or structured=True."
            )
            raise SpecError(msg)
        if self.far_share and not isinstance(self.bandwidth, tuple):
            msg = (
                f"far_share={self.far_share} needs a range of bandwidths, and bandwidth="
                f"{self.bandwidth} is one number. Give a pair (low, high) or leave far_share=0."
            )
            raise SpecError(msg)

    @property
    def frequencies(self) -> Frequencies:
        """The frequencies, drawn on first use: O(m d)."""
        return _frequencies(self)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that two sketches must share to be merged.

        BLAKE2b-128 of the canonical JSON, a zero byte, and the bytes of the frequencies.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.to_json().encode() + b"\0")
        digest.update(self.frequencies.to_bytes())
        return digest.hexdigest()

    @property
    def quantum(self) -> float:
        """What one unit of the integer totals is worth: 2**-22, times 2**e with a tilt."""
        return float(2.0 ** (self.tilt_exponent - BITS))

    @property
    def tilt_exponent(self) -> int:
        """Weights enter the integers divided by 2 to this power; 0 without a tilt."""
        return 0 if self.tilt is None else self.tilt.exponent

    @property
    def moment_unit(self) -> float:
        """Unit of the moments' integers: the power of two just below (low) bandwidth / sqrt(d)."""
        low = self.bandwidth[0] if isinstance(self.bandwidth, tuple) else self.bandwidth
        return math.ldexp(1.0, math.frexp(low / math.sqrt(self.n_features))[1] - 1)

    @cached_property
    def reach(self) -> float:
        """The norm of x' must be below this: phases then stay exact and integers in range."""
        by_phase = PHASE_LIMIT / self.frequencies.largest
        cap = 1.0 if self.tilt is None else self.tilt.cap
        return min(by_phase, 2.0 ** (40 - MOMENT_BITS) * self.moment_unit / cap)

    @property
    def has_full_covariance(self) -> bool:
        """Whether all products of two columns are kept, or the squares alone."""
        return self.n_features <= FULL_COVARIANCE_FEATURES

    @cached_property
    def center_vector(self) -> FloatArray:
        """The center as an array of shape (d,)."""
        return np.array(self.center if self.center is not None else np.zeros(self.n_features))

    @cached_property
    def scale_vector(self) -> FloatArray:
        """The scale as an array of shape (d,)."""
        scale = 1.0 if self.scale is None else self.scale
        return np.array(np.broadcast_to(scale, self.n_features), dtype=np.float64)

    @cached_property
    def per_unit(self) -> FloatArray:
        """What a centered row is multiplied by: 1 / scale, rounded once, shape (d,)."""
        return 1.0 / self.scale_vector

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cached fingerprint: who receives a spec draws the frequencies itself, and
        # its sketches do not merge with others if they should not be the same there.
        return SketchSpec.from_json, (self.to_json(),)

    def prefix(self, sketch_size: int) -> SketchSpec:
        """The spec of the first ``sketch_size`` frequencies: they are the same ones."""
        check_integer(CALLER + ".prefix", "sketch_size", sketch_size, 1, self.sketch_size)
        return dataclasses.replace(self, sketch_size=sketch_size)

    def describe(self) -> str:
        """One line for messages: what differs between specs that do not match."""
        parts = [f"d={self.n_features}", f"m={self.sketch_size}"]
        shown = (
            "bandwidth",
            "seed",
            "law",
            "structured",
            "columns",
            "center",
            "scale",
            "tilt",
            "far_share",
            "precision",
            "origin",
        )
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in shown:
            value = getattr(self, name)
            if name in ("bandwidth", "seed") or value != defaults[name]:
                text = repr(value)
                parts.append(f"{name}={text if len(text) <= 60 else text[:57] + '...'}")
        return ", ".join([*parts, f"fingerprint={self.fingerprint[:8]}"])

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, parameters at their defaults left out."""
        content: dict[str, Any] = {"schema": _SCHEMA}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                is_noun = isinstance(value, Tilt | Origin)
                content[field.name] = dataclasses.asdict(value) if is_noun else value
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SketchSpec:
        """Read what :meth:`to_json` wrote; anything else is a :class:`SpecError`.

        Parameters
        ----------
        text : str
            JSON object with ``"schema": 1``, n_features, sketch_size and bandwidth at least.

        Returns
        -------
        spec : SketchSpec
            Equal to the one written, fingerprint included.
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SpecError(f"a sketch spec must be JSON, and this is not: {error}.") from None
        if not isinstance(content, dict):
            raise SpecError(f"a sketch spec must be a JSON object. Got {type(content).__name__}.")
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SketchSpec:
        """The spec that a JSON object, already parsed, describes.

        Parameters
        ----------
        content : mapping
            With ``"schema": 1``, n_features, sketch_size and bandwidth at least.

        Returns
        -------
        spec : SketchSpec
            As from :meth:`from_json`.
        """
        content = dict(content)
        schema = content.pop("schema", None)
        if type(schema) is not int or schema != _SCHEMA:
            msg = (
                f"this spec has schema {schema!r}, and this version of sketchshift reads "
                f'"schema": {_SCHEMA}. Add that if it is missing, or upgrade sketchshift.'
            )
            raise SpecError(msg)
        names = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(content) - names)
        missing = sorted({"n_features", "sketch_size", "bandwidth"} - set(content))
        if unknown or missing:
            facts = [f"unknown: {', '.join(unknown)}"] * bool(unknown)
            facts += [f"missing: {', '.join(missing)}"] * bool(missing)
            raise SpecError(f"this is not a sketch spec ({'; '.join(facts)}).")
        tilt = content.get("tilt")
        if tilt is not None:
            if not isinstance(tilt, dict) or set(tilt) != {"radius", "cap"}:
                raise parameter_error(CALLER, "tilt", "an object with radius and cap", tilt)
            content["tilt"] = Tilt(**tilt)
        if content.get("origin") is not None:
            content["origin"] = Origin.from_dict(content["origin"])
        return cls(**content)


@lru_cache(maxsize=4)
def _frequencies(spec: SketchSpec) -> Frequencies:
    return draw_frequencies(
        spec.n_features,
        spec.sketch_size,
        spec.bandwidth,
        law=spec.law,
        seed=spec.seed,
        structured=spec.structured,
        far_share=spec.far_share,
    )
