"""Makes tests/goldens/gguf/quantised.golden.safetensors: rows of numbers, and the bytes of the blocks that the `gguf` package
makes of them.

    python -m venv venv && venv/bin/pip install gguf safetensors numpy
    venv/bin/python tests/oracles/quantise_goldens.py [FOLDER]
"""

import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

COLS = 96


def rows_of_numbers():
    random = np.random.default_rng(11)
    rows = [random.normal(size=COLS) * 10.0**exponent for exponent in range(-9, 5) for _ in range(3)]
    rows.append(np.zeros(COLS))
    rows.append(np.where(np.arange(COLS) == 37, -3.25, 0))
    # Ties: halves of a step, and the largest magnitude with both signs.
    rows.append(np.concatenate([np.arange(32) - 16, (np.arange(32) - 16) / 2, np.arange(32) * 8 - 127.0]))
    rows.append((random.integers(0, 32, COLS) - 16) * np.float32(0.0045166))  # of Q5_0, whose halves are ties of Q4_0
    rows.append(np.concatenate([[5, -5], random.uniform(-5, 5, 30), [-5, 5], random.uniform(-5, 5, 62)]))
    rows.append(random.uniform(-5e5, 5e5, COLS))  # d of Q4_0 is near the largest float16
    rows.append(random.normal(size=COLS) * 1e-40)  # subnormal
    return np.array(rows, dtype=np.float32)


def main():
    folder = pathlib.Path(__file__).parents[1] / "goldens" / "gguf"
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv[1])
    numbers = rows_of_numbers()
    with np.errstate(all="ignore"):
        tensors = {kind.name: gguf.quants.quantize(numbers, kind) for kind in (Type.Q8_0, Type.Q4_0)}
    for name, blocks in tensors.items():
        assert np.isfinite(gguf.quants.dequantize(blocks, Type[name])).all(), name
    save_file({"numbers": numbers, **tensors}, folder / "quantised.golden.safetensors")


main()
