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

import sketchshift as ss

ROOT = Path(__file__).parents[2]
NEEDS_CUPY = re.compile(r"sketchshift\.kernels\.cuda\.(?!source)")
REFERENCE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
FOR_BUILDERS = {"CorrelationFunction", "Problem", "one_blas_thread"}  # a sentence and a formula
BY_HAND_NEVER = {ss.Sketch, ss.privacy.PrivateSketch}  # made by the library, with private fields


def modules():
    """Every module of the package that can be imported here."""
    for info in pkgutil.walk_packages(ss.__path__, f"{ss.__name__}."):
        is_here = importlib.util.find_spec("cupy") or not NEEDS_CUPY.match(info.name)
        if is_here and not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def public_things():
    """Functions and classes that the reference describes, by their names."""
    rooms = [ss, *(getattr(ss, name) for name in dir(ss) if name not in ss.__all__)]
    offered = {name: getattr(room, name) for room in rooms for name in room.__all__}
    return {
        name: thing
        for name, thing in offered.items()
        if re.search(rf"\b{name}\b", REFERENCE)
        and name not in FOR_BUILDERS
        and (inspect.isfunction(thing) or is_noun(thing))
    }


def is_noun(thing):
    """Whether it is a class with parameters of its own."""
    is_kind = inspect.isclass(thing) and not issubclass(thing, Exception | Enum)
    return is_kind and not getattr(thing, "_is_protocol", False) and thing not in BY_HAND_NEVER


def parameters_of(function):
    names = inspect.signature(function).parameters
    return [name for name in names if name != "self"]


def test_every_name_a_module_offers_exists_once_and_has_a_docstring():
    """That they are sorted is ruff's to check (RUF022)."""
    for module in modules():
        assert len(set(module.__all__)) == len(module.__all__), module.__name__
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isroutine(thing):
                assert inspect.getdoc(thing), f"{module.__name__}.{name}"


def test_public_docstrings_describe_exactly_the_parameters():
    """A section of the docstring, Attributes for results, and the signature name the same things."""
    for name, thing in public_things().items():
        sections = numpydoc.docscrape.NumpyDocString(inspect.getdoc(thing))
        documented = [
            [part for p in sections[title] for part in p.name.replace("*", "").split(", ")]
            for title in ("Parameters", "Attributes")
        ]
        assert parameters_of(thing) in documented, name


def test_public_methods_describe_their_parameters():
    for name, thing in public_things().items():
        own = [n for n in vars(thing) if not n.startswith("_")] if inspect.isclass(thing) else []
        for method in (
            getattr(thing, n)
            for n in own
            if inspect.isfunction(getattr(thing, n)) or inspect.ismethod(getattr(thing, n))
        ):
            text = inspect.getdoc(method) or ""
            assert text, (name, method)
            assert all(re.search(rf"\b{p}\b", text) for p in parameters_of(method)), (name, method)


def test_every_public_name_stands_in_the_reference():
    """In the other rooms, only what builders of decoders, laws and sources need is left out."""
    rooms = (ss, ss.drift, ss.engines, ss.index, ss.live, ss.privacy, ss.profiling, ss.view)
    names = {name for room in rooms for name in room.__all__} - {"Function", "Merge"}  # types

    assert [name for name in names if not re.search(rf"\b{name}\b", REFERENCE)] == []


def test_examples_in_docstrings_run():
    for module in modules():
        assert doctest.testmod(module).failed == 0, module.__name__
