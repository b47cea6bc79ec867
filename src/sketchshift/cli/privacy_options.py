"""The flags of a promise and of an account, shared by ``release`` and ``private-plan``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from sketchshift.privacy import Account

__all__ = ["account_options", "open_account", "promise_options", "spent_facts"]

F = TypeVar("F", bound=Callable[..., Any])


def promise_options(*, required: bool) -> Callable[[F], F]:
    """Add ``--epsilon``, ``--delta``, ``--adjacency`` and ``--rows-per-person``."""
    options = (
        click.option(
            "--epsilon",
            type=float,
            required=required,
            help="What is promised: below 1 is strong, above 10 says little.",
        ),
        click.option(
            "--delta",
            type=float,
            required=required,
            help="Well below one over the number of people; not computed from the data.",
        ),
        click.option(
            "--adjacency",
            type=click.Choice(["add_remove", "replace_one"]),
            default="add_remove",
            show_default=True,
            help="Whether a person is there or not, or is one or another (twice the noise).",
        ),
        click.option(
            "--rows-per-person",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Rows that a person has at most.",
        ),
    )

    return _adder(options)


def account_options(function: F) -> F:
    """Add ``--account`` and ``--budget``."""
    options = (
        click.option(
            "--account",
            metavar="PATH",
            type=click.Path(path_type=Path),
            help="Charge a budget that is kept in this .json file.",
        ),
        click.option(
            "--budget",
            type=click.FloatRange(min=0, min_open=True),
            help="With a new --account: the epsilon that all of it together may cost, at --delta.",
        ),
    )
    return _adder(options)(function)


def open_account(path: Path | None, budget: float | None, delta: float) -> Account | None:
    """The account of these flags, made if it is new."""
    from sketchshift.privacy import Account

    if path is not None and budget is None and not path.exists():
        msg = (
            f"the account {str(path)!r} is not there yet. Give its --budget, the epsilon that all "
            "of it together may cost."
        )
        raise click.UsageError(msg)
    if path is not None:
        return Account(path, budget, None if budget is None else delta)
    if budget is not None:
        raise click.UsageError("--budget is that of an --account. Give both.")
    return None


def spent_facts(account: Account | None, path: Path | None) -> tuple[dict[str, Any], list[str]]:
    """How much of an account is spent, for ``--json`` and as lines."""
    if account is None:
        return {"spent": None}, []
    spent = account.spent
    of = f"epsilon {spent:.4g} of {account.epsilon:g} at delta {account.delta:g}"
    return {"spent": spent}, [f"Spent {of} of {path}."]


def _adder(options: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add
