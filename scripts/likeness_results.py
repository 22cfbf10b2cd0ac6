"""Writes likeness.md of docs/heads/results from what likeness_runs.py and confirm_likeness.py computed: python scripts/likeness_results.py DIR TO.
The limits are those of docs/heads/results/README.md, which were fixed before the runs."""

import statistics
import sys

import numpy as np
import scipy.stats

from heads_results import BLUE, GREY, RED, Results, holm, percent, plt, table
from importance_results import above_zero, p_is, p_text
from likeness_runs import DRAWS, FEW, PAIRS

SHOWN = 10  # heads of the table
AGREED = 0.5  # rank correlation of two pairs: claim 62
OURS = {"read": "contributions, read", "written": "contributions, written"}


def interval(values):
    mean, half, _ = above_zero(values)
    return f"{mean:.3f} ± {half:.3f}"


def share(parts, whole):
    """Of the mean of all, in percent."""
    return percent(np.mean(parts) / np.mean(whole), 0)


class Parts:
    """The parts of each pair's cosine: rows are pairs."""

    def __init__(self, results):
        self.kinds, pairs = results.read("kinds"), results.read("parts")
        self.alike = np.array([pair["parts"] for pair in pairs])
        self.unlike = np.array([pair["unlike"] for pair in pairs])
        self.score = np.array([pair["score"] for pair in pairs])
        self.error = max(pair["error"] for pair in pairs)

    def of(self, *kinds, layer=None):
        """The columns of a kind, perhaps those of one layer."""
        return [i for i, part in enumerate(self.kinds) if part["kind"] in kinds and layer in (None, part["layer"])]

    def last_layer(self):
        """Which of the heads, by their number among heads, are of the last layer."""
        layers = [self.kinds[i]["layer"] for i in self.of("head")]
        return [number for number, layer in enumerate(layers) if layer == max(layers)]

    def names(self):
        return [self.kinds[i]["name"] for i in self.of("head")]


def words(results):
    """Claims 59 and 60: the areas of all orders, and the text about them."""
    bench, own = results.read("bench"), results.read("areas")
    methods = {entry["method"]: entry for entry in bench["methods"]}
    areas = {name: (entry["deletion_by_sentence"], entry["insertion_by_sentence"]) for name, entry in methods.items()}
    off = max(abs(pair["attention"][i] - area[at]) for i, area in enumerate(areas["attention"]) for at, pair in enumerate(own))
    if off > 1e-5 or bench["left_out"]:
        raise SystemExit(f"areas of raw attention differ from those of the bench by {off:g}; {bench['left_out']} texts are left out")
    areas |= {name: tuple([pair[key][i] for pair in own] for i in (0, 1)) for key, name in OURS.items()}
    areas = {name: (np.array(deletion), np.array(insertion)) for name, (deletion, insertion) in areas.items()}

    def gains(name, floor):
        """By how much an order is better than another, by pair: deletion, insertion."""
        return areas[floor][0] - areas[name][0], areas[name][1] - areas[floor][1]

    read = OURS["read"]
    compared = [(floor, kind, gain) for floor in ("random", "attention")
                for kind, gain in zip(("deletion", "insertion"), gains(read, floor))]
    ps = holm([above_zero(gain)[2] for _, _, gain in compared])
    said = ", ".join(f"{kind} against {'random orders' if floor == 'random' else 'raw attention'} {interval(gain)} ({p_is(p)})"
                     for (floor, kind, gain), p in zip(compared, ps))
    than_gradients = gains(read, "integrated-gradients")
    gradients_ps = holm([above_zero(gain)[2] for gain in than_gradients])
    on_random = [share(ours, theirs) for ours, theirs in zip(gains(read, "random"), gains("integrated-gradients", "random"))]
    rows = []
    for name in sorted(areas, key=lambda name: areas[name][0].mean()):
        deleted, inserted = gains(name, "random")
        rows.append([name, interval(areas[name][0]), interval(areas[name][1]),
                     *([""] * 2 if name == "random" else [interval(deleted), interval(inserted)])])
    return "\n".join([
        results.claim(59, max(ps) < 0.05, f"How much better the order by what is read is: {said}."),
        results.claim(60, max(gradients_ps) < 0.05,
                      f"It is better than that of integrated gradients by {interval(than_gradients[0])} of deletion ({p_is(gradients_ps[0])}) and "
                      f"{interval(than_gradients[1])} of insertion ({p_is(gradients_ps[1])}): of their gain on random orders it has {on_random[0]} and "
                      f"{on_random[1]} %."),
        table(["order", "deletion", "insertion", "gain on random, deletion", "insertion"], rows),
    ])


