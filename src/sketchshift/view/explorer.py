"""The explorer's answers: its page, clusters for any k and slice, comparisons, a report.

A request holds a few whole numbers (:class:`Query`): no path, no condition and no text. Who may
ask is the business of ``server``.
"""

from __future__ import annotations

import shlex
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sketchshift._threads import one_blas_thread
from sketchshift.decoders import Decoder, Decoding, Fit, KCurve
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.decoders.turnkey import decoder_named
from sketchshift.errors import DataError, SketchshiftError, SpecError
from sketchshift.sketch import AnySketch
from sketchshift.view.document import (
    SketchFile,
    build_document,
    build_trends,
    build_view,
    compare_slices,
    curve_record,
    select_rest,
    to_json,
)
from sketchshift.view.page import render, render_report

__all__ = ["Explorer", "Fits", "OutdatedError", "Query", "Turns"]

# Requests: a few whole numbers, each with its limits.

MOST_PAGE = 999_999_999
"""The largest number that a page draws for itself."""


@dataclass(frozen=True)
class Query:
    """Numbers of a request.

    Attributes
    ----------
    k : int
        Number of clusters.
    choice : int
        Place in the list of selections.
    before, after : int
        Places of two selections to compare; ``after`` may be one further, for all other rows.
    page : int
        Who asks: a number that a page draws when it is opened.
    """

    k: int = 1
    choice: int = 0
    before: int = 0
    after: int = 0
    page: int = 0

    @classmethod
    def read(cls, texts: Mapping[str, str], max_clusters: int, n_choices: int) -> Query:
        """Read a query; anything but the known numbers within their limits is refused.

        Parameters
        ----------
        texts : mapping of str to str
            Names and values as they came.
        max_clusters, n_choices : int
            The limits.

        Returns
        -------
        query : Query
            What was not said has its default.
        """
        limits = {
            "k": (1, max_clusters),
            "choice": (0, n_choices - 1),
            "before": (0, n_choices - 1),
            "after": (0, n_choices),
            "page": (0, MOST_PAGE),
        }
        unknown = set(texts) - {field.name for field in fields(cls)}
        if unknown:
            raise SpecError(f"a request has {', '.join(limits)}, and nothing else.")
        return cls(**{name: _number(name, text, *limits[name]) for name, text in texts.items()})


