"""Writes retrieval.md of docs/heads/results: python scripts/retrieval_results.py TOOL MODEL TREES DIR TO. The limits are those of
docs/heads/results/README.md, which were fixed before the runs. Results of runs stay in DIR."""

import collections
import gzip
import json
import pathlib
import random
import statistics
import subprocess
import sys

import scipy.stats
from heads_results import holm, table, verdict

HEADS, DRAWS = 10, 5
LENGTH, DEPTHS, MIDDLE = "512", ["0.2", "0.5", "0.8"], ["0.5"]


class Runs:
    def __init__(self, tool, model, trees, folder):
        self.tool, self.model, self.folder = tool, model, pathlib.Path(folder)
        opened = gzip.open if trees.endswith(".gz") else open
        with opened(trees, "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
        sentences = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
        self.filler, self.text = self.folder / "filler.txt", self.folder / "text.txt"
        self.filler.write_text("\n".join(sentences[300:400]) + "\n", encoding="utf-8")
        self.text.write_text("\n".join(sentences[200:300]) + "\n", encoding="utf-8")

    def run(self, name, *flags):
        path = self.folder / name
        if not path.exists():
            given = [self.tool, "--threads", "2", *flags]
            path.write_text(subprocess.run(given, check=True, capture_output=True, text=True).stdout)
        return path.read_text()

    def retrieval(self, name, depths, *flags):
        return json.loads(self.run(f"{name}.json", "heads", "retrieval", self.model, "--json", "--lengths", LENGTH,
                                   *(word for depth in depths for word in ("--depths", depth)), *flags))  # fmt: skip

    def set_a(self):
        return self.retrieval("a", DEPTHS)

    def set_b(self, name="b", depths=DEPTHS, flags=()):
        needles = pathlib.Path(__file__).parent / "retrieval_needles.tsv"
        return self.retrieval(name, depths, "--needles", str(needles), "--filler", str(self.filler), *flags)

    def loss(self, name, flags=()):
        """Nats a token."""
        lines = self.run(f"loss.{name}.txt", "score", self.model, "-i", str(self.text), "--per-token", *flags).splitlines()
        tokens = [float(p) for line in lines for p in line.split()[1:]]  # the first is the sum of a line
        return -statistics.mean(tokens)


def muted(heads):
    return [word for head in heads for word in ("--mute", head)]


def scores(report):
    return {head["head"]: head["score"] for head in report["heads"]}


def by_needle(report):
    """The mean log p of each needle's answer."""
    found = collections.defaultdict(list)
    for trial in report["trials"]:
        found[trial["needle"]].append(trial["log_probability"])
    return [statistics.mean(found[needle]) for needle in sorted(found)]


def largest(values):
    return sorted(values, key=values.get, reverse=True)[:HEADS]


def random_heads(ten, everyone, seed):
    draw, counts = random.Random(seed), collections.Counter(head.rsplit(".", 1)[0] for head in ten)
    found = []
    for attention, count in sorted(counts.items()):
        found += draw.sample([head for head in everyone if head.rsplit(".", 1)[0] == attention and head not in ten], count)
    return found


def main():
    tool, model, trees, folder, to = sys.argv[1:]
    runs = Runs(tool, model, trees, folder)
    a, b = scores(runs.set_a()), scores(runs.set_b())
    ten, ten_of_b = largest(a), largest(b)
    rank = scipy.stats.spearmanr([a[head] for head in a], [b[head] for head in a])
    both = [head for head in ten if head in ten_of_b]
    draws = [random_heads(ten, list(a), seed) for seed in range(1, DRAWS + 1)]
    whole = runs.set_b()
    without = {"the ten": runs.set_b("b.ten", flags=muted(ten))}
    losses = {"nothing": runs.loss("whole"), "the ten": runs.loss("ten", muted(ten))}
    for number, heads in enumerate(draws, 1):
        without[f"draw {number}"] = runs.set_b(f"b.draw{number}", flags=muted(heads))
        losses[f"draw {number}"] = runs.loss(f"draw{number}", muted(heads))
    falls = {name: [x - y for x, y in zip(by_needle(whole), by_needle(one))] for name, one in without.items()}
    p = holm([float(scipy.stats.ttest_rel(falls["the ten"], falls[name], alternative="greater").pvalue) for name in falls if name != "the ten"])
    exact = {name: whole["exact"] - one["exact"] for name, one in without.items()}
    exact_of_draws = statistics.mean(fall for name, fall in exact.items() if name != "the ten")
    rise = losses["the ten"] - losses["nothing"]
    limited = runs.set_b("b.limited", MIDDLE, ["--limit", "answer", "--text-tokens", "0"])["limited"]
    needs = {one["heads"][0]: one["fall"] for one in limited}
    need_most = largest(needs)
    needed = [head for head in need_most if head in ten]
    others = [name for name in falls if name != "the ten"]
    mean_falls = {name: statistics.mean(fall) for name, fall in falls.items()}
    rises = {name: loss - losses["nothing"] for name, loss in losses.items()}
    of_others = lambda values: f"{min(values[name] for name in others):.3f} to {max(values[name] for name in others):.3f}"
    lines = [
        "# Which heads of SmolLM2 fetch a fact, and what is lost without them\n",
        f"SmolLM2-135M, 270 heads, texts of {LENGTH} tokens. Of set A the model says {runs.set_a()['exact']:.2f} of the answers, of set B\n"
        f"{whole['exact']:.2f} (mean log p {whole['log_probability']:.3f}).\n",
        verdict(43, rank.statistic >= 0.7 and len(both) >= 7,
                f"Spearman's rank correlation of the scores over {len(a)} heads is {rank.statistic:.2f}; of the ten heads of A\n"
                f"{len(both)} are among the ten of B."),
        verdict(44, max(p) < 0.05 and exact["the ten"] >= 0.3 + exact_of_draws,
                f"Without the ten log p falls by {mean_falls['the ten']:.3f} nats an answer, with random heads of the same layers\n"
                f"muted by {of_others(mean_falls)} (largest p {max(p):.1g}); the share of answers that the model says falls by\n"
                f"{exact['the ten']:.2f}, with random heads by {exact_of_draws:.2f}."),
        verdict(45, rise <= 0.1,
                f"The loss of ordinary text, {losses['nothing']:.3f}, rises by {rise:.3f} nats a token without the ten, with random\n"
                f"heads muted by {of_others(rises)}."),
        verdict(46, len(needed) >= 5, f"Of the ten heads whose limit costs most {len(needed)} are among the ten."),
        table(["muted", "log p falls by", "share of answers falls by", "loss of ordinary text rises by"],
              [[name, f"{mean_falls[name]:.2f}", f"{exact[name]:.2f}", f"{rises[name]:+.3f}"] for name in falls]),
        table(["head", "score on A", "score on B", "log p falls limited by"],
              [[f"`{head}`", f"{a[head]:.3f}", f"{b[head]:.3f}", f"{needs[head]:+.3f}"] for head in dict.fromkeys([*ten, *ten_of_b, *need_most])]),
    ]  # fmt: skip
    (pathlib.Path(to) / "retrieval.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
