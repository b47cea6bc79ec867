"""A follower that is killed again and again loses no message and counts none twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.sketch.file import is_cube

pytestmark = pytest.mark.brokers
KILLS, PATIENCE = 20, 60
SPEC = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=1.0, columns=("x", "y"))
NURSERY = """
import os, sys, time
import sketchshift as ss
import sketchshift.live.brokers, sketchshift.live.following
address, state, plan = sys.argv[1:]
spec = ss.SketchSpec.from_json(open(plan).read())
ss.live.follow(address, state + "-warm", spec=spec, by="country", n_threads=1)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        while True:
            ss.live.follow(address, state, spec=spec, by="country", n_threads=1)
            time.sleep(0.01)
    print(child, flush=True)
    os.waitpid(child, 0)
"""
"""Starts follower after follower, each in a process of its own that has loaded all already."""


X = np.random.default_rng(0).normal(size=(40_000, 2))
COUNTRIES = np.where(X[:, 0] > 0, "FR", "DE")


@contextmanager
def producing(broker, stream):
    """Write messages in a thread until the block ends; yields the list of rows written."""
    sent, is_over = [], Event()

    def produce():
        while not is_over.is_set() or len(sent) < 1200:
            new = range(len(sent), len(sent) + 40)
            bodies = [{"x": X[i, 0], "y": X[i, 1], "country": COUNTRIES[i]} for i in new]
            broker.send([json.dumps(body).encode() for body in bodies], stream)
            sent.extend(new)
            time.sleep(0.05)

    writer = Thread(target=produce)
    writer.start()
    try:
        yield sent
    finally:
        is_over.set()
        writer.join(PATIENCE)


def version_of(state):
    return ss.live.Cube.open(state).version if is_cube(state) else 0


def wait_for_work(state, before):
    end = time.monotonic() + PATIENCE
    while version_of(state) == before:
        assert time.monotonic() < end, "nothing is committed"
        time.sleep(0.005)


def test_twenty_kills_while_messages_come_change_nothing(broker, stream, tmp_path):
    """Against a sketch of all rows at once: bytes are equal, in all and by key."""
    moments, state, plan = random.Random(0), tmp_path / "state", tmp_path / "plan.json"
    plan.write_text(SPEC.to_json(), encoding="utf-8")
    broker.send([], stream)
    address = broker.address(stream, batch=100)
    words = [sys.executable, "-c", NURSERY, address, str(state), str(plan)]
    versions = []
    with (
        producing(broker, stream) as sent,
        subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as nursery,
    ):
        for _ in range(KILLS):
            nursery.stdin.write("\n")
            nursery.stdin.flush()
            child = int(nursery.stdout.readline())
            try:
                if moments.random() < 0.8:  # else it may be killed before it has done anything
                    wait_for_work(state, version_of(state))
                time.sleep(moments.uniform(0.0, 0.2))
            finally:
                os.kill(child, signal.SIGKILL)
            versions.append(version_of(state))
        nursery.stdin.close()

    cube = ss.live.follow(address, state, spec=SPEC, by="country")

    assert len(set(versions)) > KILLS // 2  # kills came while there was work
    rows = pa.table({"x": X[sent, 0], "y": X[sent, 1], "country": COUNTRIES[sent]})
    assert cube.table() == ss.sketch_by(rows, "country", SPEC)
    assert cube.merge().to_bytes() == ss.sketch(X[sent], SPEC).to_bytes()


def test_two_followers_of_one_stream_count_each_message_once(broker, stream, tmp_path):
    rows = X[:2000]
    broker.send([json.dumps({"x": x, "y": y}).encode() for x, y in rows.tolist()], stream)
    address = broker.address(stream, batch=50)
    ss.live.Cube.create(tmp_path / "state", SPEC)
    both = [Thread(target=ss.live.follow, args=(address, tmp_path / "state")) for _ in range(2)]

    for follower in both:
        follower.start()
    for follower in both:
        follower.join(PATIENCE)

    assert ss.live.Cube.open(tmp_path / "state").merge() == ss.sketch(rows, SPEC)
