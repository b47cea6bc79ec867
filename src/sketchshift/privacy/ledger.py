"""What looks at the same people cost together, and the account they are charged to."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sketchshift._validation import check_number, parameter_error
from sketchshift._writing import write_atomically
from sketchshift.errors import MissingDependencyError, PrivacyError, SpecError
from sketchshift.features import Charge
from sketchshift.privacy.mechanism import epsilon_of

__all__ = ["Account", "Ledger", "check_account"]

# The ledger: what all looks at the same people cost together.


@dataclass(frozen=True)
class Ledger:
    """Charges that were made, by the parts of the data they concern.

    A person belongs to one part. Charges of a part add up; of several parts, which have no
    person in common, the one that costs most counts. The same charge twice counts once.

    Parameters
    ----------
    parts : tuple of frozenset of Charge
        One, unless releases of disjoint data were merged.
    """

    parts: tuple[frozenset[Charge], ...]

    @classmethod
    def of(cls, charges: Iterable[Charge]) -> Ledger:
        """The ledger of one part with these ``charges``."""
        return cls((frozenset(charges),))

    def __post_init__(self) -> None:
        promises = {(charge.adjacency, charge.rows_per_person) for charge in self.charges}
        if len(promises) > 1:
            words = " and ".join(f"{a}, rows_per_person={c}" for a, c in sorted(promises))
            msg = (
                f"these releases promise different things ({words}), so that their costs do not "
                "add up. Release both with one adjacency and rows_per_person."
            )
            raise PrivacyError(msg)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, each once, in the order of their ids."""
        return tuple(sorted(frozenset().union(*self.parts), key=lambda charge: charge.id))

    @property
    def rho(self) -> float:
        """What the part that costs most costs."""
        return max(sum(sorted(charge.rho for charge in part)) for part in self.parts)

    @property
    def delta(self) -> float:
        """The largest delta that any release had in mind."""
        return max(charge.delta for charge in self.charges)

    def epsilon(self, delta: float | None = None) -> float:
        """Epsilon of all together, at ``delta``; None takes :attr:`delta`."""
        if delta is None:
            delta = self.delta
        return epsilon_of(
            self.rho, check_number("Ledger.epsilon", "delta", delta, low=1e-300, high=0.99)
        )

    def __add__(self, other: Ledger) -> Ledger:
        """Both, of people who may be in both: charges add up."""
        return Ledger(_largest(a | b for a in self.parts for b in other.parts))

    def beside(self, other: Ledger) -> Ledger:
        """The ledger of two groups of people, nobody in both: the larger cost counts.

        Parameters
        ----------
        other : Ledger
            Of the other group.
        """
        return Ledger(_largest((*self.parts, *other.parts)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON: charges, and the parts as lists of their positions."""
        charges = self.charges
        at = {charge: i for i, charge in enumerate(charges)}
        places = [sorted(at[charge] for charge in part) for part in self.parts]
        return {"charges": [dataclasses.asdict(c) for c in charges], "parts": sorted(places)}

    @classmethod
    def from_dict(cls, content: Any) -> Ledger:
        """The ledger whose :meth:`to_dict` is ``content``; else a :class:`SpecError`."""
        try:
            charges = [Charge.from_dict(charge) for charge in content["charges"]]
            parts = tuple(frozenset(charges[i] for i in part) for part in content["parts"])
        except (KeyError, IndexError, TypeError) as error:
            raise SpecError(f"this is not a ledger: {error!r}.") from None
        if not parts or not all(parts):
            raise SpecError("a ledger has at least one part, and every part a charge.")
        return cls(parts)


def _largest(parts: Iterable[frozenset[Charge]]) -> tuple[frozenset[Charge], ...]:
    """Parts that no other part contains, each once, in a fixed order."""
    distinct = sorted(set(parts), key=lambda part: sorted(charge.id for charge in part))
    return tuple(part for part in distinct if not any(part < other for other in distinct))


# An account: a budget for one dataset, in a file that every release of it is charged to.
#
# A raw sketch cannot hold its own history, since its bytes are a function of its rows alone; so
# the account lies beside it. Whoever releases a copy elsewhere evades it: no file can help that.

_LIMITS = {"epsilon": (1e-3, 1e3), "delta": (1e-30, 1e-2)}
_FIELDS = {"schema", "charges", *_LIMITS}
_WAIT = 0.005  # seconds between two attempts to lock the file


class Account:
    """A budget that lasts until it is spent.

    The file is the truth: each charge reads it anew, budget included, while no other process
    can charge it. Symbolic links to it are other names of the same account; hard links, which
    a charge would tear apart, are refused.

    Parameters
    ----------
    path : path
        A JSON file; made at once if it is not there.
    epsilon, delta : float or None
        The budget. None takes that of the file; other numbers than those of the file are
        refused, now and whenever the file has changed.

    Examples
    --------
    >>> import sketchshift as ss, tempfile
    >>> path = tempfile.mkdtemp() + "/people.json"
    >>> ss.privacy.Account(path, epsilon=2, delta=1e-8).spent
    0.0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> None:
        self._path = Path(path).absolute()
        self._declared = {"epsilon": epsilon, "delta": delta}
        if self._path.exists():
            self._read()
        else:
            self._open()

    @property
    def path(self) -> Path:
        """The file, by the name it was opened with."""
        return self._path

    @property
    def epsilon(self) -> float:
        """What all charges together may cost, as the file has it."""
        return self._read().epsilon

    @property
    def delta(self) -> float:
        """At which delta, as the file has it."""
        return self._read().delta

    @property
    def spent(self) -> float:
        """Epsilon of all charges in the file together, at the account's delta."""
        return self._read().spent

    def add(self, charges: Iterable[Charge]) -> None:
        """Charge a release and its plan, or refuse them; written to the file at once.

        One process at a time: ``people.json.lock`` beside the file is locked meanwhile.

        Parameters
        ----------
        charges : iterable of Charge
            Those that are there already count once.
        """
        with _lock(self._path) as file:
            before = self._read()
            after = before.charge(charges)
            if after.spent > after.epsilon * (1.0 + 1e-9):
                msg = (
                    f"the budget is too small: {self._path} allows epsilon {after.epsilon:g} at "
                    f"delta {after.delta:g}, {before.spent:.4g} are spent, and this would make "
                    f"{after.spent:.4g}. Spend a smaller epsilon, or merge sketches and release "
                    "once."
                )
                raise PrivacyError(msg)
            write_atomically(file, after.to_bytes())

    def _open(self) -> None:
        """Write the file of a new account, unless another process has just done so."""
        epsilon, delta = (_check(name, self._declared[name]) for name in _LIMITS)
        new = _Balance(epsilon, delta)
        with _lock(self._path) as file:
            if not file.exists():
                write_atomically(file, new.to_bytes())
        self._read()

    def _read(self) -> _Balance:
        """What the file says now, if its budget is the one that was declared."""
        found = _read_balance(self._path)
        for name, declared in self._declared.items():
            fixed = getattr(found, name)
            if declared is not None and _check(name, declared) != fixed:
                msg = (
                    f"the account {self._path} has {name} {fixed:g}, and {declared:g} was asked "
                    f"for. Leave {name} (--budget) out: a budget is fixed when its account is "
                    "opened."
                )
                raise PrivacyError(msg)
        return found


@dataclass(frozen=True)
class _Balance:
    """The content of an account."""

    epsilon: float
    delta: float
    ledger: Ledger = dataclasses.field(default_factory=lambda: Ledger.of(()))

    @classmethod
    def from_json(cls, text: bytes) -> _Balance:
        """What a file holds; any :class:`ValueError` says why it is not an account."""
        try:
            content = json.loads(text)
        except RecursionError:
            raise SpecError("it is nested too deeply.") from None
        is_account = isinstance(content, dict) and set(content) == _FIELDS
        is_account = is_account and type(content["schema"]) is int and content["schema"] == 1
        if not is_account or not isinstance(content["charges"], list):
            raise SpecError("it must hold exactly schema (1), epsilon, delta, a list of charges.")
        epsilon, delta = (_check(name, content[name]) for name in _LIMITS)
        return cls(epsilon, delta, Ledger.of(map(Charge.from_dict, content["charges"])))

    @property
    def spent(self) -> float:
        return self.ledger.epsilon(self.delta)

    def charge(self, charges: Iterable[Charge]) -> _Balance:
        """The balance after more charges."""
        return dataclasses.replace(self, ledger=Ledger.of((*self.ledger.charges, *charges)))

    def to_bytes(self) -> bytes:
        content = {
            "schema": 1,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "charges": [dataclasses.asdict(charge) for charge in self.ledger.charges],
        }
        return json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"


def _check(name: str, value: Any) -> float:
    low, high = _LIMITS[name]
    return check_number("Account", name, value, low=low, high=high)


def _read_balance(path: Path) -> _Balance:
    try:
        if path.exists() and not path.is_file():
            raise SpecError("it is not a regular file.")
        with path.open("rb") as file:
            names, text = os.fstat(file.fileno()).st_nlink, file.read()
        found = _Balance.from_json(text)
    except FileNotFoundError:
        msg = f"the account {path} is gone. Put it back, or open a new one by its budget."
        raise PrivacyError(msg) from None
    except ValueError as error:
        reason = str(error).rstrip(".")
        msg = f"{path} is not an account: {reason}. Restore it from a copy, or name another file."
        raise PrivacyError(msg) from None
    if names > 1:
        msg = (
            f"the account {path} has {names} names (hard links), and a charge would be written "
            "under one of them only. Remove the others, or make each a symbolic link."
        )
        raise PrivacyError(msg)
    return found


@contextmanager
def _lock(path: Path) -> Iterator[Path]:
    """The file, with links followed, while no other process has it.

    Two names of one file must share one lock: so the lock belongs to the file, not to the name.
    """
    try:
        from filelock import FileLock
    except ImportError:
        msg = 'an account is locked by filelock: pip install "sketchshift[privacy]".'
        raise MissingDependencyError(msg) from None
    file = Path(os.path.realpath(path))
    if not file.parent.is_dir():  # the lock would make it
        raise PrivacyError(f"cannot write {path}: there is no folder {file.parent}. Make it first.")
    with FileLock(f"{file}.lock").acquire(poll_interval=_WAIT):
        yield file


def check_account(caller: str, account: Any) -> None:
    """Refuse anything but an account or None, such as the path of one."""
    if account is not None and not isinstance(account, Account):
        raise parameter_error(caller, "account", "an Account, as ss.privacy.Account(path)", account)
