"""Streams of messages as data that changes: Redis, and Kafka's protocol.

Nothing is acknowledged to a broker and no group of consumers is made there: the position of a
stream is kept by whoever follows it, beside the sums of the rows up to it, so that both move in one
step. A broker only hands out messages from a position on.

Messages that a broker dropped before they were read are a gap. It is refused, unless the address
says ``gaps=skip``: then the position counts what was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sketchshift._text import counted
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.live.changes import Change, ChangingSource
from sketchshift.live.messages import Message, read_messages

__all__ = ["Address", "Broker", "Page", "Stream", "open_stream"]

Position = dict[str, Any]

MESSAGES, MOST_MESSAGES = 10_000, 1_000_000
"""Messages between two commits, and what may be asked for."""

PAGE_BYTES = 2**25
"""Bytes between two commits, about: messages that hold tables may be large."""

FIRST_PAGE = 64
"""Messages that are taken before it is known how large they are."""

SECONDS = 10.0
"""How long a broker may take to answer."""

PAUSE = 0.1
"""How long to wait for a page to fill, where messages come one by one."""

GROUP = "sketchshift"
"""What Kafka wants to be told; it keeps nothing for it."""


@dataclass(frozen=True)
class Address:
    """Where a stream is, and how it is read.

    Attributes
    ----------
    kind, host, port, stream : str, str, int, str
        Of the broker, and the name of the stream or topic there.
    user, password : str or None
        Never part of a name or an error.
    start : {"oldest", "newest"}
        Where somebody begins who has no position yet.
    batch : int
        Most messages between two commits.
    skips_gaps : bool
        Whether messages that are gone are counted rather than refused.
    options : dict
        What else the address says.
    """

    kind: str
    host: str
    port: int
    stream: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    start: str = "oldest"
    batch: int = MESSAGES
    skips_gaps: bool = False
    options: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The identity of the stream."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        kind = self.kind.replace("rediss", "redis")  # one server, with or without TLS
        database = int(self.options.get("db", "0"))
        which = f"?db={database}" if database else ""
        return f"{kind}://{host}:{self.port}/{self.stream}{which}"


PORTS = {"redis": 6379, "rediss": 6379, "kafka": 9092}
OPTIONS = {"redis": {"db"}, "rediss": {"db"}, "kafka": set[str]()}


def parse_address(text: str) -> Address:
    """The address of a stream: ``redis://user:password@host:port/stream?from=newest``.

    Parameters
    ----------
    text : str
        Behind ``?`` may stand ``from=oldest`` or ``from=newest``, ``batch=1000``, ``gaps=skip``;
        for Redis ``db=1``; for Kafka settings of librdkafka, which have dots in their names.
    """
    try:
        url = urlsplit(text)
        port = url.port or PORTS[url.scheme]
    except (ValueError, KeyError):  # whose words may hold a part of a password
        msg = (
            "this is no address of a stream. It looks like redis://host:6379/stream; signs such as "
            "/, # and @ in a password are written as %2F, %23 and %40."
        )
        raise DataError(msg) from None
    kind, stream = url.scheme, unquote(url.path.strip("/"))
    if not stream:
        msg = (
            f"the address of a stream names it behind the host: {kind}://{url.hostname or 'host'}:"
            f"{port}/STREAM. Got no name."
        )
        raise DataError(msg)
    said = dict(parse_qsl(url.query, keep_blank_values=True))
    start = _choose(said, "from", ("oldest", "newest"))
    gaps = _choose(said, "gaps", ("refuse", "skip"))
    batch = said.pop("batch", str(MESSAGES))
    if not (batch.isdecimal() and 1 <= int(batch) <= MOST_MESSAGES):
        msg = f"batch={batch} in the address of a stream must be from 1 to {MOST_MESSAGES:,}."
        raise DataError(msg)
    strange = [o for o in said if o not in OPTIONS[kind] and not (kind == "kafka" and "." in o)]
    if strange:
        msg = (
            f"the address of a stream cannot say {strange[0]!r}. It knows from, batch, gaps"
            f"{''.join(f', {o}' for o in sorted(OPTIONS[kind]))}."
        )
        raise DataError(msg)
    if not said.get("db", "0").isdecimal():
        raise DataError("db in the address of a stream must be a number: redis://host/stream?db=1.")
    user, password = _credentials(url)
    host = url.hostname or "127.0.0.1"
    return Address(
        kind, host, port, stream, user, password, start, int(batch), gaps == "skip", said
    )


def _choose(said: dict[str, str], name: str, choices: tuple[str, ...]) -> str:
    """An option of an address, taken out of what it says; the first is the default."""
    value = said.pop(name, choices[0])
    if value not in choices:
        msg = f"{name}={value} in the address of a stream must be one of {', '.join(choices)}."
        raise DataError(msg)
    return value


def _credentials(url: SplitResult) -> tuple[str | None, str | None]:
    user, password = url.username, url.password
    return unquote(user) if user else None, unquote(password) if password else None


@dataclass(frozen=True)
class Page:
    """Some messages, and the position behind them.

    Attributes
    ----------
    messages : list of Message
        In the order of the stream; of each partition, where it has some.
    position : dict
        What JSON can hold.
    """

    messages: list[Message]
    position: Position


class _PageSize:
    """How many messages to take next, so that pages together make batches of the size asked for."""

    def __init__(self, batch: int) -> None:
        self._batch, self._taken, self._fitting = batch, 0, FIRST_PAGE

    def __int__(self) -> int:
        return min(self._batch - self._taken % self._batch, self._fitting)

    def saw(self, messages: list[Message]) -> None:
        """Learn how many there were, and how large."""
        if messages:
            self._taken += len(messages)
            mean = _bytes_of(messages) / len(messages)
            self._fitting = max(1, int(PAGE_BYTES / max(mean, 1.0)))


class Broker(Protocol):
    """Who hands out the messages of one stream."""

    def pages(self, position: Position | None) -> Iterator[Page]:
        """Messages from a position on, up to the newest there is; then it ends.

        Parameters
        ----------
        position : dict or None
            Of a page; None: where the address says that one begins. Then the first page may have
            no messages, but only a position.
        """


class Stream:
    """The messages of a stream, as changes of the rows that they bring.

    Parameters
    ----------
    address : Address
        Where it is.
    """

    def __init__(self, address: Address) -> None:
        self.address, self.name = address, address.name

    def changes(self, since: Mapping[str, Any] | None) -> Iterator[Change]:
        """What came since a position, in order; ends at the message that is the newest now."""
        broker = BROKERS[self.address.kind](self.address)
        for page in self._join(broker.pages(None if since is None else dict(since))):
            added, removed = read_messages(page.messages, self.name)
            yield Change(added, removed, page.position)

    def _join(self, pages: Iterator[Page]) -> Iterator[Page]:
        """Small pages together, up to as many messages or bytes as a commit may have."""
        held: list[Message] = []
        position: Position | None = None
        for page in pages:
            held, position = held + page.messages, page.position
            if len(held) >= self.address.batch or _bytes_of(held) >= PAGE_BYTES:
                yield Page(held, position)
                held, position = [], None
        if position is not None:
            yield Page(held, position)


def _bytes_of(messages: list[Message]) -> int:
    return sum(message.n_bytes for message in messages)


def open_stream(address: str) -> ChangingSource:
    """The stream of an address, as :func:`sketchshift.live.follow` asks for it."""
    return Stream(parse_address(address))


def _import_client(name: str, address: Address) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as cause:
        msg = (
            f"reading {address.name} needs the package {cause.name}. Install it: "
            "pip install 'sketchshift[streams]'."
        )
        raise MissingDependencyError(msg) from cause


@contextmanager
def _report_trouble(address: Address, *faults: type[Exception]) -> Iterator[None]:
    """Say of a broker that does not answer what its client says; it knows no credentials."""
    damage: tuple[type[Exception], ...] = (OSError, *faults)  # timeouts are among these
    try:
        yield
    except DataError:
        raise
    except damage as cause:
        reason = (str(cause) or type(cause).__name__).rstrip(".")
        runs = "runs, speaks TLS," if address.kind == "rediss" else "runs"
        msg = (
            f"cannot read {address.name}: {reason}. Check that the server {runs} and takes these "
            "credentials. What is committed stays; a new start goes on from there."
        )
        raise DataError(msg) from cause


def _pass_gap(address: Address, position: Position, lost: int, where: str) -> Position:
    """The position with what is lost, where that was allowed."""
    if address.skips_gaps:
        return {**position, "lost": position.get("lost", 0) + lost}
    msg = (
        f"{counted(lost, 'message')} of {address.name} cannot be read any more: the broker dropped "
        f"what was not read yet, {where}. Begin a new state if there is a copy of what is gone. To "
        "go on without it, add gaps=skip to the address, behind a ?. Let the broker keep messages "
        "longer than a follower may rest."
    )
    raise DataError(msg)


def _refuse_other(address: Address, stands: str, holds: str) -> DataError:
    """The stream is not the one that was read before."""
    msg = (
        f"{address.name} is not the stream that was read before: reading stopped at {stands}, but "
        f"{holds}. It was made anew, or went back to an old copy. Begin a new state."
    )
    return DataError(msg)


# Redis: entries have ids of two numbers, and the stream counts all that were ever added.


class RedisBroker:
    """Entries of a stream of Redis 7 or later.

    The position has the ``id`` of the last entry read, and how many entries had been ``added`` up
    to it. The entries behind it must be as many as were added since, or some are gone.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._redis = _import_client("redis", address)

    def pages(self, position: Position | None) -> Iterator[Page]:
        """As :class:`Broker` says."""
        a, size, end = self._address, _PageSize(self._address.batch), None
        with _report_trouble(a, self._redis.RedisError), self._connect() as client:
            while True:
                info, entries = self._fetch(client, position, int(size))
                if position is None:
                    position = self._begin(info)
                    yield Page([], position)
                    continue
                end = end or _redis_id(info["last-generated-id"])
                position = self._check(info, entries, position, int(size))
                if not entries:
                    return
                messages = [_redis_message(*entry) for entry in entries]
                added = position["added"] + len(messages)
                position = {**position, "id": messages[-1].id, "added": added}
                yield Page(messages, position)
                if _redis_id(position["id"]) >= end:
                    return
                size.saw(messages)

    def _connect(self) -> Any:
        a = self._address
        once_more = import_module("redis.retry").Retry(
            import_module("redis.backoff").NoBackoff(), 1
        )
        return self._redis.Redis(
            a.host,
            a.port,
            int(a.options.get("db", 0)),
            username=a.user,
            password=a.password,
            ssl=a.kind == "rediss",
            socket_timeout=SECONDS,
            socket_connect_timeout=SECONDS,
            retry=once_more,
        )

    def _fetch(self, client: Any, position: Position | None, n: int) -> tuple[Any, list[Any]]:
        """What the stream says of itself and its next entries, as of one moment."""
        stream, since = self._address.stream, "0-0" if position is None else position["id"]
        with client.pipeline(transaction=True) as both:
            both.xinfo_stream(stream)
            both.xrange(stream, f"({since}", "+", count=n)
            info, entries = both.execute(raise_on_error=False)
        if isinstance(entries, Exception):
            raise entries
        if isinstance(info, Exception) and "no such key" not in str(info):
            raise info
        if isinstance(info, Exception):  # a stream that nothing was ever added to
            info = {"last-generated-id": b"0-0", "entries-added": 0, "length": 0}
        if "entries-added" not in info:
            msg = (
                f"{self._address.name} is served by a Redis before version 7, which does not count "
                "entries: what it drops would be lost unseen. Take Redis 7 or later."
            )
            raise DataError(msg)
        return info, entries

    def _begin(self, info: Mapping[str, Any]) -> Position:
        if self._address.start == "newest":
            return {"id": info["last-generated-id"].decode(), "added": info["entries-added"]}
        return {"id": "0-0", "added": info["entries-added"] - info["length"]}

    def _check(
        self, info: Mapping[str, Any], entries: list[Any], position: Position, n: int
    ) -> Position:
        """Refuse a stream whose entries behind the position are not all there."""
        last, added = info["last-generated-id"].decode(), info["entries-added"]
        if _redis_id(last) < _redis_id(position["id"]) or added < position["added"]:
            stands = f"entry {position['id']}, the {position['added']:,}th"
            holds = f"its last entry is {last}, the {added:,}th"
            raise _refuse_other(self._address, stands, holds)
        first: Any = info.get("first-entry")
        if len(entries) < n:  # these are all that are left
            lost = added - position["added"] - len(entries)
        elif _redis_id(first[0]) > _redis_id(position["id"]):  # none before them is there
            lost = added - position["added"] - info["length"]
        else:
            lost = 0  # nothing was cut off; what was deleted between is seen at the end
        if lost <= 0:
            return position
        oldest = first[0].decode() if first else "none"
        where = f"the last one read is {position['id']}, the oldest there is {oldest}"
        position = _pass_gap(self._address, position, lost, where)
        return {**position, "added": position["added"] + lost}


