"""Rows that a query gives: of PostgreSQL, of DuckDB and SQLite files, of connections to these.

A query is asked anew for every pass, within one transaction, so that a plan and the sketch behind
it see the same rows. Rows come a few at a time; columns that nobody asked for are not fetched.
Credentials are handed to the driver, and appear nowhere else.
"""

from __future__ import annotations

import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from sketchshift._paths import expand_home, shown
from sketchshift._text import SECRET, listed
from sketchshift._validation import parameter_error
from sketchshift.data.sample import random_bits
from sketchshift.data.source import Access, Block, Choice, Field, Request, Source, choose
from sketchshift.errors import DataError, MissingDependencyError, Option

__all__ = [
    "Query",
    "ask",
    "find_database",
    "open_database_file",
    "without_credentials",
]

SCHEMES = ("postgresql://", "postgres://")
SUFFIXES = (".duckdb", ".sqlite", ".sqlite3", ".db")
ROWS_SHOWN = 1024  # of a column whose type or length is looked at
FEWEST_PAGES = 1000  # whole pages are drawn where there are so many to draw
Batches = Generator[Any, None, None]
"""Record batches; what reads them is closed with it."""

SPARE = 1.05  # more rows than wanted are drawn, since their number varies


_NAME = r'(?:\w+|"(?:[^"]|"")+")'
_END = re.compile(r";(?:[\s;]|--[^\n'\"]*(?:\n|$))*$")
"""What may follow a query: a semicolon, and comments that are no part of a text."""

# What is asked, of which database.


@dataclass(frozen=True, repr=False)
class Query:
    """What is asked of a database: data, as a path or a frame is.

    Parameters
    ----------
    database : str, path or connection
        The address of a PostgreSQL server, ``postgresql://host/name``; a file of DuckDB or SQLite;
        or a connection of the packages ``duckdb`` or ``sqlite3``.
    text : str or None
        One SELECT, or the name of a table. None takes the only table there is.
    """

    database: Any
    text: str | None = None

    def __post_init__(self) -> None:
        is_text = isinstance(self.text, str) and self.text.strip(" \t\r\n;") != ""
        if not (self.text is None or is_text):
            must = "a SELECT, or the name of a table"
            raise parameter_error("sketch", "query", must, self.text)

    def __str__(self) -> str:
        """The database by name, without credentials."""
        if is_connection(self.database):
            return "the connection"
        return without_credentials(fspath(self.database))

    def __repr__(self) -> str:
        return f"Query({str(self)!r}, {self.text!r})"

    @property
    def table(self) -> str | None:
        """The name of a table, as it was written, where that is all that is asked."""
        text = "" if self.text is None else self.text.strip(" \t\r\n;")
        return text if re.fullmatch(rf"{_NAME}(\.{_NAME})*", text) else None

    @property
    def select(self) -> str:
        """The query as a SELECT, to be put in parentheses: the line break ends a comment."""
        if self.table is not None:
            return f"SELECT * FROM {self.table}"
        assert self.text is not None
        return _END.sub("", self.text) + "\n"


def ask(data: Any, query: str | None) -> Query | None:
    """What a database is asked; None for other data, which no query is asked of.

    Parameters
    ----------
    data : anything
        With a query an address, a file or a connection, as :class:`Query` has it.
    query : str or None
        One SELECT, or the name of a table; None, of an address: its only table.
    """
    if query is None:
        return Query(data) if is_database(data) else None
    is_file = isinstance(data, str | PathLike) and fspath(data).lower().endswith(SUFFIXES)
    if not (is_file or is_database(data) or is_connection(data)):
        given = (
            repr(shown(fspath(data))) if isinstance(data, str | PathLike) else type(data).__name__
        )
        msg = (
            f"a query is asked of a database, and {given} is none. Pass the address of one, "
            f"'postgresql://host/name', a file that ends in {', '.join(SUFFIXES)}, or a connection "
            "of duckdb or sqlite3; where= chooses rows of any table."
        )
        raise DataError(msg)
    return Query(data, query)


def is_database(data: Any) -> bool:
    """Whether a text is the address of a database."""
    return isinstance(data, str) and data.lower().startswith(SCHEMES)


def is_connection(data: Any) -> bool:
    """Whether an object is a connection that queries can be asked of; nothing is imported."""
    return _is_sqlite(data) or type(data).__name__ == "DuckDBPyConnection"


