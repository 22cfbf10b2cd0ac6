"""What claims 59 to 63 of docs/heads/results/README.md ask of MiniLM, computed once: python scripts/likeness_runs.py MODEL CAPTIONS DIR.
CAPTIONS has a sentence on each line (gzip or not). What comes out lies in DIR, a JSON file for each question; likeness_results.py makes the page of it."""

import gzip
import json
import pathlib
import random
import sys

import multihead as mh
import numpy as np

PAIRS, LEAST_COSINE, MOST_TOKENS = 100, 0.55, 40
STEPS = 20  # of a curve: what `heads attribution --points` is without being given
FEW, DRAWS = 5, 5


def alike_pairs(model, captions):
    """Captions of which each is the nearest of the other: numbers of lines, by the first of the two."""
    vectors = model.embed(captions).astype(float)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    nearest = cosines.argmax(axis=1)
    found = []
    for first, second in enumerate(nearest):
        if nearest[second] != first or second < first or captions[first] == captions[second]:
            continue
        if cosines[first, second] >= LEAST_COSINE and len(model.tokenize(captions[first]).ids) <= MOST_TOKENS:
            found.append((first, int(second)))
    return found[:PAIRS]


def contributions(model, text, other, sources):
    report = mh.heads.contributions(model, text, answer=other, sources=sources).report
    if report["error"] > 1e-4:
        raise SystemExit(f"the parts of {text!r} are off by {report['error']:g}")
    return report


def parts_of_pair(model, text, other, unlike):
    """The parts of the cosine with the other caption and with one that is not alike, and by token what is read of it and written at it."""
    report = contributions(model, text, other, len(model.heads))
    read = np.zeros(len(report["tokens"]))
    written = np.zeros(len(report["tokens"]))
    for part in report["parts"]:
        if part["positions"]:
            written += part["positions"]
        if part["kind"] == "embeddings":
            read += part["positions"]
        if part["kind"] == "head":
            read += part["sources"]
    return {
        "score": report["score"],
        "error": report["error"],
        "tokens": report["tokens"],
        "parts": [part["sum"] for part in report["parts"]],
        "unlike": [part["sum"] for part in contributions(model, text, unlike, 0)["parts"]],
        "read": read.tolist(),
        "written": written.tolist(),
    }


def kinds(model, text, other):
    """What the parts are: name, kind and layer of each."""
    return [{key: part[key] for key in ("name", "kind", "layer")} for part in contributions(model, text, other, 0)["parts"]]


def areas(model, tokens, scores, against):
    """The areas of deletion and insertion of one order of tokens, as docs/heads/attribution.md defines them."""
    (mask,) = model.tokenize(model.mask_token, special_tokens=False).ids
    ids = [token["id"] for token in tokens]
    order = sorted((i for i, token in enumerate(tokens) if not token["kept"]), key=lambda i: -scores[i])
    steps = min(STEPS, len(order))
    counts = [step * len(order) // steps for step in range(steps + 1)]

    def with_masks(places):
        return [mask if i in places else id_ for i, id_ in enumerate(ids)]

    fewer = [with_masks(set(order[:count])) for count in counts]
    more = [with_masks(set(order[count:])) for count in counts]
    cosines = model.embed(fewer + more).astype(float) @ against
    shares = np.array(counts) / len(order)
    return [float(np.trapezoid(curve, shares)) for curve in (cosines[: len(counts)], cosines[len(counts) :])]


def areas_of_pair(model, text, other, parts):
    """By the tokens that contributions rank, and by raw attention, to see that these are the areas of the bench."""
    tokens = mh.heads.attribution(model, text, second=other, methods="attention").report["tokens"]
    against = model.embed(other).astype(float)
    attention = [token["scores"]["attention"] for token in tokens]
    return {name: areas(model, tokens, scores, against)
            for name, scores in (("read", parts["read"]), ("written", parts["written"]), ("attention", attention))}


def random_heads(chosen, names, seed):
    """From each layer as many heads as there are of `chosen` in it, none of these among them."""
    draw = random.Random(seed)
    found = []
    for layer in sorted({name.rsplit(".", 1)[0] for name in chosen}):
        inside = [name for name in names if name.rsplit(".", 1)[0] == layer]
        others = [name for name in inside if name not in chosen]
        found += draw.sample(others, len(inside) - len(others))
    return found


def cosines_without(model, muted, texts, others, unlike):
    """Cosines of pairs: heads muted while the first text is read, while both are, and of both with the unlike caption."""
    whole = model.embed(others).astype(float)
    with model.edit(mute=muted):
        first, second, third = (model.embed(lines).astype(float) for lines in (texts, others, unlike))
    return {name: np.sum(first * vectors, axis=1).tolist()
            for name, vectors in (("first", whole), ("both", second), ("unlike", third))}


def muting(model, parts, names, pairs):
    """What the second half of the pairs (2, 4, ...) loses without the heads that add most to the first (1, 3, ...)."""
    means = np.mean([pair["parts"] for pair in parts[::2]], axis=0)
    chosen = sorted((name for name in names if "self_attention" in name), key=lambda name: -means[names.index(name)])[:FEW]
    heads = [head.name for head in model.heads]
    texts, others, unlike = (list(lines) for lines in zip(*pairs[1::2]))
    groups = {"none": [], "chosen": chosen, **{f"draw {seed}": random_heads(chosen, heads, seed) for seed in range(1, DRAWS + 1)}}
    single = {head: cosines_without(model, [head], texts, others, unlike)["first"] for head in heads}
    found = {name: cosines_without(model, muted, texts, others, unlike) for name, muted in groups.items()}
    return {"groups": groups, "cosines": found, "single": single}


def main(model_path, captions_path, folder):
    folder = pathlib.Path(folder)
    opened = gzip.open if captions_path.endswith(".gz") else open
    with opened(captions_path, "rt", encoding="utf-8") as file:
        captions = file.read().splitlines()
    model = mh.load(model_path)

    def keep(name, compute):
        path = folder / f"{name}.json"
        if not path.exists():
            print(f"computing {path}", file=sys.stderr)
            path.write_text(json.dumps(compute()) + "\n")
        return json.loads(path.read_text())

    numbers = keep("pairs", lambda: alike_pairs(model, captions))
    # The unlike caption beside a pair is the second one of the next pair.
    pairs = [(captions[first], captions[second], captions[numbers[(at + 1) % len(numbers)][1]])
             for at, (first, second) in enumerate(numbers)]
    keep("texts", lambda: pairs)
    parts_kinds = keep("kinds", lambda: kinds(model, *pairs[0][:2]))
    parts = keep("parts", lambda: [parts_of_pair(model, *pair) for pair in pairs])
    keep("areas", lambda: [areas_of_pair(model, *pair[:2], one) for pair, one in zip(pairs, parts)])
    keep("bench", lambda: mh.heads.faithfulness(model, [pair[0] for pair in pairs], pair=[pair[1] for pair in pairs]).report)
    keep("muting", lambda: muting(model, parts, [part["name"] for part in parts_kinds], pairs))


if __name__ == "__main__":
    main(*sys.argv[1:])
