"""One softmax in place of the maps of all heads of an attention, beside attention muted, even weights and the mean of the maps: all
attentions of a model at once, and one at a time. scripts/answers_models runs it; the limits are in docs/heads/results/README.md.

What is checked on the way: the whole model's own maps, put in the place of its maps, change nothing; where a folder can say that its
matrices are one head's, that model gives what the edits give; and the one map is the h maps multiplied, each to the power 1/sqrt(h), with
rows made to sum to 1."""

import numpy as np

CHECKED_TEXTS = 3
SAME = 1e-4  # how far two ways to one number may be apart
# The fields of config.json that make one head of an attention's matrices. With rotary positions there are none: one head of 576 numbers
# would turn its planes at other frequencies.
UNCUT = {"minilm": {"num_attention_heads": 1}, "demo": {"encoder_attention_heads": 1, "decoder_attention_heads": 1}}
# Models of many layers: how many texts, and which changes, layer by layer.
BY_LAYER = {"smollm2": (20, ("one softmax", "muted"))}


def one_map(seen, attention):
    """softmax(sum_i q_i.k_i / sqrt(h d_k)) [queries, keys]: what a single head with the queries and keys of all has."""
    queries, keys = attention.queries(seen), attention.keys(seen)
    scores = np.einsum("qhd,khd->qk", queries, keys) / np.sqrt(attention.heads * attention.d_key)
    scores = np.where(attention.visible(scores), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def mean_map(seen, attention):
    return seen.weights(attention.name).mean(0, dtype=np.float64)


def product_of_maps(seen, attention):
    """The h maps multiplied, each to the power 1/sqrt(h), and each row made to sum to 1."""
    with np.errstate(divide="ignore"):  # a weight of 0 stays one
        logs = np.log(seen.weights(attention.name).astype(np.float64)).sum(0) / np.sqrt(attention.heads)
    product = np.exp(logs - logs.max(1, keepdims=True))
    return product / product.sum(1, keepdims=True)


MAPS = {"one softmax": (one_map, ("queries", "keys")), "mean of the maps": (mean_map, ("weights.*",))}


def edit(case, text, change, attentions, seen=None):
    """What model.edit() is given for a change of these attentions. Maps follow from the whole model where it was observed (`seen`),
    else from the model as it is changed in the attentions before."""
    if change == "muted":
        return {"mute": [f"{attention.name}.*" for attention in attentions]}
    if change == "even weights":
        return {"replace": {f"{attention.name}.*": "uniform" for attention in attentions}}
    make, sites = MAPS[change]
    maps = {}
    for attention in attentions:
        if seen is None:
            with case.model.edit(replace=maps):
                here = case.observe(text, [f"{attention.name}.{site}" for site in sites])
        else:
            here = seen
        maps[f"{attention.name}.weights.*"] = make(here, attention).astype(np.float32)
    return {"replace": maps}


def changed_score(case, number, change, attentions, seen=None):
    with case.model.edit(**edit(case, case.texts[number], change, attentions, seen)):
        return case.scores(numbers=[number])[0]


def check_own_maps(case):
    """How far the scores are from the whole model's when all maps are replaced by themselves."""
    apart = 0.0
    for number in range(min(CHECKED_TEXTS, len(case.texts))):
        seen = case.observe(case.texts[number], ["*.weights.*"])
        whole, count = case.scores(numbers=[number])[0]
        with case.model.edit(replace={site: seen[site] for site in seen}):
            changed = case.scores(numbers=[number])[0][0]
        apart = max(apart, abs(changed - whole) / count)
    assert apart < SAME, f"{case.name}: its own maps in their places change its scores by {apart}"
    return apart


def check_product(case):
    """How far the one map is from the product of the maps, over all attentions."""
    apart = 0.0
    for text in case.texts[:CHECKED_TEXTS]:
        seen = case.observe(text, ["*.weights.*", "*.queries", "*.keys"])
        for attention in case.attentions:
            apart = max(apart, np.abs(one_map(seen, attention) - product_of_maps(seen, attention)).max())
    assert apart < SAME, f"{case.name}: the one map and the product of the maps are {apart} apart"
    return float(apart)


def check_uncut(case, rows):
    """How far the model whose folder says one head is from the edits (`rows`)."""
    with case.copy(config=UNCUT[case.name]) as uncut:
        assert len(uncut.heads) == len(case.attentions)
        found = case.scores(model=uncut)
    apart = max(abs(a - b) / count for (a, count), (b, _) in zip(found, rows))
    assert apart < SAME, f"{case.name}: as one head it scores {apart} apart from the edits"
    return apart


def unrelated(case):
    """Of each text the cosine to the next one, or the loss of the next one's translation."""
    following = list(range(1, len(case.texts))) + [0]
    if case.name == "minilm":
        vectors = case.vectors.astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [[cosine, 1] for cosine in (vectors * vectors[following]).sum(1).tolist()]
    return case.scores(targets=[case.texts[n][1] for n in following])


def one_softmax(case):
    report = {"texts": len(case.texts), "tokens": sum(count for _, count in case.scores()), "attentions": [a.name for a in case.attentions],
              "heads": case.attentions[0].heads, "own_maps_apart": check_own_maps(case), "product_apart": check_product(case)}
    changes = ("one softmax", "mean of the maps", "muted", "even weights")
    at_once = {"whole": case.scores()}
    for change in changes:
        at_once[change] = [changed_score(case, number, change, case.attentions) for number in range(len(case.texts))]
    if case.name in UNCUT:
        report["uncut_apart"] = check_uncut(case, at_once["one softmax"])
    if case.name != "smollm2":
        at_once["unrelated"] = unrelated(case)
    texts, changes = BY_LAYER.get(case.name, (len(case.texts), changes))
    by_layer = {change: [[] for _ in case.attentions] for change in changes}
    for number in range(min(texts, len(case.texts))):
        seen = case.observe(case.texts[number], ["*.queries", "*.keys", "*.weights.*"])
        for change in changes:
            for layer, attention in enumerate(case.attentions):
                by_layer[change][layer].append(changed_score(case, number, change, [attention], seen))
    return {**report, "at_once": at_once, "by_layer": by_layer}
