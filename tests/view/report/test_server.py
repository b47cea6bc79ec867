"""Several pages ask one server at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from sketchshift.decoders import Turnkey
from sketchshift.view.explorer import Explorer
from sketchshift.view.server import listening


class Held:
    """Fits that begin, and end when they may; meanwhile they look whether they are outdated."""

    def __init__(self, monkeypatch):
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._fit = Turnkey().fit
        monkeypatch.setattr(Turnkey, "fit", self)

    def __call__(self, sketch, most, *, seed, progress):
        self.begun.set()
        while not self.may_end.wait(0.01):
            progress(0)
        return self._fit(sketch, most, seed=seed, progress=progress)


@pytest.fixture
def held(monkeypatch):
    held = Held(monkeypatch)
    yield held
    held.may_end.set()


@pytest.fixture
def ask(subject):
    """Ask an explorer that has fitted nothing, in a thread of its own, for the status."""

    def status(url):
        try:
            with urlopen(url, timeout=60) as answer:
                return int(answer.status)
        except HTTPError as error:
            with error:
                return error.code

    with (
        listening(Explorer(subject, 2)) as address,
        address.in_background(),
        ThreadPoolExecutor(2) as pool,
    ):
        yield lambda choice, page: pool.submit(
            status, f"{address.url}decode?k=2&choice={choice}&page={page}"
        )


def test_a_page_waits_for_the_fit_of_another_and_both_are_answered(ask, held):
    first = ask(choice=1, page=1)
    assert held.begun.wait(60)
    other = ask(choice=2, page=2)
    with pytest.raises(TimeoutError):
        first.result(0.5)  # time enough for the fit to hear of the other page
    held.may_end.set()

    assert (first.result(60), other.result(60)) == (200, 200)


def test_a_wish_ends_the_fit_that_its_own_page_wished_before(ask, held):
    first = ask(choice=1, page=1)
    assert held.begun.wait(60)
    other = ask(choice=2, page=1)

    assert first.result(60) == 409
    held.may_end.set()
    assert other.result(60) == 200