def agreement(heads):
    """The mean rank correlation of two rows, and half of its 95 % interval by the jackknife over rows."""
    correlations = np.corrcoef([scipy.stats.rankdata(row) for row in heads])
    count = len(heads)

    def mean_of(rows):
        picked = correlations[np.ix_(rows, rows)]
        return (picked.sum() - len(rows)) / (len(rows) * (len(rows) - 1))

    without = np.array([mean_of([j for j in range(count) if j != i]) for i in range(count)])
    error = ((count - 1) / count * ((without - without.mean()) ** 2).sum()) ** 0.5
    return mean_of(list(range(count))), error * scipy.stats.t.ppf(0.975, count - 1)


def carried(results, parts):
    """Claims 61 and 62: which parts, and whether they are the same in all pairs."""
    heads = parts.alike[:, parts.of("head")]
    together = heads.sum(axis=1)
    more, half, p = above_zero(together - parts.score / 2)
    order = np.argsort(-heads[::2].mean(axis=0))[:FEW]
    few = heads[1::2][:, order].sum(axis=1)
    few_p = above_zero(few - together[1::2] / 2)[2]
    agreed, agreed_half = agreement(heads)
    last = heads[:, parts.last_layer()]
    inside, inside_half = agreement(last)
    names = parts.names()
    listed = ", ".join(f"`{names[i]}`" for i in order)
    groups = {"heads": ("head",), "feed-forward layers": ("feed_forward",), "embeddings": ("embeddings",), "biases": ("biases", "output")}
    rows = []
    for name, kinds in groups.items():
        alike, unlike = (values[:, parts.of(*kinds)].sum(axis=1) for values in (parts.alike, parts.unlike))
        rows.append([name, interval(alike), f"{share(alike, parts.score)} %", interval(unlike),
                     f"{share(unlike, parts.unlike.sum(axis=1))} %"])
    return "\n".join([
        results.claim(61, p < 0.05, f"Heads add {share(together, parts.score)} % of the cosine: {more:+.3f} ± {half:.3f} beyond its half "
                                    f"({p_is(p)})."),
        results.claim(62, few_p < 0.05 and agreed - agreed_half > AGREED,
                      f"Of what all heads add to pairs 2, 4, ... the {FEW} heads that add most to pairs 1, 3, ... have {share(few, together[1::2])} % "
                      f"({p_is(few_p)} for more than half): {listed}. The mean rank correlation of two pairs over {len(names)} heads is "
                      f"{agreed:.2f} ± {agreed_half:.2f}."),
        f"The {last.shape[1]} heads of the last layer have {share(last.sum(axis=1), parts.score)} % of the cosine, {share(last.sum(axis=1), together)} % of "
        f"what all heads add; among them alone the mean rank correlation of two pairs is {inside:.2f} ± {inside_half:.2f} (looked at afterwards).\n",
        table(["part", "alike", "share", "not alike", "share"], rows),
    ])


