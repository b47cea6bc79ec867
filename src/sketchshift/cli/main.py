"""The group of commands: those of this package, and those that other packages add.

A command of this package is imported when it is called, so that ``sketchshift --help`` answers at
once. Those of rooms that nothing imports, such as ``live``, come by entry points.

Another package adds one by an entry point of the group ``sketchshift.commands``. It is imported
when it is called or listed; one that cannot be imported is listed with the reason, and breaks
nothing else.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from typing import Any

import click

import sketchshift
from sketchshift._text import visible
from sketchshift.cli.command import INTERRUPTED, debug_option, keep_lines, visible_messages
from sketchshift.cli.output import note

__all__ = ["COMMANDS", "ENTRY_POINTS", "load_plugins", "main"]

ENTRY_POINTS = "sketchshift.commands"
"""The group of entry points by which other packages add commands."""

PLUGINS = "sketchshift.plugins"
"""The group of entry points that name modules to import."""

GROUPS = {
    "Find clusters": {
        "cluster": "Find the clusters of a table, or of sketches.",
        "assign": "Write the cluster of every row.",
        "report": "Write or serve one page about the clusters.",
        "demo": "Try it on the pixels of a photograph.",
    },
    "Keep sketches": {
        "sketch": "Read data once, and keep a few kilobytes of it.",
        "plan": "Decide what sketches share that will be added up.",
        "merge": "Add sketches, of days or of machines, or subtract some.",
        "follow": "Keep a sketch up with data that changes, and report drift.",
        "inspect": "Show what is in a file, or prove what centroids cost.",
    },
    "Compare and publish": {
        "compare": "Report whether, where and when sketches differ.",
        "release": "Add noise to a sketch, so that it may be published.",
    },
}
"""The commands of this package by what people want to do, each with what it does."""

COMMANDS = {name: words for group in GROUPS.values() for name, words in group.items()}
"""The same without the groups."""


@cache
def load_plugins() -> None:
    """Import what other packages add: modules named by the entry points ``PLUGINS``.

    Such a module registers file formats, engines or decoders when it is imported. One that cannot
    be imported is named on stderr, and left out.
    """
    for plugin in _entry_points(tuple(sys.path))[PLUGINS]:
        try:
            plugin.load()
        except (Exception, SystemExit) as error:  # no plugin may end a command
            what = f"{type(error).__name__}: {error}"
            msg = f"Warning: the plugin {plugin.name!r} ({plugin.value}) is left out. {what}"
            note(msg)


class _Commands(click.Group):
    """Lists the commands by what people want to do, those of other packages last."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = keep_lines(self.help)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with visible_messages():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with visible_messages():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            note("Aborted!")
            ctx.exit(INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        others = [*super().list_commands(ctx), *_commands_elsewhere()]
        return list(dict.fromkeys([*COMMANDS, *sorted(others)]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = cmd_name.replace("-", "_")
        if cmd_name in COMMANDS and find_spec(f"sketchshift.cli.{name}"):
            own: click.Command = getattr(import_module(f"sketchshift.cli.{name}"), name)
            return own
        found = _commands_elsewhere().get(cmd_name)
        return super().get_command(ctx, cmd_name) if found is None else _load(found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        load_plugins()
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            alike = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {alike[0]!r}?" if alike else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = [name for name in self.list_commands(ctx) if name not in COMMANDS]
        wide = max(map(len, [*COMMANDS, *others]))  # one column for all groups
        found = {name: self.get_command(ctx, name) for name in others}
        more = {
            name: command.get_short_help_str(formatter.width - 6 - wide)
            for name, command in found.items()
            if command is not None
        }
        for title, group in (GROUPS | ({"More": more} if more else {})).items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(wide), words) for name, words in group.items()])


def _commands_elsewhere() -> dict[str, EntryPoint]:
    """The commands of entry points by name; none is imported, and none replaces one of ours."""
    found = _entry_points(tuple(sys.path))[ENTRY_POINTS]
    ours = {entry.name: entry for entry in found if entry.value.startswith("sketchshift.")}
    return {entry.name: entry for entry in found if entry.name not in COMMANDS} | ours


@cache
def _entry_points(path: tuple[str, ...]) -> dict[str, EntryPoints]:
    """What other packages add, by group: one look into the hundreds of packages on a path."""
    found = entry_points()
    return {group: found.select(group=group) for group in (ENTRY_POINTS, PLUGINS)}


def _load(found: EntryPoint) -> click.Command:
    """The command of an entry point, or one that says why there is none."""
    try:
        loaded = found.load()
    except (Exception, SystemExit) as error:  # whatever the import of a stranger's module may raise
        return _broken(found, f"{type(error).__name__}: {error}")
    if isinstance(loaded, click.Command):
        return loaded
    return _broken(found, "it is not a command of click")


def _broken(found: EntryPoint, reason: str) -> click.Command:
    why = visible(f"cannot be loaded from {found.value}: {reason.rstrip('.')}.")

    def fail() -> None:
        raise click.ClickException(f"the command {found.name!r} {why}")

    any_words = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        found.name, callback=fail, help=why, short_help=why, context_settings=any_words
    )


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(sketchshift.__version__, prog_name="sketchshift")
@debug_option
def main() -> None:
    """Find the clusters of a table, however large: it is read once.

    A sketch of it is kept, a few kilobytes. Sketches of days or of machines are added, subtracted
    and compared, and clustered again for any k without the data.

    Examples
    --------
      sketchshift demo
      sketchshift cluster points.csv -k auto

    Every command has --help, and --help-all with the options for experts.
    Results go to stdout, progress and errors to stderr. Exit status: 0 done, 1 failed,
    2 misuse, 130 interrupted.
    """
