"""scripts/edge_agreement.py TOOL MODELS [DIR]: do the scores of edges, which gradients give, agree with the effects that runs of the model
measure? Prints the table of docs/heads/circuit.md: of 500 random edges of a model the two beside each other. MODELS holds smollm2.gguf and
minilm; reports of runs stay in DIR (default: a temporary folder). It takes about ten minutes of one core."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

EDGES = 500
# None of the names and sentences of scripts/circuit_results.py, whose claims these pairs must not touch.
NAMES = ["Henry", "Jane", "Simon", "Martin", "George", "Susan"]
SENTENCES = ["While {first} and {second} were waiting, {giver} showed a picture to", "Once {first} and {second} had finished, {giver} handed the keys to"]
MODELS = {
    "SmolLM2, the taker of a thing": "smollm2.gguf",
    "MiniLM, a cosine": "minilm",
    "demo, a German noun": "demo",
}


def indirect_objects():
    draw = random.Random(17)
    pairs = []
    for sentence in SENTENCES:
        giver, taker = draw.sample(NAMES, 2)
        for first, second in ((giver, taker), (taker, giver)):
            clean, corrupt = (sentence.format(first=first, second=second, giver=name) for name in (giver, taker))
            pairs.append((clean, corrupt, taker, giver))
    return pairs


PAIRS = {
    "smollm2.gguf": indirect_objects(),
    "minilm": [
        ("two dogs run in the park .", "two cats run in the park .", "dogs", "cats"),
        ("she buys a red car .", "she buys a red house .", "a car", "a house"),
        ("the old man reads a book .", "the old man reads a letter .", "a book", "a letter"),
        ("my friend plays the piano .", "my friend plays the guitar .", "a piano", "a guitar"),
    ],
    "demo": [
        ("the small dog sees a cat .", "the small cat sees a cat .", "Hund", "Katze", "der kleine"),
        ("the woman sees two dogs .", "the woman sees two cats .", "Hunde", "Katzen", "die Frau sieht zwei"),
        ("two dogs run .", "two cats run .", "Hunde", "Katzen", "zwei"),
        ("a man buys the red car .", "a man buys the red house .", "Auto", "Haus", "ein Mann kauft das rote"),
    ],
}


def ranks(numbers):
    """From the smallest to the largest; equal ones have the mean of theirs."""
    order = sorted(range(len(numbers)), key=lambda i: numbers[i])
    found = [0.0] * len(numbers)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and numbers[order[end]] == numbers[order[begin]]:
            end += 1
        for i in order[begin:end]:
            found[i] = (begin + end - 1) / 2
        begin = end
    return found


def correlation(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    return product / (sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)) ** 0.5


def measured(tool, model, pairs, folder, seed):
    """Scores and effects of edges that were drawn at random."""
    name = pathlib.Path(model).name
    report = folder / f"{name}.{seed}.json"
    if not report.exists():
        file = folder / f"{name}.tsv"
        file.write_text("".join("\t".join(pair) + "\n" for pair in pairs))
        flags = ["--exact", str(EDGES), "--exact-of", "random", "--seed", str(seed), "--removals", "0", "--random", "0", "--json"]
        report.write_text(subprocess.run([tool, "heads", "circuit", model, "-i", file, *flags], check=True, stdout=subprocess.PIPE, text=True).stdout)
    found = json.loads(report.read_text())
    return found, [edge["score"] for edge in found["exact"]], [edge["effect"]["mean"] for edge in found["exact"]]


def row(label, found, scores, effects):
    largest = sorted(range(len(scores)), key=lambda i: -abs(effects[i]))[: len(scores) // 10]
    cells = [
        label,
        f"{found['edges_of_model']:,}",
        f"{len(scores)}",
        f"{correlation(ranks(scores), ranks(effects)):.3f}",
        f"{correlation(ranks([abs(x) for x in scores]), ranks([abs(x) for x in effects])):.3f}",
        f"{correlation(ranks([scores[i] for i in largest]), ranks([effects[i] for i in largest])):.3f}",
        f"{correlation(scores, effects):.3f}",
        f"{sorted(map(abs, effects))[len(effects) // 2]:.1e}",
    ]
    return "| " + " | ".join(cells) + " |"


def main():
    tool, models = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| model | edges | drawn | rank correlation | of absolute values | of the tenth of the largest effects | correlation | median effect |")
        print("|---|---|---|---|---|---|---|---|")
        for label, name in MODELS.items():
            model = name if name == "demo" else f"{models}/{name}"
            print(row(label, *measured(tool, model, PAIRS[name], folder, seed=1)), flush=True)


if __name__ == "__main__":
    main()
