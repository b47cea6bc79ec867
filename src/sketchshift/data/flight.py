"""Rows from Arrow Flight: ``grpc://host:port/path``, one batch at a time.

A path is asked for as a descriptor first. A server that does not know descriptors gets it as a
ticket. Each pass asks anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from sketchshift.data.arrow import batch_blocks, fields_of, give_width
from sketchshift.data.source import Access, Block, Request, Source, choose
from sketchshift.errors import DataError, MissingDependencyError

try:
    import pyarrow.flight as fl
except ImportError as cause:
    _MISSING = (
        "Arrow Flight needs pyarrow.flight, which this pyarrow was built without. Install all of "
        "pyarrow: pip install --force-reinstall pyarrow, or conda install pyarrow, which is more "
        "than pyarrow-core."
    )
    raise MissingDependencyError(_MISSING) from cause

__all__ = ["FlightAddress", "connect", "fl", "open_flight"]

SCHEMES = {"grpc": "grpc+tcp", "grpc+tcp": "grpc+tcp", "grpc+tls": "grpc+tls"}


@dataclass(frozen=True)
class FlightAddress:
    """A stream of a Flight server.

    Attributes
    ----------
    location : str
        Of the server, as Arrow writes it.
    path : tuple of str
        Of a descriptor; joined by "/", the ticket of a server without descriptors.
    command : str or None
        Instead of a path: what the server is asked for, such as a query.
    user, secret : str
        Never part of a name or an error. Without a user, the secret is a token.
    ca : str or None
        A file with the certificates to trust, in PEM. Default: those that gRPC comes with.
    """

    location: str
    path: tuple[str, ...]
    command: str | None = None
    user: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    ca: str | None = None

    @property
    def name(self) -> str:
        """For messages, without credentials."""
        where = self.location.replace("grpc+tcp", "grpc")
        return f"{where}/{'/'.join(self.path)}" + ("?command=..." if self.command else "")

    @classmethod
    def parse(cls, text: str) -> FlightAddress:
        """Read ``grpc://user:password@host:port/path`` or ``grpc://:token@host:port?command=...``.

        Parameters
        ----------
        text : str
            ``grpc+tls://`` for a server with a certificate; ``?ca=file.pem`` names a file of
            certificates to trust.
        """
        url = urlsplit(text)
        said = parse_qs(url.query)
        path = tuple(unquote(part) for part in url.path.strip("/").split("/") if part)
        command, ca = (said.pop(name, [None])[0] for name in ("command", "ca"))
        if said or url.hostname is None or url.port is None or bool(path) == (command is not None):
            msg = (
                "the address of a Flight stream is grpc://host:port/path, or "
                f"grpc://host:port?command=... Got {url.scheme}://{url.hostname}:{url.port}{url.path}."
            )
            raise DataError(msg)
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        location = f"{SCHEMES[url.scheme]}://{host}:{url.port}"
        return cls(
            location, path, command, unquote(url.username or ""), unquote(url.password or ""), ca
        )


def connect(
    location: str, user: str = "", secret: str = "", ca: str | None = None
) -> tuple[Any, Any]:
    """A client, and the options of each of its calls.

    Parameters
    ----------
    location : str
        Of a server.
    user, secret : str
        A name and a password, or a token alone.
    ca : str, optional
        A file with the certificates to trust.
    """
    client = fl.connect(location, tls_root_certs=None if ca is None else Path(ca).read_bytes())
    if user:
        header = client.authenticate_basic_token(user, secret)
        return client, fl.FlightCallOptions(headers=[header])
    headers = [(b"authorization", f"Bearer {secret}".encode())] if secret else []
    return client, fl.FlightCallOptions(headers=headers)


def open_flight(address: str, request: Request) -> Source:
    """Read the streams of a Flight server one after the other.

    Parameters
    ----------
    address : str
        As :meth:`FlightAddress.parse` reads it.
    request : Request
        All columns travel; those asked for are kept.

    Returns
    -------
    source : Source
        Holds about one batch of the server and one block. Each pass asks the server again, which
        is to give the same rows.
    """
    stream = FlightAddress.parse(address)
    request.refuse_weight_array("a Flight stream")
    with _readers(stream) as (n_rows, readers):
        first = next(readers, None)
        if first is None:
            raise DataError(f"{stream.name} has no stream of rows. Check the path.")
        choice = choose(fields_of(first.schema), request, stream.name)
        choice = give_width(choice, _batches(chain([first], readers)), request)
    rows = request.rows_for(choice.n_features)

    def read() -> Iterator[Block]:
        with _readers(stream) as (total, opened):

            def done(n: int) -> float | None:
                return min(1.0, n / total) if total else None

            yield from batch_blocks(_batches(opened), choice, rows, source=stream.name, done=done)

    d = choice.n_features
    return Source(choice.labels, d, n_rows, read, Access.DISK, vector=choice.vector)


def _batches(readers: Iterator[Any]) -> Iterator[Any]:
    for reader in readers:
        for chunk in reader:
            if chunk.data is not None:
                yield chunk.data


@contextmanager
def _readers(stream: FlightAddress) -> Iterator[tuple[int | None, Iterator[Any]]]:
    """How many rows there are, where the server says it, and the readers of its streams."""
    with report_trouble(stream.name):
        client, options = connect(stream.location, stream.user, stream.secret, stream.ca)
        with client:
            n_rows, endpoints = _find_endpoints(client, stream, options)
            yield n_rows, _open_endpoints(client, stream, endpoints, options)


def _find_endpoints(client: Any, stream: FlightAddress, options: Any) -> tuple[int | None, Any]:
    if stream.command is None:
        descriptor = fl.FlightDescriptor.for_path(*stream.path)
    else:
        descriptor = fl.FlightDescriptor.for_command(stream.command.encode())
    try:
        info = client.get_flight_info(descriptor, options)
    except (NotImplementedError, pa.ArrowNotImplementedError):  # then it knows tickets alone
        wanted = stream.command or "/".join(stream.path)
        return None, [fl.FlightEndpoint(wanted.encode(), [])]
    return (info.total_records if info.total_records >= 0 else None), info.endpoints


def _open_endpoints(
    client: Any, stream: FlightAddress, endpoints: Any, options: Any
) -> Iterator[Any]:
    """Readers one after the other, each from the first place that has the rows."""
    for endpoint in endpoints:
        places = [place.uri.decode() for place in endpoint.locations]
        if not places or stream.location in places:
            yield client.do_get(endpoint.ticket, options)
            continue
        elsewhere, its_options = connect(places[0], stream.user, stream.secret, stream.ca)
        with elsewhere:
            yield elsewhere.do_get(endpoint.ticket, its_options)


@contextmanager
def report_trouble(name: str) -> Iterator[None]:
    """Say of a server that does not answer which one it is."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, KeyError) as cause:
        reason = str(cause).partition(". gRPC client debug context")[0].rstrip(".")
        msg = f"cannot read {name}: {reason}. Check the address, and that the server runs."
        raise DataError(msg) from cause
