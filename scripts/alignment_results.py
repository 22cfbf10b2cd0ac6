"""Writes aligners.md of docs/heads/results: python scripts/alignment_results.py TOOL DIR TO. The limits are those of
docs/heads/results/README.md, which were fixed before the runs. Translators that were trained stay in DIR, and the times of runs."""

import json
import pathlib
import resource
import statistics
import subprocess
import sys

TRANSLATORS = [("seed 11", 11, None), ("seed 12", 12, None), ("seed 13, half the updates", 13, 900)]
MOST_WORSE = 1.0  # points of AER, claim 47
MOST_COST = 0.02  # of the time of a translation, claim 48
TIMED_LINES = [2_000, 20_000]
RUNS = 5
LINES, SHORTEST = 100, 60  # of which translate chooses (heads_alignment.h)


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], check=True, capture_output=True, text=True).stdout


def links(path):
    return [set(line.split()) for line in path.read_text().splitlines()]


def error_rate(made, gold):
    right = sum(len(a & g) for a, g in zip(made, gold, strict=True))
    return 100 * (1 - 2 * right / (sum(map(len, made)) + sum(map(len, gold))))


def name(score):
    return f"`{score['head']}` ({score['query']})"


def compared(label, seed, updates):
    folder = DIR / f"demo_{seed}"
    if not (folder / "model/model.safetensors").exists():
        tool("demo", "--out", folder, "--seed", seed, *([] if updates is None else ["--updates", updates]))
    model, test = folder / "model", folder / "corpus/test"
    files = ["-i", f"{test}.en", "--target", f"{test}.de"]
    report = json.loads(tool("heads", "alignment", model, *files, "--alignment", f"{test}.align", "--json"))
    by_gold = report["alignment"]
    made = folder / "made.align"
    chosen = json.loads(tool("heads", "alignment", model, *files, "--no-gold", "--pharaoh", made, "--json"))["chosen"]
    single = min((score for score in by_gold if not score["head"].endswith("mean")), key=lambda score: score["error_rate"])
    return {
        "label": label,
        "best": name(single),
        "gold": 100 * single["error_rate"],
        "any": 100 * min(score["error_rate"] for score in by_gold),
        "offset": 100 * report["alignment_baseline"]["error_rate"],
        "heads": ", ".join(f"{layer}.{head}" for layer, head in chosen["heads"]),
        "query": chosen["query"],
        "chosen": error_rate(links(made), links(pathlib.Path(f"{test}.align"))),
    }


def kept(name, make):
    """What make() gave, of an earlier call too."""
    path = DIR / f"{name}.json"
    if not path.exists():
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def shortest(lines):
    """The numbers of those that translate chooses heads from."""
    return sorted(sorted(range(len(lines)), key=lambda i: len(lines[i].split()))[:SHORTEST])


def chosen_from(model, corpus, numbers):
    """Heads that are chosen from some test lines with the model's greedy translations, and their error rate on all lines with gold."""
    english, german = ((corpus / f"test.{language}").read_text().splitlines() for language in ("en", "de"))
    some = DIR / "some.en"
    some.write_text("".join(english[i] + "\n" for i in numbers))
    greedy = tool("translate", model, "-i", some, "--beam-size", 1).splitlines()
    for name, lines in (("lines.en", [english[i] for i in numbers] + english), ("lines.de", greedy + german)):
        (DIR / name).write_text("\n".join(lines) + "\n")
    files = ["-i", DIR / "lines.en", "--target", DIR / "lines.de", "--no-gold", "--pairs", len(numbers), "--pharaoh", DIR / "made.align"]
    chosen = json.loads(tool("heads", "alignment", model, *files, "--json"))["chosen"]
    made = links(DIR / "made.align")[len(numbers) :]
    return {"heads": sorted(chosen["heads"]) + [chosen["query"]], "error": error_rate(made, links(corpus / "test.align"))}


def by_hundreds(label, model, corpus):
    """Of each hundred of the test lines: the heads that all of it chooses, and its shortest lines."""
    english = (corpus / "test.en").read_text().splitlines()
    found = {"all": [], "shortest": [], "words": 0}
    for begin in range(0, len(english), LINES):
        hundred = english[begin : begin + LINES]
        short = shortest(hundred)
        found["all"].append(chosen_from(model, corpus, range(begin, begin + LINES)))
        found["shortest"].append(chosen_from(model, corpus, [begin + i for i in short]))
        found["words"] += sum(len(hundred[i].split()) ** 2 for i in short) / sum(len(line.split()) ** 2 for line in hundred)
    return {"label": label, **found, "words": found["words"] / len(found["all"])}


