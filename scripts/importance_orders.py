"""What scripts/importance_results asks between its commands: which heads are muted in which order, which are chosen, which sentences.

    importance_orders.py mutes GRADIENTS ABLATIONS TO     a file for each order: lines "COUNT --mute HEAD ..." in steps of 2
    importance_orders.py choose GRADIENTS                 --heads and a head on lines of their own: the 30 first and every eighth other
    importance_orders.py sentences CONLLU FIRST LAST LEAST MOST   the texts of these sentences with so many words
    importance_orders.py relations RELATIONS              the heads of relations of the decoder's side, one a line
"""

import json
import random
import sys
from pathlib import Path

RANDOM_ORDERS = 3


def ranked(path):
    """The names of heads, the most important first."""
    return [head["head"] for head in json.loads(Path(path).read_text())["heads"]]


def mutes(gradients, ablations, to):
    orders = {"gradient": ranked(gradients)[::-1], "ablation": ranked(ablations)[::-1]}
    for seed in range(1, RANDOM_ORDERS + 1):
        orders[f"random{seed}"] = random.Random(seed).sample(sorted(orders["gradient"]), len(orders["gradient"]))
    Path(to).mkdir(exist_ok=True)
    for name, heads in orders.items():
        lines = [f"{count} " + " ".join(f"--mute {head}" for head in heads[:count]) for count in range(0, len(heads) + 1, 2)]
        Path(to, name).write_text("\n".join(lines) + "\n")


def choose(gradients):
    heads = ranked(gradients)
    for head in heads[:30] + heads[30::8]:
        print(f"--heads\n{head}")


def sentences_of(conllu, first, last, least, most):
    """The texts of sentences `first` (from 1) to `last` with so many words."""
    blocks = Path(conllu).read_text(encoding="utf-8").strip().split("\n\n")[first - 1 : last]
    for block in blocks:
        lines = block.split("\n")
        words = sum(line.split("\t")[0].isdigit() for line in lines)
        if least <= words <= most:
            yield next(line.removeprefix("# text = ") for line in lines if line.startswith("# text = "))


def sentences(conllu, *limits):
    print(*sentences_of(conllu, *map(int, limits)), sep="\n")


def relations_with_heads(report):
    """{relation: head}: of the decoder's own side, at least 10 points above the best offset, 100 words or more."""
    return {r["relation"]: r["head"] for r in report["best"]
            if r["direction"] == "to_head" and r["head"].startswith("decoder") and r["relation"] != "all"
            and r["support"] >= 100 and r["score"] - r["baseline"] >= 0.1}


def relations(path):
    for head in sorted(set(relations_with_heads(json.loads(Path(path).read_text())).values())):
        print(head)


if __name__ == "__main__":
    {f.__name__: f for f in (mutes, choose, sentences, relations)}[sys.argv[1]](*sys.argv[2:])
