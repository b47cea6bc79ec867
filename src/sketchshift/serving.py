"""A cube over Arrow Flight: rows are put into it, sketches are got out of it.

Each stream of rows that is put becomes one commit of the cube, once all of it has come: of a client
that is killed, or whose connection breaks, nothing is kept. A producer that numbers its streams
may send one again when it has heard no answer: the number is committed with the rows, and what is
in already is left alone.

What is put and got is named by a path:

========================= =======================================================
``rows``                  put: rows that come
``removed``               put: rows that go
``rows/NAME/NUMBER``      put: the stream of this number of the producer of this name
``rows/NAME/NUMBER/ROWS`` put: the same, if it has so many rows
``sketch``                get: one row with ``count`` and ``sketch``, the sum of all slices
``table``                 get: the slices, as ``SketchTable.from_arrow`` reads them
========================= =======================================================
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from sketchshift._text import listed
from sketchshift.data.flight import fl
from sketchshift.errors import ConflictError, DataError, SketchshiftError
from sketchshift.live.cube import Cube

__all__ = ["CubeServer", "read_token"]

PUT, GET = ("rows", "removed"), ("sketch", "table")
LONGEST = 2000  # signs of a message: Flight loses one that does not fit into headers


Anywhere: TypeAlias = str | os.PathLike[str]


class _Bearer(fl.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow has no types
    """Lets nobody in who does not know the token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        if not (token.isascii() and token.isprintable()):
            raise DataError("a token must be of ASCII letters, digits and signs: headers are.")
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Any) -> None:
        given = [v for name, values in headers.items() for v in values if name == "authorization"]
        if not any(hmac.compare_digest(value.encode(), self._expected) for value in given):
            raise fl.FlightUnauthenticatedError("this server wants a token that was not given")


class CubeServer(fl.FlightServerBase):  # type: ignore[misc]
    """Takes rows into a cube and gives its sketches, to all who can reach it.

    Parameters
    ----------
    cube : Cube
        Every request opens it anew, so that other writers may add to it meanwhile.
    host : str
        Where to listen. Addresses that other machines can reach need a token.
    port : int
        0 takes any that is free: :attr:`port` says which.
    token : str or None
        What every call must carry in its header ``authorization``, behind ``Bearer``.
    tls : pair of paths, optional
        Files of a certificate and its key, both in PEM. Clients then use ``grpc+tls://``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa, pyarrow.flight as fl, sketchshift as ss
    >>> from sketchshift.serving import CubeServer
    >>> spec = ss.SketchSpec(n_features=1, sketch_size=20, bandwidth=1.0, columns=["x"])
    >>> rows = pa.table({"x": [0.5, 1.5, 2.5]})
    >>> with TemporaryDirectory() as folder:
    ...     cube = ss.live.Cube.create(folder + "/cube", spec)
    ...     with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
    ...         path = fl.FlightDescriptor.for_path("rows")
    ...         writer, answers = client.do_put(path, rows.schema)
    ...         writer.write_table(rows)
    ...         writer.done_writing()
    ...         answer = answers.read().to_pybytes()
    ...         writer.close()
    ...         got = client.do_get(fl.Ticket("sketch")).read_all()
    ...     cube.merge() == ss.Sketch.from_bytes(got["sketch"][0].as_py()) == ss.sketch(rows, spec)
    True
    """

    def __init__(
        self,
        cube: Cube,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        tls: tuple[Anywhere, Anywhere] | None = None,
    ) -> None:
        _check_guarded(host, token)
        options: dict[str, Any] = {"middleware": {"token": _Bearer(token)} if token else {}}
        if tls is not None:
            options["tls_certificates"] = [tuple(Path(file).read_bytes() for file in tls)]
        place = f"[{host}]" if ":" in host else host
        try:
            super().__init__(f"grpc+{'tls' if tls else 'tcp'}://{place}:{port}", **options)
        except pa.ArrowException as cause:  # which says no more than that
            files = ", or certificate and key are no pair in PEM" if tls else ""
            msg = (
                f"cannot listen at {place}:{port}: the port is taken, or the host is not of this "
                f"machine{files}. Choose another port, such as 0 for any that is free."
            )
            raise DataError(msg) from cause
        self._path = cube.path

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Add or remove the rows of one stream, in one commit.

        Parameters
        ----------
        context, descriptor, reader, writer
            As in :class:`pyarrow.flight.FlightServerBase`. The answer is an object of JSON:
            ``version`` of the commit, and whether the stream ``was_there`` already.
        """
        with _told_to_client():
            what, *producer = _path_of(descriptor, PUT)
            number, n_rows = _numbers_of(producer)
            rows = _whole(reader, context, n_rows)
            version, was_there = self._put(what, producer, number, rows)
            answer = {"version": version, "was_there": was_there}
            writer.write(pa.py_buffer(json.dumps(answer).encode()))

    def _put(
        self, what: str, producer: list[str], number: int | None, rows: Any
    ) -> tuple[int, bool]:
        cube = Cube.open(self._path)
        name = f"flight/{what}/{producer[0]}" if producer else ""
        before = cube.positions.get(name)
        if number is not None and before is not None and number <= before["number"]:
            return cube.version, True
        added, removed = (rows, None) if what == "rows" else (None, rows)
        if number is None:
            return cube.append_rows(added, removed, n_threads=1), False
        moved, began = {name: {"number": number}}, {name: before}
        try:
            version = cube.append_rows(added, removed, positions=moved, expected=began, n_threads=1)
            return version, False
        except ConflictError:  # the same producer, on another connection
            found = cube.positions[name]["number"]
            if number <= found:
                return cube.version, True
            msg = (
                f"another stream of the producer {producer[0]!r}, number {found}, was committed "
                "meanwhile. Nothing was changed: send this one again, and one after the other."
            )
            raise DataError(msg) from None

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Sketches as a stream of Arrow.

        Parameters
        ----------
        context, ticket
            As in :class:`pyarrow.flight.FlightServerBase`. The ticket is ``sketch`` or ``table``,
            or an object of JSON with one of them as ``get`` and a condition on the keys as
            ``where``; for a table, the keys to keep as ``by``.
        """
        with _told_to_client():
            cube, asked = Cube.open(self._path), _parse_ticket(ticket.ticket)
            if asked["get"] == "sketch":
                sketch = cube.merge(asked.get("where"))
                table = pa.table({"count": [sketch.count], "sketch": [sketch.to_bytes()]})
            else:
                table = cube.table(asked.get("where"), asked.get("by")).to_arrow()
            return fl.RecordBatchStream(table)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """What can be got under a path."""
        with _told_to_client():
            return self._info(*_path_of(descriptor, GET))

    def list_flights(self, context: Any, criteria: Any) -> Iterator[Any]:
        """All that can be got: a cube without keys has no table."""
        with _told_to_client():
            names = GET if Cube.open(self._path).by else GET[:1]
            return (self._info(name) for name in names)

    def _info(self, name: str) -> Any:
        endpoint = fl.FlightEndpoint(name, [])
        descriptor = fl.FlightDescriptor.for_path(name)
        return fl.FlightInfo(pa.schema([]), descriptor, [endpoint], -1, -1)