def all_by_hundreds():
    tool("data", "grammar", "--out", DIR / "grammar", "--train", 1000)
    found = [by_hundreds("`demo`", "demo", DIR / "grammar")]
    for label, seed, _ in TRANSLATORS:
        found.append(by_hundreds(label, DIR / f"demo_{seed}/model", DIR / f"demo_{seed}/corpus"))
    return found


def rates(choices):
    errors = [one["error"] for one in choices]
    return f"{statistics.mean(errors):.1f} ({min(errors):.1f} to {max(errors):.1f})"


def shortest_part():
    page = f"\n## The shortest lines\n\nWhile it translates the tool chooses heads from the {SHORTEST} shortest of {LINES} lines, not from all of them: not a claim, chosen with these\n"
    page += "results in view. Error rates by gold in % on the 1,000 test sentences, of the heads that each hundred of these chooses with the model's greedy\n"
    page += "translations: mean, lowest and highest of ten. Work: words of a line squared, which the passes without each of its words grow with.\n\n"
    page += f"| translator | from all {LINES} | from the {SHORTEST} shortest | the same heads | work |\n|---|---|---|---|---|\n"
    for one in kept("by_hundreds", all_by_hundreds):
        same = sum(a["heads"] == b["heads"] for a, b in zip(one["all"], one["shortest"], strict=True))
        page += f"| {one['label']} | {rates(one['all'])} | {rates(one['shortest'])} | {same} of {len(one['all'])} | {100 * one['words']:.0f} % |\n"
    return page


def seconds(model, lines, *flags):
    """Of the processors, which other programs on the machine disturb less than the time of day."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tool("translate", model, "-i", lines, "-o", DIR / "translated", *flags)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost(count):
    """Of each run: the times without alignments, with them, and with heads chosen, one after the other."""
    folder = DIR / "demo_11"
    text = (folder / "corpus/train.en").read_text().splitlines()[:count]
    assert len(text) == count
    lines = DIR / f"lines_{count}"
    lines.write_text("\n".join(text) + "\n")
    arms = [[], ["--alignment"], ["--alignment", "auto"]]
    runs = [kept(f"processor_seconds_{count}_{run}", lambda: [seconds(folder / "model", lines, *flags) for flags in arms]) for run in range(RUNS)]
    return {
        "lines": count,
        "plain": statistics.median(run[0] for run in runs),
        "alignment": statistics.median(run[1] / run[0] for run in runs),
        "auto": statistics.median(run[2] / run[0] for run in runs),
        "choice": statistics.median((run[2] - run[1]) / run[0] for run in runs),
        "runs": [(run[2] - run[1]) / run[0] for run in runs],
    }


def main():
    models = [compared(*one) for one in TRANSLATORS]
    costs = [cost(count) for count in TIMED_LINES]
    holds = all(one["chosen"] <= one["gold"] + MOST_WORSE for one in models)
    cheap = costs[-1]["choice"] <= MOST_COST
    runs = sorted(costs[-1]["runs"])
    if runs[-2] - runs[1] > MOST_COST:  # but for the two outermost ones
        verdict = "undecided: runs differ by more than the limit"
    else:
        verdict = "holds" if cheap else "does not hold"
    page = "# Heads that align, chosen without gold alignments\n\n"
    page += f"**Claim 47: {'holds' if holds else 'does not hold'}.** Alignment error rate in % on the 1,000 test sentences of each translator, 0 is best.\n\n"
    page += "| translator | chosen without gold | best single head by gold | best by gold, means of layers too | best fixed offset | heads chosen (layer.head) |\n|---|---|---|---|---|---|\n"
    for one in models:
        page += (f"| {one['label']} | {one['chosen']:.1f} | {one['gold']:.1f}, {one['best']} | {one['any']:.1f} | {one['offset']:.1f} | "
                 f"{one['heads']} ({one['query']}) |\n")
    page += f"\n**Claim 48: {verdict}.** `multihead translate` of the translator of seed 11, processor time, medians of {RUNS} runs.\n\n"
    page += "| lines | without alignments | `--alignment` | `--alignment auto` | choosing alone: auto less `--alignment`, of the first column |\n|---|---|---|---|---|\n"
    for one in costs:
        each = ", ".join(f"{100 * share:+.1f}" for share in sorted(one["runs"]))
        page += f"| {one['lines']:,} | {one['plain']:.1f} s | x {one['alignment']:.3f} | x {one['auto']:.3f} | {100 * one['choice']:+.1f} % ({each}) |\n"
    page += shortest_part()
    (TO / "aligners.md").write_text(page)
    print(page)


TOOL, DIR, TO = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
main()