def muted(results, parts):
    """Claim 63: what is lost without the heads, and the table of heads. Also what each head costs alone."""
    found = results.read("muting")
    whole = found["cosines"]["none"]
    falls = {name: {key: np.array(whole[key]) - np.array(cosines[key]) for key in whole}
             for name, cosines in found["cosines"].items() if name != "none"}
    draws = [name for name in falls if name != "chosen"]
    if len(draws) != DRAWS:
        raise SystemExit(f"there are {len(draws)} draws, not {DRAWS}")
    ps = holm([above_zero(falls["chosen"]["first"] - falls[draw]["first"])[2] for draw in draws])
    heads = parts.alike[:, parts.of("head")]
    names = parts.names()
    added = heads[1::2][:, [names.index(name) for name in found["groups"]["chosen"]]].sum(axis=1)
    lost = np.array([np.mean(whole["first"]) - np.mean(found["single"][name]) for name in names])
    rank = scipy.stats.spearmanr(heads[1::2].mean(axis=0), lost)
    last = parts.last_layer()
    inside = scipy.stats.spearmanr(heads[1::2].mean(axis=0)[last], lost[last])
    rows = [[name, interval(falls[name]["first"]), "" if name == "chosen" else p_text(ps[draws.index(name)]),
             interval(falls[name]["both"]), interval(falls[name]["unlike"]),
             ", ".join(head.replace("encoder.", "").replace("self_attention.", "") for head in found["groups"][name])] for name in falls]
    text = "\n".join([
        results.claim(63, max(ps) < 0.05, f"Without the {FEW} heads, muted while the first caption is read, the cosine falls by "
                                          f"{interval(falls['chosen']['first'])}; they add {interval(added)}. With the draws it falls by "
                                          + ", ".join(f"{falls[draw]['first'].mean():.3f}" for draw in draws) + "."),
        table(["muted", "fall, first caption alone", "p", "both captions", "both, pairs not alike", "heads (layer.head)"], rows),
        f"Of each head alone: over {len(names)} heads Spearman's rank correlation between what it adds and what is lost without it, on pairs "
        f"2, 4, ..., is {rank.statistic:.2f} (two-sided {p_is(rank.pvalue)}); over the {len(last)} of the last layer {inside.statistic:.2f} (looked at afterwards).\n",
    ])
    order = np.argsort(-heads.mean(axis=0))[:SHOWN]
    unlike = parts.unlike[:, parts.of("head")]
    text += "\n" + table(["head", "adds, alike", "adds, not alike", "cosine falls without it"],
                         [[f"`{names[i]}`", interval(heads[:, i]), interval(unlike[:, i]), f"{lost[i]:+.3f}"] for i in order])
    return text, lost


def apart(results, name):
    """How the distance between the mean cosines of alike and of other pairs changes when heads are muted in both captions."""
    none, without = (results.read("muting")["cosines"][group] for group in ("none", name))
    return f"{np.mean(without['both']) - np.mean(without['unlike']) - np.mean(none['both']) + np.mean(none['unlike']):+.3f}"


def picture(parts, lost):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    layers = sorted({part["layer"] for part in parts.kinds if part["layer"] is not None})
    means = parts.alike.mean(axis=0)
    left.bar(-1, means[parts.of("embeddings")].sum(), color=GREY, width=0.38, label="embeddings")
    for offset, kind, colour, label in ((-0.2, "head", BLUE, "heads"), (0.2, "feed_forward", RED, "feed-forward")):
        left.bar([layer + offset for layer in layers], [means[parts.of(kind, layer=layer)].sum() for layer in layers], color=colour,
                 width=0.38, label=label)
    left.axhline(0, color="lightgrey", linewidth=0.8)
    left.set_xticks([-1, *layers], ["", *map(str, layers)])
    left.set_xlabel("layer")
    left.set_ylabel("adds to the cosine (mean of all pairs)")
    left.legend(frameon=False, fontsize=8)
    heads, names = parts.alike[1::2][:, parts.of("head")].mean(axis=0), parts.names()
    right.axhline(0, color="lightgrey", linewidth=0.8)
    right.axvline(0, color="lightgrey", linewidth=0.8)
    right.plot(heads, lost, "o", markersize=3, color=BLUE)
    for i in sorted({*np.argsort(-heads)[:5].tolist(), int(np.argmin(heads)), int(np.argmin(lost)), *np.argsort(-lost)[:5].tolist()}):
        _, layer, _, head = names[i].split(".")
        right.annotate(f"{layer}.{head}", (heads[i], lost[i]), fontsize=7, color=RED, xytext=(3, 3), textcoords="offset points")
    right.set_xlabel("what the head adds to the cosine")
    right.set_ylabel("by how much it falls without it")
    figure.tight_layout()
    return figure


