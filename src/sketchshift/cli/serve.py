"""``sketchshift serve``: a cube over Arrow Flight, for rows to come in and sketches to go out."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event
from typing import Any

import click

from sketchshift.cli.command import INTERRUPTED, EverydayOption, command
from sketchshift.cli.inputs import read_spec
from sketchshift.cli.options import KEYS
from sketchshift.cli.output import Output, note
from sketchshift.live.cube import Cube
from sketchshift.sketch.file import is_cube

__all__ = ["serve"]

PORT = 8815


@command
@click.argument("state")
@click.option("--plan", metavar="PATH", help="Plan of a state that is made; by `sketchshift plan`.")
@click.option("--by", type=KEYS, help="Keys of a state that is made: day(time),country.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. What other machines can reach needs a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    cls=EverydayOption,
    help="Port to listen at; 0 takes any that is free.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False),
    help="A file whose first line is a token that all clients must send. Default: what the "
    "environment variable SKETCHSHIFT_TOKEN holds.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False),
    help="A certificate in PEM; clients then use grpc+tls://.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False),
    help="Its key in PEM, without a password.",
)
@click.option("--check", is_flag=True, help="Ask for the sketch once as a client would, and stop.")
def serve(
    state: str,
    plan: str | None,
    by: tuple[str, ...] | None,
    host: str,
    port: int,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    check: bool,
    out: Output,
) -> None:
    """Serve STATE, the folder of a cube, over Arrow Flight until Ctrl-C.

    Clients put rows at the paths `rows` and `removed`, each stream in one commit, and get `sketch`
    or `table`. A producer that numbers its streams (rows/NAME/12) may send one again: it counts
    once. STATE is what `sketchshift follow` writes; with --plan it is made if it is not there.

    Examples
    --------
      sketchshift serve served --plan plan.json --port 0 --check
      sketchshift serve served2 --plan plan.json --port 0 --check --json

    Without --check it stays until Ctrl-C.

    Then: `sketchshift serve served`, and pyarrow.flight in any language talks to it.
    """
    from sketchshift.serving import CubeServer, read_token

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together. Give both, or neither.")
    tls = (tls_cert, tls_key) if tls_cert and tls_key else None
    cube = _open_state(state, plan, by)
    token = read_token(token_file)
    with CubeServer(cube, host=host, port=port, token=token, tls=tls) as server:
        place = f"[{host}]" if ":" in host else host
        url = f"{'grpc+tls' if tls else 'grpc'}://{place}:{server.port}"
        record: dict[str, Any] = {"command": "serve", "state": state, "url": url}
        record |= {"by": list(cube.by), "version": cube.version, "has_token": token is not None}
        if check:
            record["rows"] = _ask_once(url, token)
            line = f"{url} was asked for the sketch of {state}, and gave {record['rows']:,} rows."
            out.report(record, [line], then=["serve", state])
            return
        guard = "for whoever sends the token" if token else "for all on this machine"
        out.report(record, [f"Serving {state} at {url}, {guard}.", "Ctrl-C stops it."])
        try:
            Event().wait()  # it serves already
        except KeyboardInterrupt:
            note("Stopped.")
            os._exit(
                INTERRUPTED
            )  # Arrow would wait for open streams; a commit is whole, or not there


def _open_state(state: str, plan: str | None, by: tuple[str, ...] | None) -> Cube:
    if is_cube(state) and (plan or by):
        msg = (
            f"{state!r} is there, with its own plan and keys. Leave out --plan and --by, or serve "
            "another folder."
        )
        raise click.UsageError(msg)
    if is_cube(state):
        return Cube.open(state)
    if plan is None:
        msg = (
            f"there is no cube in {state!r}. Make one here with --plan, or with `sketchshift "
            "follow`."
        )
        raise click.UsageError(msg)
    return Cube.create(Path(state), read_spec(plan), by or ())


def _ask_once(url: str, token: str | None) -> int:
    """Rows of the sketch that a client gets; the certificate may be for another name of here."""
    from sketchshift.data.flight import fl

    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    with fl.connect(url, disable_server_verification=url.startswith("grpc+tls")) as client:
        options = fl.FlightCallOptions(headers=headers)
        table = client.do_get(fl.Ticket("sketch"), options).read_all()
    return int(table["count"][0].as_py())
