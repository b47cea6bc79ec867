"""Options that mean nothing are refused, with the name of the parameter."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders import ClOmpr, SketchAndShift
from sketchshift.errors import SpecError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_atoms": 2}, "'n_atoms' parameter .* integer from 3 to"),
        ({"n_initializations": 0}, "'n_initializations' parameter of SketchAndShift"),
        ({"local_maximum": "newton"}, "one of 'sketched_mean_shift', 'plain_mean_shift', 'disc"),
        ({"local_maximum": 3}, "or an object that does the same. Got 3"),
        ({"fitted_model": "laplace"}, "one of 'dirac', 'gaussian'. Got 'laplace'"),
        ({"fitted_model": int}, "or an object that does the same"),
        ({"starts": "grid"}, "'starts' parameter of SketchAndShift must be one of 'normal'"),
        ({"refine": 1}, "'refine' parameter of SketchAndShift must be True or False"),
        ({"reuse_starts": None}, "'reuse_starts' parameter"),
    ],
)
def test_wrong_options_of_sketch_and_shift_are_refused(options, message):
    sketch = ss.sketch(np.zeros((5, 1)), ss.SketchSpec(1, 20, 1.0))

    with pytest.raises(SpecError, match=message):
        SketchAndShift(**options)(sketch, 3)


@pytest.mark.parametrize("option", ["n_iterations", "n_initializations", "n_restarts", "starts"])
def test_wrong_options_of_cl_ompr_are_refused(option):
    sketch = ss.sketch(np.zeros((5, 1)), ss.SketchSpec(1, 20, 1.0))

    with pytest.raises(SpecError, match=f"'{option}' parameter of ClOmpr"):
        ClOmpr(**{option: 0})(sketch, 3)
