"""What all commands share: ``--json``, ``--help-all``, and one sentence for a failure.

Takes the function of a command, which reports its result to an :class:`Output`; hands
a click command to ``main``. Exceptions raised on purpose become ``Error: ...`` and exit status 1.
Others stay tracebacks: they are bugs.
"""

from __future__ import annotations

import errno
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from inspect import cleandoc
from typing import Any, TypeVar

import click

from sketchshift._text import NAMES_SHOWN, hide_passwords, visible_lines
from sketchshift.cli.output import Output, in_shell, join_with_commas, note
from sketchshift.data.open import first_suffixes
from sketchshift.errors import (
    Argument,
    ChooseColumns,
    LoadSketch,
    Option,
    Parameter,
    PlanWarning,
    PrivacyWarning,
    ScaleHint,
    SetDialect,
    SharePlan,
    SketchshiftError,
    Term,
)

__all__ = [
    "ALL_SHOWN",
    "INTERRUPTED",
    "Command",
    "command",
    "debug_option",
    "keep_lines",
    "sentence",
    "visible_messages",
]

F = TypeVar("F", bound=Callable[..., Any])
_DEBUG = "sketchshift.debug"

INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended."""

ALL_SHOWN = "sketchshift.help_all"
"""Where a context keeps whether its help has the options for experts."""


def debug_option(function: F) -> F:
    """Add ``--debug`` to a group."""

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.meta[_DEBUG] = value

    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show the traceback of an error.",
    )(function)


def _show_all_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[ALL_SHOWN] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all_help,
    help="Show options for experts as well.",
)


class Command(click.Command):
    """A command with ``--json``, whose failures are one sentence.

    Options for experts are hidden ones (``hidden=True``): ``--help-all`` shows them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = keep_lines(self.help)
        self.params.append(
            click.Option(
                ["--json", "out"],
                is_flag=True,
                callback=lambda ctx, param, value: Output(as_json=value),
                help="Print the result as one JSON object.",
            )
        )

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters with ``--help-all``."""
        return [*super().get_params(ctx), _HELP_ALL]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, with the file formats that are known by now."""
        written = self.help
        self.help = (written or "").replace("{formats}", first_suffixes())
        super().format_help_text(ctx, formatter)
        self.help = written

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; those for experts after ``--help-all`` alone."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], "Expert options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (ctx.meta.get(ALL_SHOWN) or not param.hidden):
                shown = copy(param)
                shown.hidden = False
                record = shown.get_help_record(ctx)
                if record is not None:
                    groups["Expert options" if param.hidden else "Options"].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a deliberate exception ends it with exit status 1."""
        try:
            with _warnings_as_notes():
                return super().invoke(ctx)
        except (SketchshiftError, OSError) as error:
            is_broken_pipe = isinstance(error, OSError) and error.errno == errno.EPIPE
            if is_broken_pipe or ctx.meta.get(_DEBUG):
                raise
            raise click.ClickException(sentence(error)) from error


@contextmanager
def visible_messages() -> Iterator[None]:
    """Make what click and we say about misuse harmless to a terminal."""
    try:
        yield
    except click.ClickException as error:
        shown = visible_lines(hide_passwords(error.message))
        vars(error)["message"] = shown  # click shows it itself
        raise


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Our own warnings as one sentence on stderr; those of others as Python shows them."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def tell(message: Any, category: Any, *place: Any, **options: Any) -> None:
            if issubclass(category, PlanWarning | PrivacyWarning | ScaleHint):
                note(f"Note: {message}")
            else:
                show(visible_lines(str(message)), category, *place, **options)

        for category in (PlanWarning, PrivacyWarning, ScaleHint):
            warnings.simplefilter("always", category)
        warnings.showwarning = tell
        yield


def command(function: Callable[..., Any]) -> Command:
    """Make a command of a function; its docstring is the help."""
    return click.command(cls=Command)(function)


def keep_lines(text: str | None) -> str | None:
    """Help in which click leaves the lines under the heading "Examples" as they are."""
    return text and re.sub(r"\n\nExamples\n-+\n", "\n\n\b\nExamples:\n", cleandoc(text))


def sentence(error: Exception) -> str:
    """What went wrong, in the words of the command line."""
    if isinstance(error, SketchshiftError):
        return error.worded(_words)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}."
    return str(error)


def _words(term: Term) -> str:
    """What to do, in the words of the command line."""
    match term:
        case Argument(name):
            return next(iter(_flags_named("plan" if name == "spec" else name)), name)
        case ChooseColumns(names):
            is_complete = 0 < len(names) <= NAMES_SHOWN
            return f"--columns {shlex.quote(join_with_commas(names)) if is_complete else 'NAMES'}"
        case LoadSketch(path):
            return f"Cluster it: sketchshift cluster {shlex.quote(path)} -k auto"
        case Option():
            return in_shell(term)
        case Parameter(_, name):
            return next(reversed(_flags_named(name)), str(term))
        case SetDialect(field, value):
            return f"--csv {shlex.quote(f'{field}={value or field.upper()}')}"
        case SharePlan():
            return (
                "Make one plan, `sketchshift plan DATA -k 10 -o plan.json`, and take every sketch "
                "with it: `sketchshift sketch DATA --plan plan.json -o day1.sketch`."
            )


def _flags_named(name: str) -> list[str]:
    """Those of the running command for a parameter of the library, the short one first."""
    ctx = click.get_current_context(silent=True)
    params = [] if ctx is None else ctx.command.params
    return [flag for p in params if p.name == name for flag in p.opts if flag.startswith("-")]
