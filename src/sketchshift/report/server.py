"""The explorer's answers: its page, clusters for any k and slice, comparisons, a report.

Numbers are all that a request can say (``wishes``): there is no path, no condition and no text
in it. Who may ask is the business of ``guard``.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sketchshift.errors import DataError, SketchshiftError
from sketchshift.report.comparison import compare_slices, rest_of
from sketchshift.report.document import curve_facts, document, to_json, view
from sketchshift.report.fits import Fits
from sketchshift.report.latest import Latest, OutdatedError
from sketchshift.report.page import render
from sketchshift.report.report import report_of
from sketchshift.report.subject import Subject
from sketchshift.report.trends import trends
from sketchshift.report.wishes import Wish

__all__ = ["Explorer"]

FIRST = 10
"""Clusters that are shown first, where there may be so many."""

Check = Callable[[], None]
Compute = Callable[[Wish, Check], Any]
Answer = Callable[[Request], Awaitable[Response]]


class Explorer:
    """All answers about one subject.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    max_clusters : int or None
        The largest k. None takes what the sketch can serve.
    """

    def __init__(self, subject: Subject, max_clusters: int | None = None) -> None:
        self.subject, self.fits = subject, Fits(subject, max_clusters)
        self.first = min(FIRST, self.fits.max_clusters)
        self._latest = Latest()

    def application(self) -> Starlette:
        """The application, without its guard."""
        computed = {"decode": self.decode, "details": self.details, "compare": self.compare}
        routes = [Route(f"/{name}", self._computed(of)) for name, of in computed.items()]
        routes.append(Route("/prepare", self._computed(self.prepare, idle=True)))
        routes += [Route("/", self._page), Route("/report.html", self._report)]
        return Starlette(routes=routes, exception_handlers={SketchshiftError: _failure})

    def decode(self, wish: Wish, check: Check) -> dict[str, Any]:
        """The clusters of a choice."""
        choice = self.subject.choices[wish.choice]
        decoding = self.fits.decoding(wish.choice, wish.k, check)
        return view(choice, self.subject.sketch_of(choice), decoding)

    def details(self, wish: Wish, check: Check) -> dict[str, Any]:
        """What may come a moment later: other numbers of clusters, other slices."""
        curve = self.fits.curve(wish.choice, check)
        check()
        decoding = self.fits.decoding(wish.choice, wish.k, check)
        sketch = self.subject.sketch_of(self.subject.choices[wish.choice])
        facts = {"curve": curve_facts(curve), "trends": trends(self.subject, decoding, sketch)}
        return facts | {"room": self.fits.room(wish.choice, check)}

    def prepare(self, wish: Wish, check: Check) -> dict[str, Any]:
        """Make ready what will probably be asked for next."""
        with suppress(DataError):  # too few rows: told to whoever does ask
            self.fits.decoding(wish.choice, wish.k, check)
        return {}

    def compare(self, wish: Wish, check: Check) -> dict[str, Any]:
        """Two choices side by side."""
        choices = self.subject.choices
        before, is_rest = choices[wish.before], wish.after == len(choices)
        after = rest_of(self.subject, before) if is_rest else choices[wish.after]
        return compare_slices(self.subject, before, after, wish.k)

    def page(self) -> str:
        """The page, which asks for its first clusters itself."""
        live = {
            "choices": [choice.label for choice in self.subject.choices],
            "max_clusters": self.fits.max_clusters,
            "n_clusters": self.first,
        }
        command = shlex.join(["sketchshift", "explore", self.subject.name])
        return render(document(self.subject, [command]) | {"live": live})

    def report(self, wish: Wish, check: Check) -> str:
        """The report on what is shown: the same clusters, to the bit."""
        choice = self.subject.choices[wish.choice]
        decoding = self.fits.decoding(wish.choice, wish.k, check)
        curve = self.fits.curve(wish.choice, check)
        return report_of(self.subject, choice, decoding, curve, self._lines(wish))

    def _lines(self, wish: Wish) -> list[str]:
        """Python that gives the same clusters again."""
        name, where = self.subject.name, self.subject.choices[wish.choice].where
        condition = "" if where is None else f", where={where!r}"
        if self.subject.table is not None:
            read = f"ss.SketchTable.from_parquet({name!r}{condition}).merge()"
        else:
            read = f"ss.privacy.load({name!r})" if self.subject.promise else f"ss.load({name!r})"
        numbers = f"[{wish.k}, {self.fits.max_clusters}]"
        return [
            "import sketchshift as ss",
            f"sketch = {read}",
            f"clusters = ss.decode_range(sketch, {numbers}, seed={self.fits.seed})[0]",
        ]

    def _computed(self, compute: Compute, *, idle: bool = False) -> Answer:
        async def answer(request: Request) -> Response:
            wish = self._wish(request)
            check = self._latest.ask(wish.page, idle=idle)
            facts = await run_in_threadpool(self._in_turn, compute, wish, check)
            return Response(to_json(facts), media_type="application/json")

        return answer

    async def _page(self, request: Request) -> Response:
        return Response(self.page(), media_type="text/html")

    async def _report(self, request: Request) -> Response:
        wish = self._wish(request)
        text = await run_in_threadpool(self._in_turn, self.report, wish, lambda: None)
        headers = {"content-disposition": 'attachment; filename="report.html"'}
        return Response(text, media_type="text/html", headers=headers)

    def _wish(self, request: Request) -> Wish:
        return Wish.of(request.query_params, self.fits.max_clusters, len(self.subject.choices))

    def _in_turn(self, compute: Compute, wish: Wish, check: Check) -> Any:
        with self._latest.turn(check):
            return compute(wish, check)


async def _failure(request: Request, error: Exception) -> Response:
    status = 409 if isinstance(error, OutdatedError) else 400
    return Response(to_json({"error": str(error)}), status, media_type="application/json")
