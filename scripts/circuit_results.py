"""Writes indirect-circuits.md of docs/heads/results: python scripts/circuit_results.py TOOL MODELS DIR TO. MODELS holds smollm2.gguf and
gemma3.gguf. The limits are those of docs/heads/results/README.md, which were fixed before the runs. Results of runs stay in DIR."""

import json
import pathlib
import random
import shutil
import subprocess
import sys

import scipy.stats
from contribution_results import NAMES, PAIRS, SENTENCES
from heads_results import table

MORE = ["When {first} and {second} left the park, {giver} sent a letter to", "Since {first} and {second} lived nearby, {giver} lent the car to"]
MODELS = {"SmolLM2": "smollm2.gguf", "Gemma 3": "gemma3.gguf"}
FLAGS = ["--share", "0.8", "--most-pairs", "50", "--exact", "200", "--removals", "20000", "--random", "1000", "--strongest", "0"]
MOVERS = 3  # name movers


def pairs():
    """Clean text, corrupt text, answer, wrong."""
    draw = random.Random(2)
    found = []
    for sentence in SENTENCES + MORE:
        for _ in range(PAIRS):
            giver, taker = draw.sample(NAMES, 2)
            for first, second in ((giver, taker), (taker, giver)):
                clean, corrupt = (sentence.format(first=first, second=second, giver=name) for name in (giver, taker))
                found.append((clean, corrupt, taker, giver))
    random.Random(3).shuffle(found)
    return found


class Runs:
    def __init__(self, tool, model, folder):
        self.tool, self.model, self.folder = tool, model, pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)

    def told(self, name, *words):
        path = self.folder / name
        if not path.exists():
            given = [self.tool, "--threads", "2", "heads", *words]
            text = subprocess.run(given, check=True, stdout=subprocess.PIPE, text=True).stdout
            path.write_text(text)
        return json.loads(path.read_text())

    def circuit(self):
        file = self.folder / "pairs.tsv"
        file.write_text("".join("\t".join(pair) + "\n" for pair in pairs()))
        picture = self.folder / "circuit.svg"
        return self.told("circuit.json", "circuit", self.model, "-i", str(file), *FLAGS, "--svg", str(picture), "--json")

    def looks_at_answer(self, number, head):
        """Whether at the last token the head's largest weight is on the answer's name."""
        clean, _, answer, _ = pairs()[number]
        seen = self.told(f"seen.{head}.{number}.json", self.model, "--text", clean, "--head", head, "--json")["text"]
        weights = seen["weights"][head][-1]
        return seen["target_tokens"][weights.index(max(weights))].strip("Ġ▁ ") == answer


def of_model(tool, path, folder):
    runs = Runs(tool, path, folder)
    found = runs.circuit()
    ends = [edge for edge in found["edges"] if edge["input"] == "states" and edge["from"].rpartition(".")[2].isdigit()]
    movers = [edge["from"] for edge in sorted(ends, key=lambda edge: -edge["score"])[:MOVERS]]
    into = [edge for edge in found["edges"] if set(edge["readers"]) & set(movers)]
    queries = sum(abs(edge["score"]) for edge in into if edge["input"] == "queries")
    exact = found["exact"]
    return {
        "found": found,
        "movers": movers,
        "looked": sum(runs.looks_at_answer(number, movers[0]) for number in range(len(pairs()))) if movers else 0,
        "queries": queries / sum(abs(edge["score"]) for edge in into) if into else 0.0,
        "rank": float(scipy.stats.spearmanr([e["score"] for e in exact], [e["effect"]["mean"] for e in exact]).statistic),
        "share": len(found["edges"]) / found["edges_of_model"],
    }


def main():
    tool, models, folder, to = sys.argv[1:]
    of = {name: of_model(tool, f"{models}/{file}", f"{folder}/{file}") for name, file in MODELS.items()}

    def elsewhere(one):
        interval = one["found"]["faithfulness_elsewhere"]
        return interval["mean"], interval["half"]

    verdicts = {
        49: all(one["share"] <= 0.02 and one["found"]["random"]["as_faithful"] == 0 for one in of.values()),
        50: all(elsewhere(one)[0] - elsewhere(one)[1] > 0.7 for one in of.values()),
        51: all(one["looked"] >= 80 for one in of.values()),
        52: all(one["queries"] > 0.5 for one in of.values()),
        53: all(one["rank"] >= 0.9 for one in of.values()),
    }

    def verdict(number):
        return f"**Claim {number}: {'holds' if verdicts[number] else 'does not hold'}.**"

    def each(text):
        return "; ".join(f"{name} {text(one)}" for name, one in of.items()) + "."

    def size(one):
        found = one["found"]
        return (f"{len(found['edges'])} of {found['edges_of_model']} edges ({100 * one['share']:.2f} %), "
                f"{found['random']['as_faithful']} of {found['random']['count']} random ones as faithful")

    lines = [
        "# The circuits of indirect objects in SmolLM2 and Gemma 3",
        "",
        f"{len(pairs())} pairs such as \"{pairs()[0][0]}\" ({pairs()[0][2]}, not {pairs()[0][3]}); `multihead heads circuit {' '.join(FLAGS)}`.",
        "",
        f"{verdict(49)} " + each(size),
        "",
        f"{verdict(50)} Faithfulness on 50 further pairs: " + each(lambda one: "{:.3f} ± {:.3f}".format(*elsewhere(one))),
        "",
        f"{verdict(51)} Texts in which the first name mover looks most at the answer's name: "
        + each(lambda one: f"{one['looked']} of {len(pairs())} (`{one['movers'][0]}`)" if one["movers"] else "none"),
        "",
        f"{verdict(52)} Share of queries among the edges into the name movers: " + each(lambda one: f"{one['queries']:.2f}"),
        "",
        f"{verdict(53)} Spearman's rank correlation of score and effect: " + each(lambda one: f"{one['rank']:.3f}"),
    ]
    for name, one in of.items():
        found = one["found"]
        picture = f"circuit-{MODELS[name].removesuffix('.gguf')}.svg"
        shutil.copy(f"{folder}/{MODELS[name]}/circuit.svg", pathlib.Path(to) / picture)
        lines += [
            "",
            f"## {name}",
            "",
            f"Clean {found['clean']:.3f}, corrupt {found['corrupt']:.3f} (log p of the answer less that of the wrong name). Faithfulness "
            f"{found['faithfulness']['mean']:.3f} ± {found['faithfulness']['half']:.3f}, completeness {found['completeness']['mean']:.3f} ± "
            f"{found['completeness']['half']:.3f}. Name movers: " + ", ".join(f"`{head}`" for head in one["movers"]) + ".",
            "",
            f"![the circuit]({picture})",
            "",
            table(["from", "to", "score", "effect"],
                  [[f"`{e['from']}`", f"`{e['to']}`", f"{e['score']:+.3f}", f"{e['effect']['mean']:+.3f} ± {e['effect']['half']:.3f}"]
                   for e in found["exact"][:20]]),
        ]
    (pathlib.Path(to) / "indirect-circuits.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
