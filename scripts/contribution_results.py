"""Writes indirect.md of docs/heads/results: python scripts/contribution_results.py TOOL MODEL DIR TO. The limits are those of
docs/heads/results/README.md, which were fixed before the runs. Results of runs stay in DIR."""

import json
import pathlib
import random
import statistics
import subprocess
import sys

import scipy.stats
from heads_results import BLUE, RED, holm, plt, table

SENTENCES = [
    "When {first} and {second} went to the store, {giver} gave a drink to",
    "After {first} and {second} had dinner, {giver} handed the bill to",
    "While {first} and {second} were at school, {giver} passed a book to",
]
NAMES = ["Mary", "John", "Tom", "Anna", "Paul", "Sarah", "Mark", "Lisa", "James", "Emma", "David", "Laura", "Peter", "Alice", "Robert", "Kate"]
PAIRS = 10  # of names, of each sentence
LOOKED_AT = 10  # heads of claim 40
MADE_UP = 3  # heads of claim 42


def questions():
    draw = random.Random(1)
    found = []
    for sentence in SENTENCES:
        for _ in range(PAIRS):
            giver, taker = draw.sample(NAMES, 2)
            for first, second in ((giver, taker), (taker, giver)):
                found.append((sentence.format(first=first, second=second, giver=giver), taker, giver))
    return found


class Runs:
    def __init__(self, tool, model, folder):
        self.tool, self.model, self.folder = tool, model, pathlib.Path(folder)
        self.file = self.folder / "questions.tsv"
        self.file.write_text("".join("\t".join(question) + "\n" for question in questions()))

    def report(self, name, *flags):
        path = self.folder / f"{name}.json"
        if not path.exists():
            given = [self.tool, "--threads", "2", "heads", "contributions", self.model, *flags, "--json", "--sources", "0"]
            path.write_text(subprocess.run(given, check=True, capture_output=True, text=True).stdout)
        return json.loads(path.read_text())

    def of_all(self, muted=None):
        return self.report(f"all.{muted}", "-i", str(self.file), *(["--mute", muted] if muted else []))

    def of_one(self, number, muted=None):
        text, answer, wrong = questions()[number]
        return self.report(f"one.{number}.{muted}", "--text", text, "--answer", answer, "--wrong", wrong,
                           *(["--mute", muted] if muted else []))


def main():
    tool, model, folder, to = sys.argv[1:]
    runs = Runs(tool, model, folder)
    whole = runs.of_all()
    heads = [part for part in whole["parts"] if part["kind"] == "head"]
    score = whole["score"]["mean"]
    added = {part["name"]: part["sum"]["mean"] for part in heads}
    half = {part["name"]: part["sum"]["half"] for part in heads}
    lost = {}
    for number, name in enumerate(added):
        lost[name] = score - runs.of_all(name)["score"]["mean"]
        print(f"{number + 1} of {len(added)} heads", end="\r", file=sys.stderr)
    rank = scipy.stats.spearmanr([added[n] for n in added], [lost[n] for n in added])
    most_added = sorted(added, key=added.get, reverse=True)
    most_lost = sorted(lost, key=lost.get, reverse=True)
    both = [name for name in most_added[:LOOKED_AT] if name in most_lost[:LOOKED_AT]]
    against = [n for n in added if added[n] < -0.05 * score and added[n] + half[n] < 0]
    made_up = {}
    for name in most_added[:MADE_UP]:
        differences = []
        for number in range(len(questions())):
            plain = runs.of_one(number)
            part = next(p["sum"] for p in plain["parts"] if p["name"] == name)
            differences.append(part - (plain["score"] - runs.of_one(number, name)["score"]))
        p = float(scipy.stats.ttest_1samp(differences, 0, alternative="greater").pvalue)
        made_up[name] = statistics.mean(differences), p
    holms = dict(zip(made_up, holm([p for _, p in made_up.values()])))
    verdicts = {
        39: rank.statistic >= 0.5 and rank.pvalue < 0.05,
        40: len(both) >= LOOKED_AT / 2,
        41: bool(against),
        42: all(made_up[n][0] > 0 and holms[n] < 0.05 for n in made_up),
    }

    figure, axis = plt.subplots(figsize=(6, 4))
    axis.axhline(0, color="lightgrey", linewidth=0.8)
    axis.axvline(0, color="lightgrey", linewidth=0.8)
    axis.plot([added[n] for n in added], [lost[n] for n in added], "o", markersize=3, color=BLUE)
    for name in {*most_added[:3], *most_lost[:3], *sorted(added, key=added.get)[:2]}:
        _, layer, _, head = name.split(".")
        axis.annotate(f"{layer}.{head}", (added[name], lost[name]), fontsize=7, color=RED, xytext=(3, 3), textcoords="offset points")
    axis.set_xlabel("what the head adds to the score (logits)")
    axis.set_ylabel("by how much the score falls without it")
    figure.tight_layout()
    figure.savefig(pathlib.Path(to) / "indirect.svg", metadata={"Date": None})

    def verdict(number):
        return f"**Claim {number}: {'holds' if verdicts[number] else 'does not hold'}.**"

    shown = list(dict.fromkeys(most_added[:LOOKED_AT] + most_lost[:LOOKED_AT] + sorted(added, key=added.get)[:3]))
    lines = [
        "# What a head adds to the name of an indirect object, and what is lost without it",
        "",
        f"SmolLM2-135M, 270 heads, {len(questions())} questions such as \"{questions()[0][0]}\" ({questions()[0][1]}, not {questions()[0][2]}).",
        f"Mean score, the logit of the answer less that of the other name: {score:.3f} ± {whole['score']['half']:.3f}.",
        "",
        "![what each head adds, and what is lost without it](indirect.svg)",
        "",
        f"{verdict(39)} Spearman's rank correlation over 270 heads is {rank.statistic:.2f} (p = {rank.pvalue:.1g}).",
        "",
        f"{verdict(40)} Of the {LOOKED_AT} heads that add most, {len(both)} are among the {LOOKED_AT} whose muting costs most.",
        "",
        f"{verdict(41)} Heads below -5 % of the score with an interval below 0: "
        + (", ".join(f"`{n}` ({added[n]:+.3f} ± {half[n]:.3f})" for n in sorted(against, key=added.get)) or "none") + ".",
        "",
        f"{verdict(42)} Contribution less the fall of the score when the head is muted: "
        + ", ".join(f"`{n}` {made_up[n][0]:+.3f} (p = {holms[n]:.1g})" for n in made_up) + ".",
        "",
        table(["head", "adds", "95 % interval", "score falls without it by"],
              [[f"`{n}`", f"{added[n]:+.3f}", f"± {half[n]:.3f}", f"{lost[n]:+.3f}"] for n in shown]),
        "",
        "What a head adds is counted with all norms' scales held, and only where it is written into the last token's stream; what is lost without it",
        "also counts what later heads and layers made of it, and what they do in its place.",
        "",
    ]
    (pathlib.Path(to) / "indirect.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
