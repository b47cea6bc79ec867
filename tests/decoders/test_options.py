"""Options that mean nothing are refused, with the name of the parameter."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.paper.climb import GradientAscent, SketchedMeanShift

WRONG = {
    ss.SketchAndShift: [
        ({"n_atoms": 2}, "'n_atoms' parameter .* integer from 3 to"),
        ({"n_initializations": 0}, "'n_initializations' parameter of SketchAndShift"),
        ({"local_maximum": "newton"}, "one of 'sketched_mean_shift', 'plain_mean_shift', 'disc"),
        ({"fitted_model": int}, "or an object that does the same"),
        ({"starts": "grid"}, "'starts' parameter of SketchAndShift must be one of 'normal'"),
        ({"refine": 1}, "'refine' parameter of SketchAndShift must be True or False"),
        ({"reuse_starts": None}, "'reuse_starts' parameter"),
        ({"threshold": "norm"}, "'threshold' parameter of SketchAndShift"),
        ({"repairs": 0}, "'repairs' parameter of SketchAndShift"),
    ],
    ss.ClOmpr: [
        ({option: 0}, f"'{option}' parameter of ClOmpr")
        for option in (
            "n_iterations",
            "n_initializations",
            "n_restarts",
            "starts",
            "repairs",
            "fine_tuning",
        )
    ],
    SketchedMeanShift: [({"step_size": 0}, "'step_size' parameter of SketchedMeanShift")],
    GradientAscent: [
        ({"step_size": 0}, "'step_size' parameter of GradientAscent"),
        ({"max_iterations": 0}, "'max_iterations' parameter"),
        ({"tolerance": -1}, "'tolerance' parameter"),
    ],
}


@pytest.mark.parametrize("made", WRONG)
def test_wrong_options_are_refused(made):
    sketch = ss.sketch(np.zeros((5, 1)), ss.SketchSpec(1, 20, 1.0))

    for options, message in WRONG[made]:
        with pytest.raises(ss.errors.SpecError, match=message):
            made(**options)(sketch, 3)
