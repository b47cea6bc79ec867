"""Every public name is documented, in its docstring and in the reference."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from enum import Enum
from pathlib import Path

import numpydoc.docscrape
import pytest

import sketchshift as ss
import sketchshift_papers

ROOT = Path(__file__).parents[2]
NEEDS_CUPY = re.compile(r"sketchshift\.kernels\.cuda\.(?!source)")
MODULES = [
    importlib.import_module(info.name)
    for package in (ss, sketchshift_papers)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("__main__")
    and (importlib.util.find_spec("cupy") or not NEEDS_CUPY.match(info.name))
]
PUBLIC = [getattr(module, name) for module in (ss, ss.privacy) for name in module.__all__]
CLASSES = [thing for thing in PUBLIC if inspect.isclass(thing)]
FUNCTIONS = [thing for thing in PUBLIC if inspect.isfunction(thing)]
RESULTS = {
    ss.Decoding,
    ss.decoders.KCurve,
    ss.decoders.Round,
    ss.decoders.Step,
}  # made by the library, never by hand
RESULTS |= {
    ss.drift.ClusterChange,
    ss.drift.Comparison,
    ss.drift.Distance,
    ss.SketchTable,
    ss.drift.Watch,
}
RESULTS |= {
    ss.decoders.Certificate,
    ss.index.CoarseLists,
    ss.drift.SinceWhen,
    ss.decoders.Trust,
    ss.drift.WatchedSlice,
    ss.drift.Window,
}
RESULTS |= {
    ss.metrics.Assignment,
    ss.decoders.ClusterProfile,
    ss.live.Cube,
    ss.decoders.Profile,
    ss.profiling.Survey,
}
RESULTS |= {ss.profiling.SurveyedColumn, ss.decoders.Trait}
SKETCHES = {ss.Sketch, ss.privacy.PrivateSketch}  # likewise
NOUNS = [c for c in CLASSES if not issubclass(c, Exception | Enum) and c not in SKETCHES]


def public_methods(class_: type) -> list[object]:
    members = vars(class_).items()
    callables = (getattr(class_, name) for name, _ in members if not name.startswith("_"))
    return [m for m in callables if inspect.isfunction(m) or inspect.ismethod(m)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_name_a_module_offers_exists_and_stands_once(module):
    """That they are sorted is ruff's to check (RUF022)."""
    names = module.__all__

    assert all(hasattr(module, name) for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_function_and_class_has_a_docstring(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert inspect.getdoc(thing), f"{module.__name__}.{name}"


@pytest.mark.parametrize("thing", [*NOUNS, *FUNCTIONS], ids=lambda thing: thing.__name__)
def test_public_docstrings_describe_exactly_the_parameters(thing):
    """The Parameters section and the signature name the same things."""
    section = "Attributes" if thing in RESULTS else "Parameters"
    documented = numpydoc.docscrape.NumpyDocString(inspect.getdoc(thing))[section]
    names = [name for p in documented for name in p.name.replace("*", "").split(", ")]

    assert names == list(inspect.signature(thing).parameters)


@pytest.mark.parametrize("class_", NOUNS, ids=lambda class_: class_.__name__)
def test_public_methods_describe_their_parameters(class_):
    for method in public_methods(class_):
        parameters = [p for p in inspect.signature(method).parameters if p not in ("self", "cls")]
        text = inspect.getdoc(method) or ""
        assert text, method
        if parameters:
            assert all(re.search(rf"\b{p}\b", text) for p in parameters), method


@pytest.mark.parametrize("name", [*ss.__all__, *ss.privacy.__all__])
def test_every_public_name_stands_in_the_reference(name):
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")

    assert re.search(rf"\b{name}\b", reference)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module):
    results = doctest.testmod(module)

    assert results.failed == 0


def test_the_reference_links_every_word_of_the_glossary_and_no_other():
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")

    lists = re.findall(r":::\{glossary\}\n(.*?):::", glossary, flags=re.DOTALL)
    terms = [re.findall(r"^(\S.*)$", body, flags=re.MULTILINE) for body in lists]
    linked = re.findall(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`", reference)

    assert len(terms) == 2  # everyday words, and those of experts
    assert all(words == sorted(words, key=str.lower) for words in terms)
    assert set(linked) == {*terms[0], *terms[1]}
