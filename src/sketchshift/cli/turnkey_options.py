"""The flags of a turnkey plan and of a pass, shared by ``plan``, ``sketch`` and ``cluster``.

With ``-k`` the bandwidths and the rest come from the data; without it, from the flags of a
spec. One spec comes from one place: other combinations are misuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from sketchshift.cli.facts import say
from sketchshift.cli.files import check_output
from sketchshift.cli.spec_options import flags_given
from sketchshift.features.plan import MAX_CLUSTERS

__all__ = [
    "LARGEST_K",
    "checkpoint_option",
    "checkpointed",
    "on_invalid_option",
    "refuse_mixture",
    "turnkey_arguments",
    "turnkey_options",
]

F = TypeVar("F", bound=Callable[..., Any])

_WITH_K = ("--sketch-size", "--seed")


class _LargestK(click.IntRange):
    """The largest number of clusters that a plan should serve."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "auto":
            msg = "a plan needs a number: the most clusters there may be, such as 20."
            self.fail(msg, param, ctx)
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} must be a whole number.", param, ctx)
        return super().convert(value, param, ctx)


LARGEST_K = _LargestK(1, MAX_CLUSTERS)


def turnkey_options(function: F) -> F:
    """Add ``-k`` and ``--standardize``."""
    n_clusters = click.option(
        "-k",
        "--n-clusters",
        type=LARGEST_K,
        help="Plan from the data, for k clusters or fewer: nothing else to choose. m is 10·k·d "
        "unless given.",
    )
    standardize = click.option(
        "--standardize", is_flag=True, help="With -k: a scale for each column, if units differ."
    )
    return n_clusters(standardize(function))


def on_invalid_option(function: F) -> F:
    """Add ``--on-invalid``."""
    return click.option(
        "--on-invalid",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="Refuse rows with missing or infinite values, or leave them out and count them.",
    )(function)


def checkpoint_option(function: F) -> F:
    """Add ``--checkpoint``."""
    return click.option(
        "--checkpoint",
        metavar="PATH",
        help="Keep the sums so far in this file: after a crash, the same command goes on.",
    )(function)


@contextmanager
def checkpointed(path: str | None, others: Sequence[Path]) -> Iterator[Path | None]:
    """The checkpoint of a pass, removed once the body has written its result.

    Parameters
    ----------
    path : str or None
        As the user gave it.
    others : sequence of Path
        Files that are read or written; the checkpoint must not be one of them.

    Yields
    ------
    checkpoint : Path or None
        Where it goes.
    """
    if path is None:
        yield None
        return
    checkpoint = check_output(path)
    if checkpoint in [other.resolve() for other in others]:
        msg = f"the checkpoint {path!r} is also read or written. Give it a name of its own."
        raise click.UsageError(msg)
    if checkpoint.exists():
        say(f"Going on from {path}: comparing what was read with what is there.", err=True)
    yield checkpoint
    checkpoint.unlink(missing_ok=True)


def refuse_mixture(ctx: click.Context, *, neither: str) -> None:
    """Refuse a spec from two places, or from none.

    Parameters
    ----------
    ctx : click.Context
        Of a command with the flags of a spec and those of this module.
    neither : str
        What to say when there is neither ``-k`` nor ``--bandwidth``.
    """
    params = ctx.params
    if params["n_clusters"] is not None:
        _refuse_beside("-k", [flag for flag in flags_given(ctx) if flag not in _WITH_K])
    elif params["standardize"]:
        raise click.UsageError("--standardize needs -k. With --bandwidth, give --scale instead.")
    elif params["bandwidth"] is None:
        raise click.UsageError(neither)


def turnkey_arguments(ctx: click.Context) -> dict[str, Any]:
    """Arguments of :func:`sketchshift.plan` that were typed."""
    params = ctx.params
    is_given = "--sketch-size" in flags_given(ctx)
    return {
        "n_clusters": params["n_clusters"],
        "sketch_size": params["sketch_size"] if is_given else None,
        "seed": params["seed"],
        "standardize": params["standardize"],
    }


def _refuse_beside(first: str, others: Sequence[str]) -> None:
    if others:
        msg = (
            f"give {first} or {', '.join(others)}, not both: {first} takes them from the data. "
            "Beside it go --sketch-size, --seed, --columns, --weights and --standardize."
        )
        raise click.UsageError(msg)
