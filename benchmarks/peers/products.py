"""Products of matrices beside oneDNN's sgemm: the shapes of MiniLM, SmolLM2, base and tiny, in turns in one run.

    apt-get install libdnnl-dev
    python benchmarks/peers/products.py --build BUILD [--out FILE.json]

BUILD is a build folder with the benchmarks. The right factor is packed beforehand on our side; sgemm packs it in every call, as
it does for whoever calls it.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile

from machine import processor
from program import Program

SHAPES = {  # K, N
    "MiniLM": [(384, 384), (384, 1152), (384, 1536), (1536, 384)],
    "SmolLM2": [(576, 576), (576, 1536), (1536, 576)],
    "base": [(512, 512), (512, 1536), (512, 2048), (2048, 512)],
    "tiny": [(128, 128), (128, 384), (128, 256), (256, 128)],
}
ROWS = (64, 256, 2048)
SECONDS_A_TURN = 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        peer = os.path.join(folder, "onednn_products")
        subprocess.run(["g++", "-O2", "-std=c++20", os.path.join(here, "onednn_products.cpp"), "-ldnnl", "-o", peer], check=True)
        variables = dict(os.environ, OMP_NUM_THREADS=str(args.threads), OMP_WAIT_POLICY="passive")
        sides = {"multihead": Program(os.path.join(args.build, "benchmarks", "product_speed")),
                 "onednn": Program(peer, env=variables)}
        rows = []
        for model, shapes in SHAPES.items():
            for k, n in shapes:
                for m in ROWS:
                    rows.append(measure(sides, model, m, k, n, args.rounds))
    result = {"what": "C [M, N] = A [M, K] B [K, N], float32: GFLOP/s, beside oneDNN's sgemm",
              "command": "python benchmarks/peers/products.py --build BUILD",
              "machine": {"processor": processor(), "threads": args.threads, "system": f"{platform.system()} {platform.machine()}"}, "rows": rows}
    if args.out:
        with open(args.out, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


def measure(sides, model, m, k, n, rounds):
    flops = 2e-9 * m * k * n
    calls = {name: max(3, round(SECONDS_A_TURN / side.ask(f"product {m} {k} {n} 3"))) for name, side in sides.items()}
    times, peaks = {name: [] for name in sides}, []
    for _ in range(rounds):
        peaks.append(sides["multihead"].ask("peak"))
        for name, side in sides.items():
            times[name].append(side.ask(f"product {m} {k} {n} {calls[name]}"))
    ours, peer = (statistics.median(times[name]) for name in ("multihead", "onednn"))
    peak = statistics.median(peaks)
    row = {"model": model, "M": m, "K": k, "N": n, "gflops": round(flops / ours, 1), "peak_gflops": round(peak, 1),
           "share_of_peak": round(flops / ours / peak, 3), "onednn_share_of_peak": round(flops / peer / peak, 3),
           "ratio_to_onednn": round(peer / ours, 3)}
    print(f"{model:8} M {m:5} K {k:5} N {n:5}  {row['gflops']:6.1f} GFLOP/s  {row['share_of_peak']:.0%} of the peak "
          f"(oneDNN {row['onednn_share_of_peak']:.0%}), {row['ratio_to_onednn']:.2f} x oneDNN")
    return row


if __name__ == "__main__":
    main()
