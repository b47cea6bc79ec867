"""What the paper's first figure claims: d = 2, k = 3, N = 100 000, cluster_std 0.05."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sketchshift.decoders import ClOmpr, SketchAndShift

SHIFT = SketchAndShift(n_initializations=200, starts="uniform")
REFINED = replace(SHIFT, refine=True)
GAUSSIAN = replace(SHIFT, fitted_model="gaussian", reuse_starts=False)
PUBLISHED = replace(
    SHIFT,
    reuse_starts=False,
    local_maximum="plain_mean_shift",
    threshold="weight",
    repairs=False,
)
"""Algorithm 2 to the letter."""

# decoder, frequencies, bandwidths, and the RSE that is not reached and that is not passed
CLAIMS = {
    # measured over ten realizations: 1.001 to 1.020
    "sketch and shift is as good as Lloyd": (SHIFT, 1000, (0.03, 0.05, 0.1, 0.2, 0.3), 0, 1.05),
    "the published algorithm is as good": (PUBLISHED, 500, (0.2,), 0, 1.05),
    # 1.09 and 1.24; over the first three realizations 1.06 and 1.24
    "thirty frequencies are enough": (SHIFT, 30, (0.1, 0.2), 0, 1.3),
    # one start an atom, as published: 42 to 76
    "CL-OMPR fails at small bandwidths": (ClOmpr(), 1000, (0.03, 0.05, 0.1), 5, np.inf),
    # not in the paper: at bandwidth 0.5 Algorithm 2 alone fails (29), refined it is at 1.000
    "Algorithm 2 fails at large bandwidths": (SHIFT, 1000, (0.5,), 5, np.inf),
    "a joint descent mends large bandwidths": (REFINED, 1000, (0.5,), 0, 1.005),
    # 1.000 to 1.006
    "it does no harm to small ones": (REFINED, 1000, (0.03, 0.1, 0.3), 0, 1.02),
    # A Gaussian wider than the kernel has a large weight, and hardly shows in the sketch.
    # 1.03, 1.08 and 1.24; by the weights alone 2.2 to 7.3 in place of the first two
    "thirty are enough for Gaussians": (GAUSSIAN, 30, (0.05, 0.1, 0.2), 0, 1.3),
    "and where starts are reused": (
        replace(GAUSSIAN, reuse_starts=True),
        30,
        (0.05, 0.1, 0.2),
        0,
        1.3,
    ),
}


@pytest.mark.parametrize("n_realizations", [3, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("claim", CLAIMS)
def test_errors_are_as_the_first_figure_claims(figure1, claim, n_realizations):
    decoder, m, bandwidths, least, most = CLAIMS[claim]

    for bandwidth in bandwidths:
        assert least < figure1.mean_rse(decoder, m, bandwidth, n_realizations) <= most
