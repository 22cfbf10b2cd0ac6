"""Training by 2 ranks of 1 thread beside 1 process of 2 threads: the same recipe, in turns in one run.

    make mpi
    python benchmarks/ranks.py --tool build/multihead --data DIR [--out FILE.json]

DIR has train.en.gz and train.de.gz. Needs Open MPI's mpirun; no Python package. The speed is target tokens a second of
whole updates (forward, backward, sums over ranks, Adam), without the first ones of each run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from machine import processor  # noqa: E402

#        preset: updates of a run, of which the first are left out, tokens of an update of all ranks
SIZES = {"tiny": (60, 10, 4096), "base": (8, 2, 4096)}
SIDES = {"1 x 2 threads": (1, 2, []), "2 x 1 thread": (2, 1, []), "2 x 1 thread, sharded optimiser": (2, 1, ["--shard-optimiser"])}


def run(flags, folder, preset, ranks, threads, more):
    updates, skipped, tokens = SIZES[preset]
    model = tempfile.mkdtemp(dir=folder)
    command = [flags.tool, "train", "--train-source", f"{flags.data}/train.en.gz", "--train-target", f"{flags.data}/train.de.gz",
               "--tokenizer", f"{folder}/tokenizer.json", "--lowercase", "--preset", preset, "--batch-tokens", str(tokens),
               "--updates", str(updates), "--log-every", "1", "--threads", str(threads), "--quiet", "--model", model, *more]
    if ranks > 1:
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["mpirun", *root, "-n", str(ranks), *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(f"{model}/metrics.jsonl") as file:
        lines = [line for line in map(json.loads, file) if line["kind"] == "train"][skipped:]
    seconds = sum(line["target_tokens"] / line["target_tokens_per_second"] for line in lines)
    return {"speed": sum(line["target_tokens"] for line in lines) / seconds, "loss": lines[-1]["loss"],
            "waiting_share": statistics.mean(line.get("waiting_share", 0) for line in lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    flags = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([flags.tool, "tokenize", "--train", f"{flags.data}/train.en.gz", f"{flags.data}/train.de.gz",
                        "--vocabulary-size", "8000", "--lowercase", "--output-tokenizer", f"{folder}/tokenizer.json", "--quiet"], check=True)
        for preset in flags.sizes:
            found = {name: [] for name in SIDES}
            for _ in range(flags.rounds):
                for name, side in SIDES.items():
                    found[name].append(run(flags, folder, preset, *side))
            speed = {name: statistics.median(each["speed"] for each in runs) for name, runs in found.items()}
            row = {"preset": preset, "tokens_of_an_update": SIZES[preset][2],
                   "target_tokens_per_second": {name: round(value, 1) for name, value in speed.items()},
                   "ratio_to_one_process": {name: round(value / speed["1 x 2 threads"], 3) for name, value in speed.items()},
                   "waiting_share": {name: round(statistics.median(each["waiting_share"] for each in runs), 3)
                                     for name, runs in found.items()},
                   "last_loss": {name: runs[0]["loss"] for name, runs in found.items()}}
            print(json.dumps(row), flush=True)
            rows.append(row)
    if flags.out:
        result = {"what": "training: ranks over MPI beside threads", "machine": f"{processor()}, {os.cpu_count()} processors",
                  "command": f"python benchmarks/ranks.py --tool BUILD/multihead --data DIR --rounds {flags.rounds}", "rows": rows}
        with open(flags.out, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