def _is_sqlite(data: Any) -> bool:
    kinds = ((kind.__module__, kind.__name__) for kind in type(data).__mro__)
    return ("sqlite3", "Connection") in kinds


# Addresses. What stands in them before an "@", and in parameters, is for the driver alone.


def without_credentials(address: str) -> str:
    """The address of a database without user, password and parameters; any other path as it is."""
    if not is_database(address):
        return address
    rest = address.partition("://")[2]
    place = re.split(r"[?#]", rest.rpartition("@")[2])[0]
    return f"postgresql://{place}"


def _secrets(address: str) -> list[str]:
    """What no message may hold: passwords of an address as written, and as they are meant."""
    rest = address.partition("://")[2]
    before, _, _ = rest.rpartition("@")
    found = [before.partition(":")[2], *re.split("[:@/]", before)[1:]]
    pairs = (pair.partition("=") for pair in rest.partition("?")[2].split("&"))
    found += [value for name, _, value in pairs if re.fullmatch(SECRET, name, re.I)]
    return sorted({s for text in found for s in (text, unquote(text)) if s}, key=len, reverse=True)


def _check_address(address: str) -> None:
    """Refuse an address whose password the driver would take for a host, and tell."""
    place, _, parameters = address.partition("://")[2].partition("?")
    ports = re.findall(r":([^,/]*)", place.partition("/")[0]) if "@" not in place else []
    are_parameters = all("=" in pair for pair in parameters.split("&"))
    is_cut = "@" in parameters and not (are_parameters and all(re.match(r"\d*$", p) for p in ports))
    if is_cut or "@" in place.partition("/")[2] or place.count("@") > 1:
        msg = (
            "cannot read the address of the database: its user or password holds one of the signs "
            "'@', '/' or '?'. Write them as %40, %2F and %3F, or leave the password out of the "
            "address and set PGPASSWORD or ~/.pgpass."
        )
        raise DataError(msg)


# From a query to a source.


def find_database(data: Any) -> Callable[[Request], Source] | None:
    """What opens a query, or a connection with one table; None for any other data."""
    query = Query(data) if is_connection(data) else data
    return partial(open_query, query) if isinstance(query, Query) else None


def open_query(query: Query, request: Request) -> Source:
    """Read what a database answers, a few rows at a time.

    Parameters
    ----------
    query : Query
        Asked anew for each pass.
    request : Request
        Other columns than those asked for are not fetched.

    Returns
    -------
    source : Source
        All passes see one state of the database. Memory: one block, and what the driver holds,
        16 MiB or one block. For a sample, rows are counted first; PostgreSQL draws them itself, of
        a named table by TABLESAMPLE.
    """
    from sketchshift.data.arrow import batch_blocks, give_width, share_of

    request.refuse_weight_array("a query")
    session = _open_session(query)
    choice = choose(session.fields, request, session.name)
    with closing(session.batches(replace(choice, keys=(), texts=()), ROWS_SHOWN)) as shown:
        choice = give_width(choice, shown, request)
    d, rows = choice.n_features, request.rows_for(choice.n_features)

    def blocks(batches: Batches) -> Iterator[Block]:
        done = share_of(session.n_rows) if session.n_rows else (lambda _: None)
        with closing(batches):
            yield from batch_blocks(batches, choice, rows, source=session.name, done=done)

    def read() -> Iterator[Block]:
        return blocks(session.batches(choice, rows))

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        return blocks(session.sample(choice, rows, n_rows, seed))

    return Source(choice.labels, d, None, read, Access.DISK, across=across, vector=choice.vector)


def open_database_file(path: Path, request: Request) -> Source:
    """The only table of a file of DuckDB or SQLite; of several, :class:`Query` chooses."""
    return open_query(Query(path), request)


def _open_session(query: Query) -> _Session:
    database = query.database
    if is_database(database):
        return _Postgres(query)
    if _is_sqlite(database):
        return _SQLite(query)
    if is_connection(database):
        return _DuckDB(query)
    try:
        with expand_home(database).open("rb") as file:
            start = file.read(16)
    except OSError as cause:
        raise DataError(f"cannot read {fspath(database)!r}: {cause.strerror}.") from cause
    if start.startswith(b"SQLite format 3\0"):
        return _SQLite(query)
    if start[8:12] == b"DUCK":
        return _DuckDB(query)
    msg = f"{fspath(database)!r} is a file of neither DuckDB nor SQLite, by its first bytes."
    raise DataError(msg)


