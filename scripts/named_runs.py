"""Computes what docs/heads/results/README.md asks of named heads, each result once, as JSON in OUT:

    named_runs.py MODELS EWT GRAMMAR OUT [PART ...]

MODELS: what scripts/models made. EWT: UD English-EWT's development part. GRAMMAR: what `multihead data grammar` made. Parts, in this
order: induction, words, orders. Needs the package multihead."""

import functools
import json
import random
import sys
from pathlib import Path

import numpy as np

import multihead as mh
from tree_words import after_words, trees_of

# The heads that docs/heads/results/clark.md (claim 2) and ranking.md name.
NAMED = {
    "minilm": {"obj": "encoder.2.self_attention.0", "case": "encoder.2.self_attention.8", "cop": "encoder.2.self_attention.1",
               "nsubj": "encoder.2.self_attention.8", "det": "encoder.2.self_attention.8", "aux": "encoder.1.self_attention.4",
               "cc": "encoder.2.self_attention.8", "advmod": "encoder.2.self_attention.1", "obl": "encoder.1.self_attention.3"},
    "smollm2": {"acl:relcl": "decoder.11.self_attention.0", "advmod": "decoder.11.self_attention.0",
                "conj": "decoder.12.self_attention.8", "obj": "decoder.10.self_attention.1"},
    "demo": {"advmod": "decoder.1.self_attention.1", "obj": "decoder.1.self_attention.1"},
}
SEVEN = 7
LAST_OF_SMOLLM2 = 800  # its sentence of EWT
REPEATED, FIRST_REPEATED, LEAST_WORDS, MOST_WORDS = 120, 301, 10, 30
DRAWS = range(1, 11)
ORDERS = range(1, 21)


def layer(head):
    return head.rpartition(".")[0]


def seven_others(head, heads):
    """Seven other heads of the layer; where it has fewer, all others of the stack's self-attention."""
    others = [h for h in heads if h != head and layer(h) == layer(head)]
    if len(others) < SEVEN:
        others = [h for h in heads if h != head and h.startswith(head.partition(".")[0]) and ".self_attention." in h]
    return random.Random(1).sample(others, SEVEN)


def seven_alike(chosen, heads, seed):
    """Seven heads that are not chosen: from each layer as many as are chosen there."""
    draw = random.Random(seed)
    layers = sorted({layer(head) for head in chosen})
    return [head for name in layers
            for head in draw.sample([h for h in heads if layer(h) == name and h not in chosen], sum(layer(c) == name for c in chosen))]


class Kept:
    def __init__(self, directory):
        self.directory = Path(directory)

    def __call__(self, name, compute):
        """What compute() gives, kept as NAME.json and not computed again."""
        path = self.directory / f"{name}.json"
        if path.exists():
            return json.loads(path.read_text())
        print(name, file=sys.stderr)
        found = compute()
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(path)
        return found


def turned(model, sentences):
    """Of an encoder: for each head how far it turns the last states of words, by sentence and word."""
    texts = [text for text, _ in sentences]
    places = [model.tokenize(text).offsets for text in texts]

    def states():
        return [np.array(seen["encoder.states"], dtype=np.float64) for seen in model.observe(texts, sites="encoder.states")]

    whole = functools.cache(states)

    def of_words(words, offsets, turns):
        own = [[i for i, (b, e) in enumerate(offsets) if begin <= b < e <= end] for _, begin, end in words]
        return [float(np.mean(turns[at])) if at else None for at in own]

    def change(head):
        before = whole()
        with model.edit(mute=head):
            after = states()
        turns = [1 - (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1) for a, b in zip(before, after)]
        return [of_words(words, offsets, turn) for (_, words), offsets, turn in zip(sentences, places, turns)]

    return change


