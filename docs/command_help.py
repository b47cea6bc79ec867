"""The directive ``command-help``: what every command says of itself, as a terminal shows it."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sketchshift.cli import main
from sketchshift.cli.command import ALL_SHOWN

WIDTH = 80


class CommandHelp(SphinxDirective):
    """A section for each command, in the order of ``sketchshift --help``."""

    def run(self) -> list[nodes.Node]:
        """See :class:`docutils.parsers.rst.Directive`."""
        parent = click.Context(main, info_name="sketchshift")
        return [self._section(parent, name) for name in main.list_commands(parent)]

    def _section(self, parent: click.Context, name: str) -> nodes.section:
        command = main.get_command(parent, name)
        assert command is not None
        context = click.Context(
            command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
        )
        context.meta[ALL_SHOWN] = True
        text = command.get_help(context)
        title, body = nodes.title(text=name), nodes.literal_block(text, text, language="text")
        return nodes.section("", title, body, ids=[f"command-{name}"], names=[name])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