class _Session(ABC):
    """A connection that reads one query, as often as wanted, from one state of the database."""

    faults: tuple[type[Exception], ...] = ()
    n_rows: int | None = None

    def __init__(self, query: Query) -> None:
        self.query, self.title = query, str(query)
        with self._told():
            self._connection = self._connect()
        if not is_connection(query.database):
            weakref.finalize(self, self._connection.close)
        if query.text is None:
            self.query = replace(query, text=self._only_table())

    @property
    def name(self) -> str:
        """What is read, for messages."""
        table = self.query.table
        what = "the query" if table is None else f"table {table}"
        return f"{what} of {self.title}"

    @abstractmethod
    def _connect(self) -> Any:
        """A connection within a transaction that reads."""

    @cached_property
    @abstractmethod
    def fields(self) -> list[Field]:
        """The columns that the query gives."""

    @abstractmethod
    def _execute(self, sql: str, rows: int) -> Batches:
        """Record batches of a statement."""

    @abstractmethod
    def tables(self) -> list[str]:
        """The tables and views there are, as a query would name them."""

    def batches(self, choice: Choice, rows: int) -> Batches:
        """Record batches with the columns of a choice, of about so many rows."""
        return self._read(f"SELECT {self._columns(choice)} FROM {self._from()}", rows)

    def sample(self, choice: Choice, rows: int, n_rows: int, seed: int) -> Batches:
        """About so many rows, each equally likely; all of them where there are no more."""
        share = self._count_for(n_rows)
        return self.batches(choice, rows) if share >= 1.0 else self._draw(choice, rows, share, seed)

    def _count_for(self, n_rows: int) -> float:
        """The share of all rows to draw; their number then tells how far a pass has come."""
        (self.n_rows,) = self._value(f"SELECT count(*) AS n FROM {self._from()}") or (0,)
        return SPARE * n_rows / max(self.n_rows or 0, 1)

    def _draw(self, choice: Choice, rows: int, share: float, seed: int) -> Batches:
        """A share of all rows, picked as they come."""
        from sketchshift.data.vectors import as_indices

        first, limit = 0, np.uint64(share * 2.0**64)
        with closing(self.batches(choice, rows)) as batches:
            for batch in batches:
                positions = np.arange(first, first + batch.num_rows)
                yield batch.take(as_indices(np.flatnonzero(random_bits(positions, seed) < limit)))
                first += batch.num_rows

    def _value(self, sql: str) -> tuple[Any, ...] | None:
        """The first row of a statement, if it has one."""
        with closing(self._read(sql)) as batches:
            for batch in batches:
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    return row
        return None

    def _read(self, sql: str, rows: int = ROWS_SHOWN) -> Batches:
        with self._told(), closing(self._execute(sql, rows)) as batches:
            yield from batches

    def _from(self) -> str:
        return f"({self.query.select}) AS asked"

    def _columns(self, choice: Choice) -> str:
        return ", ".join(_quoted(name) for name in choice.names) or "1 AS nothing"

    def _only_table(self) -> str:
        tables = self.tables()
        if len(tables) == 1:
            return tables[0]
        if not tables:
            raise DataError(f"there are no tables in {self.title}.")
        fact = f"{self.title} has {len(tables)} tables: {listed(tables)}. Choose one with "
        raise DataError(fact, Option("query", tables[0]), ", or pass a SELECT.")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the database as ours, without what its driver adds."""
        try:
            yield
        except self.faults as cause:
            raise self._explain(cause) from None

    def _explain(self, cause: Exception) -> DataError:
        words = " ".join(str(cause).split())
        return DataError(f"{self.title} cannot answer: {words.rstrip('.!?')}.{self._advice(cause)}")

    def _advice(self, cause: Exception) -> str:
        """What to do about it: after a table that is not there, those that are."""
        missing = self._missing_table(cause)
        if missing is None:
            is_syntax = "syntax error" in str(cause).lower()
            return " A query is one SELECT, or the name of a table." if is_syntax else ""
        tables = self.tables()
        if not tables:
            return " It has no tables."
        close = get_close_matches(missing, tables, n=1)
        return (f" Did you mean {close[0]}?" if close else "") + f" It has {listed(tables)}."

    @abstractmethod
    def _missing_table(self, cause: Exception) -> str | None:
        """The table that an error says is not there."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _written(name: str) -> str:
    """A name as a query would have it."""
    return name if re.fullmatch(r"\w+", name) else _quoted(name)


