"""An account: a budget for one dataset, in a file that every release of it is charged to.

A raw sketch cannot hold its own history, since its bytes are a function of its rows alone; so
the account lies beside it. Whoever releases a copy elsewhere evades it: no file can help that.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sketchshift._validation import check_number
from sketchshift.errors import MissingDependencyError, PrivacyError, SpecError
from sketchshift.features import Charge
from sketchshift.privacy.ledger import Ledger
from sketchshift.sketch.container import write_atomically

__all__ = ["Account"]

_FIELDS = {"schema", "epsilon", "delta", "charges"}


class Account:
    """A budget that lasts until it is spent.

    Parameters
    ----------
    path : path
        A JSON file; made by the first charge.
    epsilon, delta : float or None
        The budget. None takes that of the file; other numbers than those of the file are
        refused.

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
        self._path = Path(path)
        self._charges: tuple[Charge, ...] = ()
        known = self._read() if self._path.exists() else {"epsilon": epsilon, "delta": delta}
        self.epsilon = check_number("Account", "epsilon", known["epsilon"], low=1e-3, high=1e3)
        self.delta = check_number("Account", "delta", known["delta"], low=1e-30, high=1e-2)
        for name, given in (("epsilon", epsilon), ("delta", delta)):
            if given is not None and given != known[name]:
                msg = (
                    f"the account {os.fspath(path)} has {name} {known[name]:g}, and {given:g} was "
                    f"asked for. Leave {name} out: a budget is fixed when its account is opened."
                )
                raise PrivacyError(msg)

    @property
    def spent(self) -> float:
        """Epsilon of all charges in the file together, at the account's delta."""
        self._refresh()
        return Ledger.of(self._charges).epsilon(self.delta)

    def add(self, charges: Iterable[Charge]) -> None:
        """Charge a release and its plan, or refuse them; written to the file at once.

        One process at a time: ``people.json.lock`` beside the file is locked meanwhile.

        Parameters
        ----------
        charges : iterable of Charge
            Those that are there already count once.
        """
        with _lock(self._path):
            self._refresh()
            self._add(tuple(charges))

    def _add(self, charges: tuple[Charge, ...]) -> None:
        ledger = Ledger.of((*self._charges, *charges))
        epsilon = ledger.epsilon(self.delta)
        if epsilon > self.epsilon * (1.0 + 1e-9):
            msg = (
                f"the budget does not last: this release would make epsilon {epsilon:.4g} at delta "
                f"{self.delta:g} of the {self.epsilon:g} in {self._path}, where {self.spent:.4g} "
                "are spent. Release with a smaller epsilon, or merge sketches and release once."
            )
            raise PrivacyError(msg)
        self._charges = ledger.charges
        write_atomically(self._path, self._to_json().encode() + b"\n")

    def _refresh(self) -> None:
        """What others have charged since the file was read."""
        if self._path.exists():
            self._read()

    def _to_json(self) -> str:
        content = {
            "schema": 1,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "charges": [dataclasses.asdict(charge) for charge in self._charges],
        }
        return json.dumps(content, indent=1, sort_keys=True)

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or set(content) != _FIELDS or content["schema"] != 1:
                raise SpecError("it must hold exactly schema (1), epsilon, delta and charges")
            self._charges = tuple(Charge.from_dict(charge) for charge in content["charges"])
        except (ValueError, TypeError) as error:
            raise PrivacyError(f"{self._path} is not an account: {error}.") from None
        return content


def _lock(path: Path) -> AbstractContextManager[Any]:
    try:
        from filelock import FileLock
    except ImportError:
        msg = 'an account is locked by filelock: pip install "sketchshift[privacy]".'
        raise MissingDependencyError(msg) from None
    return FileLock(f"{path}.lock")
