"""What T5's biases by buckets of distances cost in the fused attention, beside the same attention without, in turns in one run.

    python benchmarks/relative_bias.py --build BUILD [--out FILE.json]

8 heads of 64 numbers, 4,096 queries and keys in sequences of 32 to 2,048; the buckets are T5's 32 up to a distance of 128. Prints the
table in Markdown.
"""

import argparse
import os
import statistics
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
from machine import processor, write_results  # noqa: E402
from program import Program  # noqa: E402

HEADS, SIZE, ROWS, ROUNDS, CALLS = 8, 64, 4096, 21, 3
LENGTHS = (32, 128, 512, 2048)


def ratios(build, length, mask, what):
    """With biases over without: medians of rounds, in which the sides take turns."""
    with tempfile.TemporaryDirectory() as folder:
        line = " ".join([str(length)] * (ROWS // length))
        with open(os.path.join(folder, "lengths"), "w", encoding="utf-8") as file:
            file.write(f"{line}\n{line}\n")
        random = np.random.default_rng(1)
        for name in ("q", "k", "v", "d_output"):
            random.standard_normal((ROWS, HEADS * SIZE), dtype=np.float32).tofile(os.path.join(folder, name))
        program = Program(os.path.join(build, "benchmarks", "attention_speed"))
        program.ask(f"shape {folder} {HEADS} {HEADS} {SIZE} 0 {mask}")
        found = []
        for _ in range(ROUNDS):
            times = []
            for buckets in ("0 0", "32 128"):
                program.ask(f"distances {buckets}")
                times.append(program.ask(f"{what} {CALLS}"))
            found.append(times[1] / times[0])
        return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--out")
    options = parser.parse_args()
    results = {"machine": processor(), "threads": os.cpu_count(), "heads": HEADS, "size": SIZE, "rows": ROWS}
    print("| length | forward, both sides | causal | with backward, both sides | causal |\n|---|---|---|---|---|")
    for length in LENGTHS:
        row = {f"{what} {mask}": ratios(options.build, length, mask, what) for what in ("forward", "both") for mask in ("none", "causal")}
        results[f"length {length}"] = row
        print(f"| {length:,} | " + " | ".join(f"{ratio:.2f} x" for ratio in row.values()) + " |", flush=True)
    if options.out:
        write_results(options.out, results)


if __name__ == "__main__":
    main()
