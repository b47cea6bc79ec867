"""The flags of a promise, shared by ``release`` and ``private-plan``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["promise_options"]

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

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add
