"""How training grows with the number of machines: measured here, and a small model of what cannot be.

    make mpi && cmake -S . -B build -DMULTIHEAD_MPI=ON -DMULTIHEAD_BENCHMARKS=ON && cmake --build build
    python benchmarks/scaling.py measure --build build --data DIR     # as root: limits the rate of a network namespace
    python benchmarks/scaling.py model                                # docs/scaling.svg and the tables of docs/scaling.md

measure writes benchmarks/results/scaling.json: the time of the group's calls against the number of floats, over shared memory
and over TCP at 1 and 10 Gbit/s (a network namespace whose loopback has tc's token bucket filter; both directions share it), the
time of an update against its tokens, and trainings over TCP, which the model must foretell. DIR has Multi30k's train.en.gz and
train.de.gz. model needs matplotlib for the picture.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
RESULT = os.path.join(HERE, "results", "scaling.json")
DOCS = os.path.join(os.path.dirname(HERE), "docs")
TCP = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
NAMESPACE = "multihead-scaling"
#          updates of a run, tokens of two sizes of update, runs in turns: the fastest counts, since others share this machine
MEASURED = {"tiny": (24, (1024, 4096), 3), "base": (5, (1024, 4096), 1)}
# Floats, and multiply-adds of 128 tokens: multihead ledger --preset base --vocabulary-size 8000
PARAMETERS = {"tiny": 2_349_056, "base": 48_234_496, "big": 184_549_376}
MULTIPLY_ADDS = {"base": 6_413_484_032, "big": 24_101_257_216}
NODES = [2, 4, 8, 16, 32, 64, 128, 256]
GBITS = [1, 10, 100]


def mpirun(ranks, gbit=None):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = ["mpirun", *root, "-n", str(ranks)]
    return command if gbit is None else ["ip", "netns", "exec", NAMESPACE, *command, *TCP]


def limit(gbit):
    subprocess.run(["ip", "netns", "del", NAMESPACE], stderr=subprocess.DEVNULL)
    if gbit is None:
        return
    inside = ["ip", "netns", "exec", NAMESPACE]
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
    subprocess.run([*inside, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", f"{gbit}gbit", "burst", "1mb", "latency", "50ms"],
                   check=True)


def training(flags, folder, preset, ranks, tokens, updates, gbit=None, threads=1):
    model = tempfile.mkdtemp(dir=folder)
    command = [f"{flags.build}/multihead", "train", "--train-source", f"{flags.data}/train.en.gz", "--train-target",
               f"{flags.data}/train.de.gz", "--tokenizer", f"{folder}/tokenizer.json", "--lowercase", "--preset", preset, "--batch-tokens",
               str(tokens), "--updates", str(updates), "--log-every", "1", "--threads", str(threads), "--quiet", "--model", model]
    subprocess.run(command if ranks == 1 else [*mpirun(ranks, gbit), *command], check=True, stdout=subprocess.DEVNULL)
    with open(f"{model}/metrics.jsonl") as file:
        lines = [line for line in map(json.loads, file) if line["kind"] == "train"][2:]
    seconds = [line["target_tokens"] / line["target_tokens_per_second"] for line in lines]
    return {"seconds": statistics.median(seconds), "tokens": statistics.mean(line["target_tokens"] for line in lines)}


def measure(flags):
    from machine import processor

    result = {"machine": f"{processor()}, {os.cpu_count()} processors", "command": "python benchmarks/scaling.py measure --build BUILD --data DIR",
              "collectives": [], "updates": [], "over_tcp": []}
    program = f"{flags.build}/benchmarks/collective_speed"
    for name, gbit in (("shared memory", None), ("TCP, 10 Gbit/s", 10), ("TCP, 1 Gbit/s", 1)):
        limit(gbit)
        for more in ([], ["--reproducible"]):
            out = subprocess.run([*mpirun(2, gbit), program, *more], check=True, stdout=subprocess.PIPE, text=True).stdout
            rows = [json.loads(line) for line in out.splitlines()]
            result["collectives"].append({"over": name, "order": "fixed tree" if more else "fastest",
                                          "seconds_by_floats": {row["floats"]: row["seconds"] for row in rows}})
            print(result["collectives"][-1], flush=True)
    limit(None)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{flags.build}/multihead", "tokenize", "--train", f"{flags.data}/train.en.gz", f"{flags.data}/train.de.gz",
                        "--vocabulary-size", "8000", "--lowercase", "--output-tokenizer", f"{folder}/tokenizer.json", "--quiet"], check=True)
        for preset, (updates, sizes, rounds) in MEASURED.items():
            cases = [(1, tokens, None) for tokens in sizes] + [(2, sizes[-1], gbit) for gbit in (10, 1)]
            fastest = {}
            for _ in range(rounds):
                for ranks, tokens, gbit in cases:
                    limit(gbit)
                    row = training(flags, folder, preset, ranks, tokens, updates, gbit)
                    known = fastest.setdefault((ranks, tokens, gbit), row)
                    known["seconds"] = min(known["seconds"], row["seconds"])
            for (ranks, _, gbit), row in fastest.items():
                row = {"preset": preset, **row} if ranks == 1 else {"preset": preset, "ranks": ranks, "gbit": gbit, **row}
                result["updates" if ranks == 1 else "over_tcp"].append(row)
                print(row, flush=True)
        limit(None)
    with open(RESULT, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


class Model:
    """seconds of an update = a + c tokens / n + sum, where a (Adam) and c (passes) are one rank's:

    sum = 2 (n - 1) latency + 2 (n - 1) / n * 4 parameters / bytes a second     a ring, as MPI sums long vectors
    """

    def __init__(self, result):
        self.cost = {}
        for preset in MEASURED:
            small, large = [row for row in result["updates"] if row["preset"] == preset]
            slope = (large["seconds"] - small["seconds"]) / (large["tokens"] - small["tokens"])
            self.cost[preset] = (max(0.0, small["seconds"] - slope * small["tokens"]), slope)
        # big was not measured: Adam in proportion to the parameters, passes to the multiply-adds.
        adam, token = self.cost["base"]
        self.cost["big"] = (adam * PARAMETERS["big"] / PARAMETERS["base"], token * MULTIPLY_ADDS["big"] / MULTIPLY_ADDS["base"])
        self.latency, self.share = {}, {}
        for row in result["collectives"]:
            if row["order"] != "fastest" or not row["over"].startswith("TCP"):
                continue
            gbit = int(row["over"].split()[1])
            times = {int(floats): seconds for floats, seconds in row["seconds_by_floats"].items()}
            self.latency[gbit] = times[0] / 2
            longest = max(times)
            # Two ranks send 4 bytes a float each, both over the one limited loopback.
            self.share[gbit] = 2 * 4 * longest / times[longest] / (gbit * 1e9 / 8)

    def sum_seconds(self, parameters, ranks, gbit, shared_wire=False):
        known = gbit if gbit in self.latency else max(self.latency)
        rate = gbit * 1e9 / 8 * self.share[known] / (2 if shared_wire else 1)
        return 2 * (ranks - 1) * self.latency[known] + 2 * (ranks - 1) / ranks * 4 * parameters / rate

    def update_seconds(self, preset, tokens, ranks, gbit, shared_wire=False):
        adam, token = self.cost[preset]
        return adam + token * tokens / ranks + (self.sum_seconds(PARAMETERS[preset], ranks, gbit, shared_wire) if ranks > 1 else 0)

    def efficiency(self, preset, tokens, ranks, gbit):
        return self.update_seconds(preset, tokens, 1, gbit) / ranks / self.update_seconds(preset, tokens, ranks, gbit)

    def tokens_for(self, preset, ranks, gbit, wanted=0.9):
        tokens = 64.0
        while self.efficiency(preset, tokens, ranks, gbit) < wanted and tokens < 1e9:
            tokens *= 1.02
        return tokens


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def short(number):
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number / 1e3:.0f} k" if number >= 1e4 else f"{number:.0f}"


def model(_flags):
    with open(RESULT) as file:
        result = json.load(file)
    of = Model(result)
    floats = [key for key in result["collectives"][0]["seconds_by_floats"] if int(key) > 0]
    measured = table(["over", "order", "agree", *[short(int(key)) + " floats" for key in floats]],
                     [[row["over"], row["order"], *[f"{1e3 * row['seconds_by_floats'][key]:.3g} ms" for key in ["0", *floats]]]
                      for row in result["collectives"]])
    errors = table(["preset", "network", "measured", "foretold", "error"],
                   [[row["preset"], f"{row['gbit']} Gbit/s", f"{row['seconds']:.3g} s",
                     f"{(told := of.update_seconds(row['preset'], row['tokens'], 2, row['gbit'], True)):.3g} s",
                     f"{100 * (told / row['seconds'] - 1):+.0f} %"] for row in result["over_tcp"]])
    batches = {"tiny": 5600, "base": 8192, "big": 8192}
    efficiency = table(["preset (tokens of an update)", "Gbit/s", *map(str, NODES)],
                       [[f"{preset} ({batches[preset]})", str(gbit), *[f"{100 * of.efficiency(preset, batches[preset], n, gbit):.0f} %" for n in NODES]]
                        for preset in of.cost for gbit in GBITS])
    needed = table(["preset", "Gbit/s", *map(str, NODES)],
                   [[preset, str(gbit), *[short(of.tokens_for(preset, n, gbit)) for n in NODES]] for preset in of.cost for gbit in GBITS])
    path = os.path.join(DOCS, "scaling.md")
    with open(path) as file:
        text = file.read()
    for name, content in (("collectives", measured), ("errors", errors), ("efficiency", efficiency), ("needed", needed)):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        head, rest = text.split(begin)
        text = head + begin + "\n" + content + "\n" + end + rest.split(end)[1]
    with open(path, "w") as file:
        file.write(text)

    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "multihead"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
    for axis, preset in zip(axes, of.cost):
        for gbit in GBITS:
            axis.plot(NODES, [of.efficiency(preset, batches[preset], n, gbit) for n in NODES], marker="o", markersize=3, label=f"{gbit} Gbit/s")
        axis.set_xscale("log", base=2)
        axis.set_xticks(NODES, map(str, NODES))
        axis.set_ylim(0, 1.02)
        axis.set_title(f"{preset}, {batches[preset]} tokens an update", fontsize=9)
        axis.set_xlabel("machines")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("efficiency")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(os.path.join(DOCS, "scaling.svg"), metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    first = verbs.add_parser("measure")
    first.add_argument("--build", required=True)
    first.add_argument("--data", required=True)
    first.set_defaults(run=measure)
    verbs.add_parser("model").set_defaults(run=model)
    flags = parser.parse_args()
    flags.run(flags)


if __name__ == "__main__":
    main()