def _redis_id(text: bytes | str) -> tuple[int, int]:
    first, _, second = (text.decode() if isinstance(text, bytes) else text).partition("-")
    return int(first), int(second)


def _redis_message(place: bytes, fields: Mapping[bytes, bytes]) -> Message:
    texts = {name.decode(errors="replace"): value for name, value in fields.items()}
    return Message(place.decode(), texts)


# Kafka: each partition of a topic counts for itself.


class KafkaBroker:
    """Messages of a topic of Kafka, or of whatever speaks its protocol.

    The position has the ``offsets`` of the next messages by partition. Partitions that are new are
    read from their beginning. Offsets may have holes, which compaction and transactions leave:
    only what lies before the oldest message of a partition is known to be gone.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._kafka = _import_client("confluent_kafka", address)

    def pages(self, position: Position | None) -> Iterator[Page]:
        """As :class:`Broker` says."""
        with _report_trouble(self._address, self._kafka.KafkaException):
            consumer = self._connect()
            try:
                yield from self._pages(consumer, position)
            finally:
                consumer.close()

    def _connect(self) -> Any:
        a = self._address
        settings = {
            "bootstrap.servers": f"{a.host}:{a.port}",
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "log_level": 2,
            **({"sasl.username": a.user} if a.user else {}),
            **({"sasl.password": a.password} if a.password else {}),
            **a.options,
        }
        return self._kafka.Consumer(settings)

    def _pages(self, consumer: Any, position: Position | None) -> Iterator[Page]:
        size, ends = _PageSize(self._address.batch), self._find_ends(consumer)
        if position is None:
            which = 1 if self._address.start == "newest" else 0
            position = {"offsets": {number: marks[which] for number, marks in ends.items()}}
            yield Page([], position)
        position = self._check(position, ends)
        offsets = position["offsets"]
        left = {number for number, (_, end) in ends.items() if offsets[number] < end}
        if not left:
            return
        consumer.assign([self._place(number, offsets[number]) for number in sorted(left)])
        patience = SECONDS
        while left:
            n_left = sum(ends[number][1] - offsets[number] for number in left)
            found = consumer.consume(min(int(size), n_left), PAUSE)
            patience = SECONDS if found else patience - PAUSE
            if patience <= 0:
                raise TimeoutError(f"no message came within {SECONDS:g} seconds")
            messages = []
            for message in found:
                number = str(message.partition())
                if self._is_message(message):
                    messages.append(Message(f"{number}/{message.offset()}", message.value()))
                    offsets = {**offsets, number: message.offset() + 1}
                else:
                    left.discard(number)
                if offsets[number] >= ends[number][1]:
                    left.discard(number)
            position = {**position, "offsets": offsets}
            if messages:
                yield Page(messages, position)
            size.saw(messages)

    def _find_ends(self, consumer: Any) -> dict[str, tuple[int, int]]:
        """The oldest offset of each partition, and the one behind its newest."""
        topic = consumer.list_topics(self._address.stream, SECONDS).topics[self._address.stream]
        if topic.error is not None:
            raise self._kafka.KafkaException(topic.error)
        return {
            str(number): consumer.get_watermark_offsets(self._place(str(number)), SECONDS)
            for number in sorted(topic.partitions)
        }

    def _place(self, number: str, offset: int = 0) -> Any:
        return self._kafka.TopicPartition(self._address.stream, int(number), offset)

    def _check(self, position: Position, ends: Mapping[str, tuple[int, int]]) -> Position:
        """Refuse a topic that has not all messages behind the position."""
        for number, (oldest, end) in ends.items():
            offset = position["offsets"].get(number, 0)
            if offset > end:
                stands = f"offset {offset} of partition {number}"
                raise _refuse_other(self._address, stands, f"that ends at {end}")
            if offset < oldest:
                where = f"offsets {offset} to {oldest - 1} of partition {number}"
                position = _pass_gap(self._address, position, oldest - offset, where)
            offsets = {**position["offsets"], number: max(offset, oldest)}
            position = {**position, "offsets": offsets}
        gone = sorted(position["offsets"].keys() - ends.keys())
        if gone:
            holds = f"it has {counted(len(ends), 'partition')} now"
            raise _refuse_other(self._address, f"partition {gone[0]} among others", holds)
        return position

    def _is_message(self, message: Any) -> bool:
        """Whether it is one, and not the news that a partition ends here."""
        error = message.error()
        if error is None:
            return True
        if error.code() != self._kafka.KafkaError._PARTITION_EOF:
            raise self._kafka.KafkaException(error)
        return False


BROKERS: dict[str, Callable[[Address], Broker]] = {
    "redis": RedisBroker,
    "rediss": RedisBroker,
    "kafka": KafkaBroker,
}
