"""Servers in processes of their own, and the commands of the program."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from sketchshift.cli import main

PATIENCE = 60  # seconds, on a busy machine


def find_free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@contextmanager
def start(make_command, *given):
    """Run the command that ``make_command(*given, port)`` returns until the block ends."""
    port = find_free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(make_command(*given, port), **quiet) as process:
        try:
            end = time.monotonic() + PATIENCE
            while True:
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, "the server has ended"
                assert time.monotonic() < end, f"no server at port {port}"
                time.sleep(0.05)
            yield port
        finally:
            process.kill()


@pytest.fixture(scope="session")
def start_server():
    """Start a server at a free port, which the block gets once it answers."""
    return start


@pytest.fixture(scope="session")
def run():
    """Run a command of the program to its end, and return its output."""

    def run(*words, status=0):
        result = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
        assert result.exit_code == status, result.output
        return result.output

    return run