def confirmed(results, parts):
    """What the script found that uses nothing of ours, beside what the runs found."""
    theirs = results.read("confirmed")
    heads, names = parts.alike[:, parts.of("head")], parts.names()
    ours = {
        "cosine": parts.score.mean(),
        "heads": heads.sum(axis=1).mean(),
        "feed-forward layers": parts.alike[:, parts.of("feed_forward")].sum(axis=1).mean(),
        "embeddings": parts.alike[:, parts.of("embeddings")].sum(axis=1).mean(),
        **{names[i]: heads[:, i].mean() for i in np.argsort(-heads.mean(axis=0))[:FEW]},
    }
    muting = results.read("muting")["cosines"]
    ours["fall without the chosen heads"] = statistics.mean(a - b for a, b in zip(muting["none"]["first"], muting["chosen"]["first"]))
    if theirs["pairs"] != results.read("pairs") or theirs["chosen"] != results.read("muting")["groups"]["chosen"]:
        raise SystemExit("confirm_likeness.py found other pairs or other heads")
    off = max(abs(theirs["means"][name] - heads[:, i].mean()) for i, name in enumerate(names))
    rows = [[f"`{name}`" if "." in name else name, f"{value:.5f}", f"{theirs['means'][name]:.5f}"] for name, value in ours.items()]
    return (f"It found the same pairs and the same {FEW} heads; the means of all {len(names)} heads are within {off:.0e} of ours.\n\n"
            + table(["mean over pairs", "multihead", "transformers, float64"], rows))


def example(results, parts):
    text, other, _ = results.read("texts")[0]
    pair = results.read("parts")[0]
    return (f"The first pair is \"{text}\" and \"{other}\", cosine {parts.score[0]:.3f}. Read: "
            + ", ".join(f"`{token}` {part:+.3f}" for token, part in zip(pair["tokens"], pair["read"])) + ".\n")


def page(results):
    parts = Parts(results)
    if len(parts.score) != PAIRS:
        print(f"there are {len(parts.score)} pairs, not {PAIRS}", file=sys.stderr)
    of_words, of_parts = words(results), carried(results, parts)
    of_heads, lost = muted(results, parts)
    special = np.array([pair["read"][0] + pair["read"][-1] for pair in results.read("parts")])
    smallest, *_, largest = sorted((apart(results, f"draw {seed}") for seed in range(1, DRAWS + 1)), key=float)
    text = f"""# Why two sentences are alike for MiniLM

all-MiniLM-L6-v2, 72 heads, {len(parts.score)} pairs of captions of Multi30k, each the nearest of the other: mean cosine {interval(parts.score)}.
With the second caption of another pair it is {interval(parts.unlike.sum(axis=1))}. The cosine is [a sum](../contributions.md) over embeddings, heads and
feed-forward layers of the first caption; it is off by at most {parts.error:.0e} of its parts' absolute values. Means over pairs with 95 % intervals; p
is one-sided, paired by pair, after Holm.

![the parts by layer, and what is lost without each head](likeness.svg)

## Which words

Tokens are replaced by `[MASK]`, or come back, in the order of what each method gives them; what counts is the area under the cosine
([the measure](../attribution.md#how-faithful-are-they)): small of deletion, large of insertion. **Read**: a token's embedding and what all heads read of it.
**Written**: what all parts together add at the token.

{of_words}
{example(results, parts)}
What heads read of `[CLS]` and `[SEP]` is {share(special, parts.score)} % of the cosine; these tokens are never replaced.

## Which parts

{of_parts}
## What is lost without the heads

{of_heads}
## What this says, and what not

The order by what is read is better than that of integrated gradients by deletion, and not found to be by insertion; it takes no 64 passes forwards and
backwards. Relevance and integrated gradients come next, raw attention behind them, as on [unlike sentences](trust.md). Captions are short and say what
is to be seen, and the bench puts `[MASK]` for tokens: of other text this says nothing.

A part counts where it is written, and what is read of a token in the last layer is its state there, in which other tokens have left their trace. Most of the
likeness is written by heads of the last layer, behind which stand only one feed-forward layer and norms; what these heads read was made by the layers
before. So that other heads add little does not say that they do little.

Muted while one caption is read, the five cost about half of what they add: the vector is scaled to length 1 again, and the layer behind them reads
something else. Muted in both, alike captions become less alike and others more alike: the distance between the two changes by {apart(results, "chosen")}, with
the draws by {smallest} to {largest}.

## Confirmed

`scripts/confirm_likeness.py` computes the parts with transformers and torch in float64 and no code of ours: it takes the pairs by its own vectors,
carries what each head and layer adds through the norms that follow, forwards, with their scales held, and mutes heads by hooks.
{confirmed(results, parts)}"""
    results.save("likeness", text, picture(parts, lost))


def main(directory, to):
    results = Results(directory, to)
    page(results)
    print("\n".join(f"claim {number}: {'holds' if holds else 'does not hold'}" for number, holds in results.verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
