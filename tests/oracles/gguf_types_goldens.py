"""Makes tests/goldens/gguf/types.gguf: metadata of every type, and a tensor of every type of numbers that is read, with the
numbers that the `gguf` package reads back (types.golden.safetensors); and what each bit of a block does (bits).

    python -m venv venv && venv/bin/pip install gguf safetensors numpy
    venv/bin/python tests/oracles/gguf_types_goldens.py [FOLDER]
"""

import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

SIMPLE = (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1)  # the package quantises them
# Of the others, and of these again where bits are concerned: at which bytes of a block a float16 lies.
HALVES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
    Type.MXFP4: [],  # byte 0 is an exponent
}


def with_halves(blocks, kind, numbers):
    """Blocks [count, bytes] with these numbers [count, at least 2] where float16 lie."""
    for i, at in enumerate(HALVES[kind]):
        blocks[:, at : at + 2] = numbers[:, i : i + 1].astype(np.float16).view(np.uint8)
    return blocks


def random_rows(random, kind, rows=3, cols=256):
    size, width = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows * cols // size, width)).astype(np.uint8)
    if kind == Type.MXFP4:
        blocks[:, 0] = random.integers(110, 140, len(blocks))
    return with_halves(blocks, kind, random.normal(size=(len(blocks), 2))).reshape(rows, -1)


def hashes(numbers):
    """32 bits of each row [count, n] of float32 (FNV-1a of its bytes), in which all zeros are alike, and all that are not
    finite."""
    numbers = np.where(np.isfinite(numbers), numbers + np.float32(0), np.float32(np.nan)).astype("<f4")
    found = np.full(len(numbers), 2166136261, dtype=np.uint64)
    for column in np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), -1).T:
        found = (found ^ column) * np.uint64(16777619) & np.uint64(0xFFFFFFFF)
    return found


def bits_of(kind):
    """For each bit of a block two hashes of its numbers: all other bits are 0, and all are 1, but float16 are 1.0 and the
    exponent is that of 1."""
    width = gguf.GGML_QUANT_SIZES[kind][1]
    found = []
    for rest in (0, 255):
        blocks = np.full((8 * width, width), rest, dtype=np.uint8)
        with_halves(blocks, kind, np.ones((len(blocks), 2)))
        if kind == Type.MXFP4:
            blocks[:, 0] = 128
        for bit in range(8 * width):
            blocks[bit, bit // 8] ^= 1 << bit % 8
        with np.errstate(all="ignore"):
            found.append(hashes(gguf.quants.dequantize(blocks, kind)))
    return np.stack(found).astype(np.uint32).view(np.int32)


def make_types(folder):
    random = np.random.default_rng(5)
    writer = gguf.GGUFWriter(folder / "types.gguf", "llama")
    writer.add_uint8("test.u8", 200)
    writer.add_int8("test.i8", -100)
    writer.add_uint16("test.u16", 60000)
    writer.add_int16("test.i16", -30000)
    writer.add_uint32("test.u32", 4000000000)
    writer.add_int32("test.i32", -2000000000)
    writer.add_uint64("test.u64", 2**63 - 1)
    writer.add_int64("test.i64", -(2**62))
    writer.add_float32("test.f32", 0.1)
    writer.add_float64("test.f64", 0.1)
    writer.add_bool("test.bool", True)
    writer.add_string("test.text", "grün")
    writer.add_array("test.texts", ["a", "", "日本"])
    writer.add_array("test.numbers", [3, -1, 2])
    tensors = {}
    for kind in SIMPLE:
        numbers = (random.normal(size=(3, 64)) * np.array([[1e-3], [1], [50]])).astype(np.float32)
        stored = numbers if kind == Type.F32 else gguf.quants.quantize(numbers, kind)
        writer.add_tensor(kind.name, stored, raw_dtype=kind)
        tensors[kind.name] = gguf.quants.dequantize(stored, kind).astype(np.float32)
    for kind in HALVES:
        if kind in SIMPLE:
            continue
        stored = random_rows(random, kind)
        writer.add_tensor(kind.name, stored, raw_dtype=kind)
        tensors[kind.name] = gguf.quants.dequantize(stored, kind).astype(np.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(tensors, folder / "types.golden.safetensors")
    save_file({kind.name: bits_of(kind) for kind in HALVES}, folder / "bits.golden.safetensors")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "gguf"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    make_types(folder)


if __name__ == "__main__":
    main()