def _require(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as cause:
        package = module.partition(".")[0].replace("_", "-")
        msg = f"this needs {package}. Install it: pip install 'sketchshift[{extra}]'"
        raise MissingDependencyError(msg) from cause


# PostgreSQL, through the driver of ADBC: binary COPY becomes Arrow.

_NUMBERS = ("bool", "int2", "int4", "int8", "float4", "float8", "numeric")
_LISTS = ("_int2", "_int4", "_int8", "_float4", "_float8", "_numeric", "vector")
_CASTS = {"numeric": "float8", "_numeric": "float8[]", "vector": "real[]"}
_OTHERS = ("text", "varchar", "bpchar", "name", "date", "timestamp", "timestamptz", "bytea")
_TABLES = """SELECT CASE WHEN pg_table_is_visible(oid) THEN quote_ident(relname)
  ELSE relnamespace::regnamespace::text || '.' || quote_ident(relname) END AS name
FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
  AND relnamespace::regnamespace::text NOT LIKE 'pg\\_%'
  AND relnamespace::regnamespace::text <> 'information_schema'
  AND has_table_privilege(oid, 'SELECT') ORDER BY name"""
# the driver has no infinite days, and makes distant ones of the other sign of them
_ENDLESS = """CASE {0} WHEN 'infinity' THEN '9999-12-31' WHEN '-infinity' THEN '0001-01-01' \
ELSE {0} END"""
_ADVICE = {
    "42702": "Give each column a name of its own: SELECT a.x AS x, b.x AS other",
    "28": "Check user and password: in the address, in PGPASSWORD or in ~/.pgpass",
    "42501": "Ask for the right to read it, or query what you may read",
    "22003": "Round it in the query, or leave such rows out",
    "57014": "Ask for a longer statement_timeout, or for less",
    "40001": "Read again: a standby had to give up the state that was read",
}


class _Postgres(_Session):
    """One transaction of repeatable reads; errors lose the address and the statement."""

    def _connect(self) -> Any:
        import pyarrow as pa

        address = self.query.database
        _check_address(address)
        dbapi = _require("adbc_driver_postgresql.dbapi", "postgres")
        self.faults = (dbapi.Error, pa.ArrowException, OSError)
        connection = dbapi.connect("postgresql://" + address.partition("://")[2])
        self._begin(connection)
        return connection

    @staticmethod
    def _begin(connection: Any) -> None:
        # scans that start where another one stands would draw other rows each time
        for setting in (
            "TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
            "LOCAL synchronize_seqscans = off",
        ):
            with connection.cursor() as cursor:
                cursor.execute(f"SET {setting}")

    @cached_property
    def _types(self) -> dict[str, str]:
        with self._told(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._from()} LIMIT 0")
            schema = cursor.fetch_record_batch().schema
        return {f.name: f.metadata[b"POSTGRESQL:type"].decode() for f in schema}

    @cached_property
    def fields(self) -> list[Field]:
        """See :class:`_Session`."""
        return [
            Field(name, kind, kind in _NUMBERS, 0 if kind in _LISTS else None)
            for name, kind in self._types.items()
        ]

    def _columns(self, choice: Choice) -> str:
        return ", ".join(self._column(name) for name in choice.names) or "1 AS nothing"

    def _column(self, name: str) -> str:
        """Numbers as floats; types that Arrow has not, as text."""
        kind, quoted = self._types[name], _quoted(name)
        if kind in _CASTS:
            return f"{quoted}::{_CASTS[kind]} AS {quoted}"
        if kind in ("date", "timestamp", "timestamptz"):
            return f"{_ENDLESS.format(quoted)} AS {quoted}"
        is_known = kind in (*_NUMBERS, *_LISTS, *_OTHERS) and kind not in _CASTS
        return quoted if is_known else f"{quoted}::text AS {quoted}"

    def _execute(self, sql: str, rows: int) -> Batches:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            with closing(cursor.fetch_record_batch()) as reader:
                yield from reader

    def _draw(self, choice: Choice, rows: int, share: float, seed: int) -> Batches:
        """A share of all rows, drawn by the server."""
        select = f"SELECT {self._columns(choice)} FROM"
        n_pages = self._count_pages()
        if n_pages is not None:
            how = "SYSTEM" if n_pages * share >= FEWEST_PAGES else "BERNOULLI"
            how = f"TABLESAMPLE {how} ({100.0 * share}) REPEATABLE ({seed})"
            return self._read(f"{select} {self.query.table} {how}", rows)
        self._value(f"SELECT setseed({seed * 0.6180339887498949 % 1.0})::text AS s")
        return self._read(f"{select} {self._from()} WHERE random() < {share}", rows)

    def _count_pages(self) -> int | None:
        """Pages of a table that rows can be drawn from; None for a query, a view."""
        if self.query.table is None:
            return None
        name = self.query.table.replace("'", "''")
        found = self._value(
            "SELECT pg_relation_size(oid) / current_setting('block_size')::int AS n FROM pg_class "
            f"WHERE oid = to_regclass('{name}') AND relkind IN ('r', 'p', 'm')"
        )
        return None if found is None else int(found[0])

    def tables(self) -> list[str]:
        """See :class:`_Session`."""
        return [name for batch in self._read(_TABLES) for name in batch.column(0).to_pylist()]

    def _explain(self, cause: Exception) -> DataError:
        words = re.split(r"\n(?:LINE \d|CONTEXT:|Query was:)|\. SQLSTATE: ", str(cause))[0]
        hints = re.findall(r"\n(?:HINT|DETAIL): +(.+)", str(cause))
        words = re.split(r"(?:ERROR|FATAL): +|\[libpq\] ", words)[-1]
        words = " ".join(" ".join([words, *hints]).split()).rstrip(".!?")
        if re.search("URI|percent-encoded", words):  # what follows is a part of the address
            words = re.split(r':? "(?![]=])', words)[0]
        for secret in _secrets(self.query.database):
            words = words.replace(secret, "***")
        return DataError(f"{self.title} cannot answer: {words}.{self._advice(cause)}")

    def _advice(self, cause: Exception) -> str:
        state = getattr(cause, "sqlstate", None) or ""
        if "password authentication failed" in str(cause) or "no password" in str(cause):
            state = "28"  # of a connection that failed, the driver gives none
        if "statement timeout" in str(cause):
            state = "57014"  # nor of rows that were being read
        for start, advice in _ADVICE.items():
            if state.startswith(start):
                return f" {advice}."
        if "Failed to connect" in str(cause):
            return " Check host, port and name in the address, and that the server runs."
        return super()._advice(cause)

    def _missing_table(self, cause: Exception) -> str | None:
        found = re.search(r'relation "(.+?)" does not exist', str(cause))
        if found is None:
            return None
        self._connection.rollback()  # a transaction that failed answers nothing more
        return found[1]


# DuckDB, in this process.


class _DuckDB(_Session):
    def _connect(self) -> Any:
        import pyarrow as pa

        duckdb = _require("duckdb", "duckdb")
        self.faults = (duckdb.Error, pa.ArrowException, OSError)
        if is_connection(self.query.database):
            return self.query.database
        path = str(expand_home(self.query.database))
        connection = duckdb.connect(path, read_only=True)
        connection.begin()
        return connection

    @cached_property
    def fields(self) -> list[Field]:
        """See :class:`_Session`."""
        from sketchshift.data.arrow import fields_of

        with self._told():
            empty = self._connection.sql(f"SELECT * FROM {self._from()} LIMIT 0")
            return fields_of(empty.to_arrow_table().schema)

    def _execute(self, sql: str, rows: int) -> Batches:
        with closing(self._connection.sql(sql).to_arrow_reader(rows)) as reader:
            yield from reader

    def tables(self) -> list[str]:
        """See :class:`_Session`."""
        found = self._connection.sql(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = current_database() ORDER BY ALL"
        ).fetchall()
        written = ((schema, _written(name)) for schema, name in found)
        return [n if schema == "main" else f"{_written(schema)}.{n}" for schema, n in written]

    def _missing_table(self, cause: Exception) -> str | None:
        found = re.search(r"Table with name (\S+) does not exist", str(cause))
        return None if found is None else found[1]

    def _explain(self, cause: Exception) -> DataError:
        words = re.split(r"\n\n?LINE \d|\nDid you mean", str(cause))[0]
        if "different configuration" in words:
            words += ": this process has it open already. Pass that connection instead of the file"
        return super()._explain(type(cause)(words))


# SQLite, whose values have types and whose columns have none.

_KINDS: dict[type, str] = {int: "integer", float: "real", str: "text", bytes: "blob"}


def _kind_of(value: Any) -> str:
    """The type of a value; what converters of a connection make of one is taken as text."""
    return next((kind for type_, kind in _KINDS.items() if isinstance(value, type_)), "text")


class _SQLite(_Session):
    def _connect(self) -> Any:
        import sqlite3

        self.faults = (sqlite3.Error,)
        if is_connection(self.query.database):
            return self.query.database
        path = expand_home(self.query.database).resolve()
        address = f"file:{quote(str(path))}?mode=ro"
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute("BEGIN")  # what others write from now on is not seen
        return connection

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with closing(self._connection.cursor()) as cursor:
            cursor.row_factory = None  # tuples, whatever the connection makes of rows
            yield cursor

    @cached_property
    def fields(self) -> list[Field]:
        """The type of a column is that of its first values; numbers of both kinds are real."""
        with self._told(), self._cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._from()} LIMIT {ROWS_SHOWN}")
            names = [column[0] for column in cursor.description]
            columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
            kinds = [self._kind(*column) for column in zip(names, columns, strict=True)]
        numbers = ("integer", "real", "null")
        return [Field(name, kind, kind in numbers) for name, kind in zip(names, kinds, strict=True)]

    def _kind(self, name: str, values: Iterable[Any]) -> str:
        kinds = {_kind_of(value) for value in values if value is not None}
        if not kinds:
            sql = f"SELECT typeof({_quoted(name)}) FROM {self._from()} WHERE {_quoted(name)} "
            with self._cursor() as cursor:
                found = cursor.execute(f"{sql} IS NOT NULL LIMIT 1").fetchone()
            return "null" if found is None else str(found[0])
        if kinds <= {"integer", "real"}:
            return "integer" if kinds == {"integer"} else "real"
        return "blob" if "blob" in kinds else "text"

    def _execute(self, sql: str, rows: int) -> Batches:
        import pyarrow as pa

        kinds = {field.name: field.type for field in self.fields}
        with self._cursor() as cursor:
            cursor.execute(sql)
            names, first = [column[0] for column in cursor.description], 0
            while some := cursor.fetchmany(rows):
                columns = zip(names, zip(*some, strict=True), strict=True)
                arrays = [self._array(n, kinds.get(n, "integer"), v, first) for n, v in columns]
                yield pa.RecordBatch.from_arrays(arrays, names)
                first += len(some)

    def _array(self, name: str, kind: str, values: Sequence[Any], first: int) -> Any:
        """A column of a batch; numbers in a column of text become text, and text no number."""
        import pyarrow as pa

        try:
            if kind in ("integer", "null"):
                return pa.array(values, from_pandas=False)  # integers unless there are others
            if kind == "real":
                return pa.array(values, pa.float64())
            if kind == "text":
                texts = (v if v is None or isinstance(v, str) else str(v) for v in values)
                return pa.array(texts, pa.string())
            return pa.array(values, pa.binary())
        except (pa.ArrowException, TypeError, OverflowError):
            fits, cast = (bytes, "TEXT") if kind == "blob" else (int | float, "REAL")
            wrong = [row for row, v in enumerate(values) if not (v is None or isinstance(v, fits))]
        if not wrong:  # integers beyond 2**53 beside floats
            return pa.array([v if v is None else float(v) for v in values], pa.float64())
        msg = (
            f"row {first + wrong[0]} of {self.name} (the first is 0) has {values[wrong[0]]!r} in "
            f"the column {name!r}, whose first values are of type {kind}. Leave such rows out, or "
            f"convert them in the query: CAST({_quoted(name)} AS {cast})."
        )
        raise DataError(msg)

    def tables(self) -> list[str]:
        """See :class:`_Session`."""
        with self._cursor() as cursor:
            cursor.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            )
            return [_written(name) for (name,) in cursor]

    def _missing_table(self, cause: Exception) -> str | None:
        found = re.search(r"no such table: (\S+)", str(cause))
        return None if found is None else found[1]
