"""Files for tests/io, written by the reference libraries; and a check of ours by them.

    pip install numpy torch safetensors
    python tests/oracles/io_goldens.py                        writes tests/goldens/io
    python tests/oracles/io_goldens.py --check BUILD/io_written   opens what io_tests wrote there
"""
import argparse
import pathlib

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "io"


def numbers(count):
    """Eighths between -6.25 and 6.25: exact in every float type. The test computes the same."""
    return np.array([(i * 37 % 101 - 50) / 8 for i in range(count)])


def tensors():
    half_bits = np.array([0, 1, 2, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x8000, 0x8001, 0xFBFF, 0xFC00] +
                         list(range(3, 0x7C00, 211)), dtype=np.uint16)
    half = half_bits.view(np.float16)
    return {
        "f32": torch.tensor(numbers(15).reshape(3, 5), dtype=torch.float32),
        "f16": torch.tensor(numbers(14).reshape(2, 7), dtype=torch.float16),
        "bf16": torch.tensor(numbers(33).reshape(3, 11), dtype=torch.bfloat16),
        "f64": torch.tensor(numbers(5), dtype=torch.float64),
        "i64": torch.arange(-3, 4, dtype=torch.int64) * 2**40,
        "i32": torch.arange(-5, 6, dtype=torch.int32),
        "i16": torch.arange(-2, 3, dtype=torch.int16),
        "i8": torch.arange(-2, 1, dtype=torch.int8),
        "u8": torch.arange(250, 253, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "halves": torch.from_numpy(half.copy()),
        "halves as f32": torch.from_numpy(half.astype(np.float32)),
        "naïve \"name\"\n": torch.tensor([1.5]),
    }


def ours():
    """What tests/io/safetensors_test.cpp writes too: the bytes must be equal."""
    return {
        "encoder.0.w_q": torch.tensor(numbers(15).reshape(3, 5), dtype=torch.float32),
        "a.bias": torch.tensor(numbers(7), dtype=torch.float32),
        "steps": torch.tensor([2**40, -1], dtype=torch.int64),
        "ids": torch.tensor([[3], [-4]], dtype=torch.int32),
        "naïve \"name\"\n": torch.tensor([1.5]),
    }


def arrays():
    return {
        "float.npy": numbers(15).astype(np.float32).reshape(3, 5),
        "int.npy": np.arange(-3, 4, dtype=np.int32),
        "long.npy": np.array(2**40, dtype=np.int64),
        "none.npy": np.zeros((0, 3), dtype=np.float32),
        "deep.npy": np.arange(210, dtype=np.int64).reshape(1, 2, 3, 5, 7),
    }


def write():
    HERE.mkdir(parents=True, exist_ok=True)
    (HERE / "all_types.safetensors").write_bytes(safetensors.torch.save(tensors(), metadata={"format": "pt"}))
    (HERE / "ours.safetensors").write_bytes(safetensors.torch.save(ours(), metadata={"format": "pt"}))
    for name, array in arrays().items():
        np.save(HERE / name, array)


def check(folder):
    found = safetensors.torch.load_file(folder / "ours.safetensors")
    assert found.keys() == ours().keys(), found.keys()
    for name, tensor in ours().items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name
    with safetensors.safe_open(folder / "ours.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()
    assert not safetensors.numpy.load_file(folder / "none.safetensors")
    for name, array in arrays().items():
        again = np.load(folder / name)
        assert again.dtype == array.dtype and again.shape == array.shape and (again == array).all(), name
    print(f"{folder}: all files open and hold what they should")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=pathlib.Path)
    arguments = parser.parse_args()
    check(arguments.check) if arguments.check else write()
