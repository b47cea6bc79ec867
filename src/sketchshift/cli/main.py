"""The group of commands, and nothing else."""

from __future__ import annotations

from typing import Any

import click

import sketchshift
from sketchshift.cli.assign import assign
from sketchshift.cli.cluster import cluster
from sketchshift.cli.command import debug_option, keep_lines, visible_messages
from sketchshift.cli.compare import compare
from sketchshift.cli.data import data
from sketchshift.cli.demo import demo
from sketchshift.cli.explore import explore
from sketchshift.cli.inspect import inspect
from sketchshift.cli.merge import merge
from sketchshift.cli.plan import plan
from sketchshift.cli.private_plan import private_plan
from sketchshift.cli.release import release
from sketchshift.cli.report import report
from sketchshift.cli.reproduce import reproduce
from sketchshift.cli.sketch import sketch
from sketchshift.cli.subtract import subtract
from sketchshift.cli.watch import watch

__all__ = ["main"]


class _InOrder(click.Group):
    """Lists the commands in the order in which they are used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = keep_lines(self.help)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with visible_messages():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with visible_messages():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(sketchshift.__version__, prog_name="sketchshift")
@debug_option
def main() -> None:
    """Read data once into a few kilobytes that add and subtract exactly; cluster from these.

    Examples
    --------
      sketchshift demo
      sketchshift sketch points.csv -k 10 -o day1.sketch

    Results go to stdout, progress and errors to stderr. Exit status: 0 done, 1 failed,
    2 misuse, 130 interrupted.
    """


for _command in (
    demo,
    plan,
    private_plan,
    sketch,
    merge,
    subtract,
    release,
    inspect,
    cluster,
    report,
    explore,
    assign,
    compare,
    watch,
    data,
    reproduce,
):
    main.add_command(_command)