def _number(name: str, text: str, low: int, high: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    if not is_number or not low <= int(text) <= high:
        raise SpecError(f"{name} must be a whole number from {low} to {high}.")
    return int(text)


# Clusters of the slices of a subject for any k, from one fit of each slice.
#
# A fit takes most of the time and serves every number of clusters, so that it is kept: moving k
# costs a k-means of its points, and going back costs nothing.

MOST_KEPT = 64
"""Fits that are kept, those asked for last, and decodings and curves."""

Check = Callable[[], None]


class Fits:
    """Decodings of the slices of a subject.

    The same as ``decode_range(sketch, [k, max_clusters], seed=seed)[0]``, to the bit.

    Parameters
    ----------
    subject : SketchFile
        What is looked at.
    max_clusters : int or None
        The largest k. None takes what the sketch can serve.
    seed : int, default=0
        Of the decoder.
    decoder : Decoder, str or None
        As in :func:`sketchshift.decode`.
    """

    def __init__(
        self,
        subject: SketchFile,
        max_clusters: int | None = None,
        *,
        seed: int = 0,
        decoder: Decoder | str | None = None,
    ) -> None:
        self.subject, self.seed = subject, seed
        self.decoder = decoder_named(decoder, "Fits")
        most = most_clusters(subject.whole.spec, max_clusters)
        self.max_clusters = max(1, min(most, subject.whole.count))
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def decoding(self, choice: int, k: int, check: Check) -> Decoding:
        """The k clusters of the rows of a choice.

        Parameters
        ----------
        choice : int
            Number of a choice of the subject.
        k : int
            From 1 to ``max_clusters``.
        check : callable
            Called between fits; what it raises ends the computation.

        Returns
        -------
        decoding : Decoding
            Kept for the next time.
        """
        found: Decoding = self._keep(self._decode, choice, k, check)
        return found

    def curve(self, choice: int, check: Check) -> KCurve | None:
        """The misfit for each number of clusters; None where there is nothing to choose."""
        found: KCurve | None = self._keep(self._curve, choice, check)
        return found

    def _keep(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """A result that is kept, made if it is not there; the last argument is the check."""
        key = (make, *arguments[:-1])
        if key not in self._kept:
            self._kept[key] = make(*arguments)
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]

    @one_blas_thread
    def _decode(self, choice: int, k: int, check: Check) -> Decoding:
        sketch = self._sketch(choice)
        if sketch.count < k:
            rows = f"{sketch.about}{sketch.count} rows"
            msg = f"there are {rows}, too few for {k} clusters. Ask for fewer."
            raise DataError(msg)
        return replace(self._fit(choice, check).decode(k), sketch=sketch)

    @one_blas_thread
    def _curve(self, choice: int, check: Check) -> KCurve | None:
        fit: Any = self._fit(choice, check)
        curve: KCurve | None = None
        if hasattr(fit, "decode_auto"):
            with suppress(DataError):  # without waves there is none
                curve = fit.decode_auto(self.max_clusters).curve
        is_trivial = curve is not None and len(curve.score) == 1 and not curve.misfit.any()
        return None if is_trivial else curve

    def _fit(self, choice: int, check: Check) -> Fit:
        found: Fit = self._keep(self._make_fit, choice, check)
        return found

    def _make_fit(self, choice: int, check: Check) -> Fit:
        progress = lambda _: check()  # noqa: E731
        return self.decoder.fit(
            self._sketch(choice), self.max_clusters, seed=self.seed, progress=progress
        )

    def _sketch(self, choice: int) -> AnySketch:
        return self.subject.sketch_of(self.subject.choices[choice])


# One computation at a time, and of those that a page waits for the latest only.


class OutdatedError(SketchshiftError):
    """A newer request made this one pointless."""


class Turns:
    """Turns at computing. A page has one: its newer ones take over, those of other pages wait.

    A computation calls its check now and then; once the same page has asked anew, the check raises
    and the computation ends there.
    """

    def __init__(self) -> None:
        self._newest: dict[int, object] = {}
        self._computing = threading.Lock()

    def ask(self, page: int) -> Check:
        """Take a turn: those that this page asked for before are outdated from now on.

        Parameters
        ----------
        page : int
            Who asks.

        Returns
        -------
        check : callable
            Raises :class:`OutdatedError` once there is a newer turn of the page.
        """
        own = self._newest[page] = object()

        def check() -> None:
            if self._newest[page] is not own:
                raise OutdatedError("a newer request came in. Ask again if it is still wanted.")

        return check

    @contextmanager
    def turn(self, check: Check) -> Iterator[None]:
        """Wait until nobody else computes; outdated turns are not begun."""
        with self._computing:
            check()
            yield


FIRST = 10
"""Clusters that are shown first, where there may be so many."""

Compute = Callable[[Query, Check], Any]
Answer = Callable[[Request], Awaitable[Response]]


class Explorer:
    """All answers about one file.

    Parameters
    ----------
    file : SketchFile
        What is looked at.
    max_clusters : int or None
        The largest k. None takes what the sketch can serve.
    seed : int, default=0
        Of the decoder.
    """

    def __init__(self, file: SketchFile, max_clusters: int | None = None, *, seed: int = 0) -> None:
        self.file, self.fits = file, Fits(file, max_clusters, seed=seed)
        self.first = min(FIRST, self.fits.max_clusters)
        self._turns = Turns()

    def application(self) -> Starlette:
        """The application, without its guard."""
        computed = {"decode": self.decode, "details": self.details, "compare": self.compare}
        routes = [Route(f"/{name}", self._answer_with(of)) for name, of in computed.items()]
        routes += [Route("/", self._page), Route("/report.html", self._report)]
        return Starlette(routes=routes, exception_handlers={SketchshiftError: _failure})

    def decode(self, query: Query, check: Check) -> dict[str, Any]:
        """The clusters of a selection."""
        selection = self.file.choices[query.choice]
        decoding = self.fits.decoding(query.choice, query.k, check)
        return build_view(selection, self.file.sketch_of(selection), decoding)

    def details(self, query: Query, check: Check) -> dict[str, Any]:
        """What may come a moment later: other numbers of clusters, other slices."""
        curve = self.fits.curve(query.choice, check)
        check()
        decoding = self.fits.decoding(query.choice, query.k, check)
        sketch = self.file.sketch_of(self.file.choices[query.choice])
        trends = build_trends(self.file, decoding, sketch)
        return {"curve": curve_record(curve), "trends": trends}

    def compare(self, query: Query, check: Check) -> dict[str, Any]:
        """Two selections side by side, told by the clusters that are shown."""
        choices = self.file.choices
        before, is_rest = choices[query.before], query.after == len(choices)
        after = select_rest(self.file, before) if is_rest else choices[query.after]
        decoding = self.fits.decoding(query.choice, query.k, check)
        decoded = self.file.sketch_of(choices[query.choice])
        return compare_slices(self.file, before, after, decoding, decoded)

    def page(self) -> str:
        """The page, which asks for its first clusters itself."""
        live = {
            "choices": [selection.label for selection in self.file.choices],
            "max_clusters": self.fits.max_clusters,
            "n_clusters": self.first,
        }
        command = shlex.join(["sketchshift", "report", self.file.name, "--serve"])
        return render(build_document(self.file, [command]) | {"live": live})

    def report(self, query: Query, check: Check) -> str:
        """The report on what is shown: the same clusters, to the bit."""
        selection = self.file.choices[query.choice]
        decoding = self.fits.decoding(query.choice, query.k, check)
        curve = self.fits.curve(query.choice, check)
        return render_report(self.file, selection, decoding, curve, self._python_lines(query))

    def _python_lines(self, query: Query) -> list[str]:
        """Python that gives the same clusters again."""
        name, where = self.file.name, self.file.choices[query.choice].where
        condition = "" if where is None else f", where={where!r}"
        if self.file.table is not None:
            read = f"ss.load({name!r}{condition}).merge()"
        else:
            read = f"ss.load({name!r})"
        numbers = f"[{query.k}, {self.fits.max_clusters}]"
        return [
            "import sketchshift as ss",
            f"sketch = {read}",
            f"clusters = ss.decoders.decode_range(sketch, {numbers}, seed={self.fits.seed})[0]",
        ]

    def _answer_with(self, compute: Compute) -> Answer:
        async def answer(request: Request) -> Response:
            query = self._read_query(request)
            check = self._turns.ask(query.page)
            record = await run_in_threadpool(self._in_turn, compute, query, check)
            return Response(to_json(record), media_type="application/json")

        return answer

    async def _page(self, request: Request) -> Response:
        return Response(self.page(), media_type="text/html")

    async def _report(self, request: Request) -> Response:
        query = self._read_query(request)
        text = await run_in_threadpool(self._in_turn, self.report, query, lambda: None)
        headers = {"content-disposition": 'attachment; filename="report.html"'}
        return Response(text, media_type="text/html", headers=headers)

    def _read_query(self, request: Request) -> Query:
        return Query.read(request.query_params, self.fits.max_clusters, len(self.file.choices))

    def _in_turn(self, compute: Compute, query: Query, check: Check) -> Any:
        with self._turns.turn(check):
            return compute(query, check)


async def _failure(request: Request, error: Exception) -> Response:
    status = 409 if isinstance(error, OutdatedError) else 400
    return Response(to_json({"error": str(error)}), status, media_type="application/json")