def _check_guarded(host: str, token: str | None) -> None:
    """Refuse to be reached from elsewhere by whoever likes."""
    try:
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name of some machine
        is_here = False
    if not is_here and not token:
        msg = (
            f"a server at {host!r} can be reached from other machines, and anybody could change "
            "the cube. Give it a token, or listen at 127.0.0.1."
        )
        raise DataError(msg)


def _whole(reader: Any, context: Any, n_rows: int | None) -> Any:
    """The rows of a stream; an error behind them if the client has gone before it was done."""

    def batches() -> Iterator[Any]:
        n_come = 0
        for batch in stream:
            n_come += len(batch)
            yield batch
        if context.is_cancelled():  # to the reader, that is an end like any other
            raise DataError("the client went before its stream was done. Nothing was changed.")
        if n_rows is not None and n_come != n_rows:
            msg = f"{n_come:,} rows came of a stream of {n_rows:,}. Nothing was changed."
            raise DataError(msg)

    stream = reader.to_reader()
    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def _path_of(descriptor: Any, known: tuple[str, ...]) -> list[str]:
    """The parts of a path, of which the first is known here."""
    parts = [part.decode() for part in descriptor.path or ()]
    if not parts or parts[0] not in known or (parts[0] in GET and len(parts) > 1):
        shown = "/".join(parts) or "no path"
        raise DataError(f"this server knows the paths {listed(known)} here. Got {shown!r}.")
    return parts


def _numbers_of(producer: list[str]) -> tuple[int | None, int | None]:
    """The number of a stream and that of its rows, for those that have them."""
    if not producer:
        return None, None
    numbers = producer[1:]
    if len(numbers) not in (1, 2) or not all(re.fullmatch(r"[0-9]{1,18}", n) for n in numbers):
        msg = (
            "a producer names itself and a whole number that grows with each stream: rows/NAME/12, "
            "or with its 500 rows rows/NAME/12/500. Got "
            f"{'/'.join(producer)!r} behind the first part."
        )
        raise DataError(msg)
    return int(numbers[0]), int(numbers[1]) if numbers[1:] else None


def _parse_ticket(ticket: bytes) -> dict[str, Any]:
    try:
        text = ticket.decode()
        asked = json.loads(text) if text.startswith("{") else {"get": text}
    except (ValueError, RecursionError):
        asked = {}
    where, by = asked.get("where") or "", asked.get("by") or ()
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, list | tuple) else [None]
    is_text = all(isinstance(text, str) for text in (where, *names))
    known = {"get", "where", "by"} if asked.get("get") == "table" else {"get", "where"}
    if not is_text or asked.get("get") not in GET or asked.keys() - known:
        msg = (
            f"a ticket is {listed(GET)}, or JSON with one of them as get, with where, and for a "
            "table with by."
        )
        raise DataError(msg)
    return dict(asked)


@contextmanager
def _told_to_client() -> Iterator[None]:
    """What is raised on purpose goes to the client; other errors of Arrow's tell our paths, too."""
    try:
        yield
    except (SketchshiftError, UnicodeDecodeError) as error:
        raise fl.FlightServerError(str(error)[:LONGEST]) from error
    except OSError as error:
        msg = f"the server cannot read or write its cube: {error.strerror}. Nothing was changed."
        raise fl.FlightServerError(msg) from error


def read_token(path: Anywhere | None) -> str | None:
    """The token: the first line of a file, or what SKETCHSHIFT_TOKEN holds."""
    if path is None:
        return os.environ.get("SKETCHSHIFT_TOKEN") or None
    with Path(path).open(encoding="utf-8") as file:
        token = file.readline().strip()
    if not token:
        raise DataError(f"the file {str(path)!r} of the token begins with an empty line.")
    return token