def risen(model, sentences, sources):
    """Of a causal model, or a translator with sources: how much the loss of the token after each word rises, by sentence and word."""
    texts = [text for text, _ in sentences]
    places = [model.tokenize(text, target=sources is not None).offsets for text in texts]

    def losses():
        return [-scores.astype(np.float64) for scores in
                (model.score(texts, per_token=True) if sources is None else model.score(sources, texts, per_token=True))]

    whole = functools.cache(losses)

    def change(head):
        before = whole()
        with model.edit(mute=head):
            after = losses()
        return [after_words(words, offsets, (b - a).tolist(), sources is not None)
                for (_, words), offsets, a, b in zip(sentences, places, before, after)]

    return change


def words_of(kept, name, model, sentences, change):
    """Keeps the relations of words, the random heads of each head, and what muting each of them does to words."""
    heads = [head.name for head in model.heads]
    others = {head: seven_others(head, heads) for head in sorted(set(NAMED[name].values()))}
    relations = [[relation for relation, _, _ in words] for _, words in sentences]
    kept(f"words_{name}", lambda: {"named": NAMED[name], "random": others, "relations": relations})
    for head in sorted({*others, *(h for seven in others.values() for h in seven)}):
        kept(f"words_{name}.{head}", lambda: change(head))


def two_copies(tokens, length):
    """Places of the tokens of the second copy of a text of so many characters, and of the same tokens in the first; without the first
    token, and without those that the space between makes others."""
    first = [i for i, (_, e) in enumerate(tokens.offsets) if 0 < e <= length]
    second = [i for i, (_, e) in enumerate(tokens.offsets) if e > length + 1]
    count = 0
    while count + 1 < min(len(first), len(second)) and tokens.ids[first[-1 - count]] == tokens.ids[second[-1 - count]]:
        count += 1
    return first[len(first) - count:], second[len(second) - count:]


def induction(kept, model, sentences):
    texts = [text for text, words in sentences[FIRST_REPEATED - 1:] if LEAST_WORDS <= len(words) <= MOST_WORDS][:REPEATED]
    heads = [head.name for head in model.heads]
    scores = kept("induction_scores", lambda: {h["head"]: h["induction"] for h in mh.heads.stats(model, texts[:10]).report["heads"]})
    chosen = sorted(scores, key=scores.get, reverse=True)[:SEVEN]
    twice = [f"{text} {text}" for text in texts]
    places = [two_copies(model.tokenize(both), len(text)) for both, text in zip(twice, texts)]

    def losses(muted):
        with model.edit(mute=muted):
            scored = model.score(twice, per_token=True)
        # The first token of all is not scored, so token i is number i - 1.
        means = [[-float(np.mean(numbers[np.array(at) - 1], dtype=np.float64)) for at in both] for numbers, both in zip(scored, places)]
        return {"muted": muted, "tokens": sum(len(second) for _, second in places), "first_and_second": means}

    kept("induction_whole", lambda: losses([]))
    kept("induction_heads", lambda: losses(chosen))
    for seed in DRAWS:
        kept(f"induction_draw{seed}", lambda: losses(seven_alike(chosen, heads, seed)))


def main(models, ewt, grammar, out, *parts):
    kept, models, ewt, grammar = Kept(out), Path(models), Path(ewt), Path(grammar)
    every = list(trees_of(ewt))
    load = functools.cache(mh.load)
    wanted = lambda part: not parts or part in parts
    if wanted("induction"):
        induction(kept, load(models / "smollm2.gguf"), every)
    if wanted("words"):
        model, sentences = load(models / "minilm"), every[1::2]
        words_of(kept, "minilm", model, sentences, turned(model, sentences))
        model, sentences = mh.demo(), list(trees_of(grammar / "test.de.conllu"))[1::2]
        sources = [text for text, _ in trees_of(grammar / "test.en.conllu")][1::2]
        words_of(kept, "demo", model, sentences, risen(model, sentences, sources))
        model, sentences = load(models / "smollm2.gguf"), every[1:LAST_OF_SMOLLM2:2]
        words_of(kept, "smollm2", model, sentences, risen(model, sentences, None))
    for seed in ORDERS if wanted("orders") else ():
        kept(f"order{seed}", lambda: mh.heads.relations(load(models / "minilm"), trees=ewt, seed=seed).report["random"])


if __name__ == "__main__":
    main(*sys.argv[1:])
