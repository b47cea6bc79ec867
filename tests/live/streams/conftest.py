"""Real brokers, each on a free port with a folder of its own; skipped where one is missing."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest

PATIENCE = 60  # seconds, on a busy machine
KAFKA = """
import sys, confluent_kafka
broker = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 2})
print(next(iter(broker.list_topics(timeout=30).brokers.values())).port, flush=True)
sys.stdin.read()
"""
"""librdkafka has a broker of its own for tests, which other processes can reach."""


def need(package, program=None):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"no package {package} here: pip install 'sketchshift[streams]'")
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"no {program} here: `make test-brokers`")


class Broker:
    """A server, and what a producer does with it."""

    kind = ""
    is_counted_by_partition = False

    def __init__(self, port):
        self.port = port

    def address(self, stream="s", **options):
        said = "&".join(f"{name}={value}" for name, value in options.items())
        return f"{self.kind}://127.0.0.1:{self.port}/{stream}" + (f"?{said}" if said else "")


class Redis(Broker):
    kind = "redis"

    def client(self):
        import redis

        return redis.Redis(port=self.port)

    def send(self, bodies, stream="s"):
        with self.client() as client, client.pipeline(transaction=False) as all_of_them:
            for body in bodies:
                all_of_them.xadd(stream, {"data": body} if isinstance(body, bytes) else body)
            all_of_them.execute()

    def drop_oldest(self, n, stream="s"):
        with self.client() as client:
            client.xtrim(stream, maxlen=client.xlen(stream) - n, approximate=False)

    def drop(self, which, stream="s"):
        with self.client() as client:
            client.xdel(stream, client.xrange(stream)[which][0])

    def begin_anew(self, stream="s"):
        with self.client() as client:
            client.delete(stream)
        self.send([b'{"x": 1, "y": 1}'], stream)


class Kafka(Broker):
    kind = "kafka"
    is_counted_by_partition = True

    def send(self, bodies, stream="s"):
        import confluent_kafka

        producer = confluent_kafka.Producer(
            {"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 2}
        )
        for body in bodies:
            producer.produce(stream, body)
        assert producer.flush(PATIENCE) == 0


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory, start_server):
    need("redis", "redis-server")
    words = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir"]
    words += [str(tmp_path_factory.mktemp("redis")), "--port"]
    with start_server(lambda port: [*words, str(port)]) as port:
        yield Redis(port)


@pytest.fixture(scope="session")
def kafka_server():
    need("confluent_kafka")
    words = [sys.executable, "-c", KAFKA]
    with subprocess.Popen(words, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL) as process:
        yield Kafka(int(process.stdout.readline()))
        process.kill()


@pytest.fixture(params=["redis", "kafka"])
def broker(request):
    """Each kind of broker in turn."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def stream(request):
    """A name of a stream that no other test has."""
    return "s" + str(abs(hash(request.node.nodeid)) % 10**12)
