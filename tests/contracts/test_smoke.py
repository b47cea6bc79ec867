"""What a stranger runs after installing: ``python -m sketchshift.smoke``."""

from __future__ import annotations

import re
import subprocess
import sys

import sketchshift as ss
from sketchshift import smoke
from sketchshift.kernels.cpu import KERNEL, library


def test_every_variant_and_the_reference_pass_here():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "sketchshift.smoke"], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"sketchshift {ss.__version__}" in done.stdout
    assert f"kernel: cpu with {KERNEL.variant.name} instructions" in done.stdout
    for variant in (*library.variants(), "NumPy reference"):
        for name in smoke.SPECS:
            assert f"ok      bytes of {name} sketch, {variant}\n" in done.stdout
    assert re.search(
        r"^ok      centroids of a decoding\n\d+ passed, 0 failed$", done.stdout, re.MULTILINE
    )


def test_one_byte_that_differs_is_a_failure(monkeypatch, capsys):
    right = ss.Sketch.to_bytes

    def wrong(sketch):
        content = bytearray(right(sketch))
        content[-1] ^= 1
        return bytes(content)

    monkeypatch.setattr(ss.Sketch, "to_bytes", wrong)

    assert smoke.main() == 1
    said = capsys.readouterr().out
    assert re.search(r"^FAILED  bytes of dense sketch, plain: its digest is", said, re.MULTILINE)


def test_clusters_in_other_places_are_a_failure_and_the_variant_in_use_stays(monkeypatch, capsys):
    monkeypatch.setattr(smoke, "TOLERANCE", 1e-9)
    before = KERNEL.variant

    assert smoke.main() == 1
    assert "FAILED  centroids of a decoding: they are" in capsys.readouterr().out
    assert KERNEL.variant is before


def test_a_library_that_is_not_there_is_a_failure(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(library, "FILE", tmp_path / "kernels.native.so")

    assert smoke.main() == 1
    assert "FAILED  compiled kernels: the compiled kernels (kernels" in capsys.readouterr().out
