"""Writes the pages and pictures of docs/heads/results from the JSON of `multihead heads ...`: python scripts/heads_results.py JSON_DIR TO.
scripts/heads_results makes the JSON. The limits are those of docs/heads/results/README.md, which were fixed before the runs. What
does not follow from the JSON stands in these texts and in importance_results.py, and nowhere else."""

import json
import sys
from pathlib import Path

import matplotlib
import scipy.stats

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "multihead", "svg.fonttype": "none", "font.size": 10, "axes.spines.top": False,
                            "axes.spines.right": False})
import matplotlib.pyplot as plt

# Folds of the jackknife: of the half of a corpus that relations are scored on (kRelationFolds / 2), and of a whole one (kSimilarityFolds).
HALF_CORPUS_FOLDS, CORPUS_FOLDS = 10, 20
BLUE, GREY, RED = "#0072b2", "#999999", "#d55e00"
# Clark et al. 2019, table 1: BERT-base on the Penn Treebank, Stanford Dependencies. (score, best offset)
CLARK = {"all": (34.5, 26.3), "det": (94.3, 51.7), "obj": (86.8, 40.0), "pobj": (76.3, 34.6), "nmod:poss": (80.5, 47.7)}
CLARK_NAMES = {"obj": "dobj", "nmod:poss": "poss", "pobj": "pobj"}


def p_above(mean, half, folds):
    """The one-sided p that a mean is above 0 whose 95 % interval by the jackknife over so many folds is mean ± half."""
    if not half:
        return 0.0 if mean > 0 else 1.0
    error = half / scipy.stats.t.ppf(0.975, folds - 1)
    return float(scipy.stats.t.sf(mean / error, folds - 1))


def p_of_gain(row):
    """Of a gain above 0, of a head that was chosen on one half of the sentences and scored on the other."""
    return p_above(gain(row), row["gain_half_width"], HALF_CORPUS_FOLDS)


def holm(ps):
    """Holm 1979: adjusted p, in the order given."""
    adjusted, largest = [0.0] * len(ps), 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[at]))
        adjusted[at] = largest
    return adjusted


def percent(x, digits=1):
    return f"{100 * x:.{digits}f}"


def table(head, rows):
    line = lambda cells: "| " + " | ".join(str(c) for c in cells) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)]) + "\n"


def verdict(number, holds, sentence):
    return f"**Claim {number}: {'holds' if holds else 'does not hold'}.** {sentence}\n"


class Results:
    def __init__(self, directory, to):
        self.directory, self.to, self.verdicts = Path(directory), Path(to), []

    def read(self, name):
        return json.loads((self.directory / f"{name}.json").read_text())

    def claim(self, number, holds, sentence):
        self.verdicts.append((number, holds))
        return verdict(number, holds, sentence)

    def withdrawn(self, number, why):
        """Of a claim that its test could not decide."""
        return f"**Claim {number}: withdrawn**, {why}\n"

    def save(self, name, text, figure=None):
        (self.to / f"{name}.md").write_text(text)
        if figure:
            figure.savefig(self.to / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)


def rows_of(entries, direction="to_head"):
    return {r["relation"]: r for r in entries if r["direction"] == direction}


def gain(row):
    return row["score"] - row["baseline"]


def clark(results):
    report = results.read("relations_minilm")
    best, random = rows_of(report["best"]), rows_of(report["random"])
    enough = [n for n, r in best.items() if n != "all" and r["support"] >= 200]
    enough.sort(key=lambda n: -gain(best[n]))
    adjusted = dict(zip(enough, holm([p_of_gain(best[n]) for n in enough])))
    own = [n for n in enough if gain(best[n]) >= 0.1 and adjusted[n] < 0.05]
    by_chance = [n for n in enough if gain(random[n]) >= 0.1]
    one = best["all"]
    p_one = p_of_gain(one)
    text = f"""# Grammar in the heads of MiniLM-L6, beside BERT-base

Do single heads follow grammatical relations, as Clark et al. 2019 found in BERT-base (144 heads)? all-MiniLM-L6-v2 has 72 heads, was
distilled and then trained for vectors of sentences, not for words. A head's guess is the word that it reads most
([the measure](../relations.md)); the head is chosen on every other sentence and scored on the rest.

```
multihead heads relations minilm --conllu en_ewt-ud-dev.conllu --json
```

![gain over the best fixed offset, by relation](clark.svg)

{results.claim(1, gain(one) >= 0.05 and p_one < 0.05,
f"Over all {one['support']:,} words of the other half, {one['head']} reads most the word's head in {percent(one['score'])} ± {percent(one['score_half_width'])} %, "
f"the best offset in {percent(one['baseline'])} % (gain {percent(gain(one))} ± {percent(one['gain_half_width'])} points).")}
{results.claim(2, 2 * len(own) >= len(enough),
f"Of {len(enough)} relations with 200 scored words or more, {len(own)} have a head that was at least 10 points above the best offset, with a gain above 0 (Holm; that it is 10 or more was not tested): {', '.join(own)}.")}
{results.claim(3, not by_chance,
"With the numbers of W^Q and W^K in one random order (seed 1), the best of 72 heads is 10 points above the offset for " + (f"{', '.join(by_chance)}." if by_chance else "none of them."))}
## Every relation with 200 scored words or more

Word to its head, in % of words; ± is half the 95 % interval; p of the gain after Holm. BERT-base: Clark et al.'s figures, **other
labels and other text** (Stanford Dependencies on the Penn Treebank), so compare gains over the offset, not scores. Their pobj, a noun
that reads its preposition (76.3, offset 34.6), is no relation of Universal Dependencies; case from the head's side is nearest to it.

"""
    names = ["all", *enough]
    text += table(["relation", "words", "best head", "%", "offset %", "gain", "p", "72 random heads %", "BERT-base (its offset)"],
                  [[n, f"{best[n]['support']:,}", f"`{best[n]['head']}`", f"{percent(best[n]['score'])} ± {percent(best[n]['score_half_width'])}",
                    f"{percent(best[n]['baseline'])} ({best[n]['baseline_offset']:+d})", percent(gain(best[n])),
                    "" if n == "all" else f"{adjusted[n]:.1g}" if adjusted[n] >= 1e-6 else "< 1e-6",
                    percent(random[n]["score"]),
                    f"{CLARK_NAMES.get(n, n)} {CLARK[n][0]} ({CLARK[n][1]})" if n in CLARK else ""] for n in names])
    text += """
## From the head's side

Words that have dependents of the relation: how often a head's guess for them is one of these. `--relation obj` prints all heads.

"""
    back = rows_of(report["best"], "to_dependent")
    names_back = sorted((n for n, r in back.items() if n != "all" and r["support"] >= 200), key=lambda n: -gain(back[n]))
    adjusted_back = dict(zip(names_back, holm([p_of_gain(back[n]) for n in names_back])))
    text += table(["relation", "words", "best head", "%", "offset %", "gain", "p"],
                  [[n, f"{back[n]['support']:,}", f"`{back[n]['head']}`", f"{percent(back[n]['score'])} ± {percent(back[n]['score_half_width'])}",
                    f"{percent(back[n]['baseline'])} ({back[n]['baseline_offset']:+d})",
                    f"{percent(gain(back[n]))} ± {percent(back[n]['gain_half_width'])}",
                    f"{adjusted_back[n]:.1g}" if adjusted_back[n] >= 1e-6 else "< 1e-6"] for n in names_back])
    figure, axis = plt.subplots(figsize=(7, 0.26 * len(names) + 0.9))
    y = range(len(names))[::-1]
    axis.barh(y, [100 * gain(best[n]) for n in names], xerr=[100 * best[n]["gain_half_width"] for n in names], color=BLUE, height=0.7,
              ecolor="black", error_kw={"lw": 0.8}, label="MiniLM's best head")
    axis.plot([100 * gain(random[n]) for n in names], y, "o", color=GREY, ms=5, label="best of 72 random heads")
    known = [(i, CLARK[n][0] - CLARK[n][1]) for i, n in zip(y, names) if n in CLARK]
    axis.plot([g for _, g in known], [i for i, _ in known], "D", color=RED, ms=6, label="BERT-base (other labels and text)")
    axis.axvline(0, color="black", lw=0.8)
    axis.set_yticks(list(y), names)
    axis.set_xlabel("points above the best fixed offset")
    axis.legend(frameon=False, ncols=3, fontsize=8, loc="upper center", bbox_to_anchor=(0.45, -0.12))
    results.save("clark", text, figure)


def smollm2(results):
    heads = results.read("stats_smollm2")["heads"]
    kind = results.read("similar_smollm2")["kinds"][0]
    sinks = [h for h in heads if h["on_first"] >= 0.5]
    induction = sorted((h for h in heads if h["induction"] >= 0.5), key=lambda h: -h["induction"])
    previous = sorted((h for h in heads if h["previous_token"] >= 0.5), key=lambda h: -h["previous_token"])
    keys = kind["shared_keys"]
    both = {name: (keys[name]["divergence"], keys[name]["null_divergence"], keys[name]["ratio"]) for name in ("sharing", "others")}
    difference, null = keys["difference"], keys["null_difference"]
    beyond = difference["mean"] - null["mean"]
    half = difference["half"] + null["half"]  # at most: they are not independent
    closer = both["sharing"][0]["mean"] < both["others"][0]["mean"] and both["sharing"][2]["mean"] < both["others"][2]["mean"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    layer = [int(h["head"].split(".")[1]) for h in heads]
    left.plot(layer, [100 * h["on_first"] for h in heads], "o", color=BLUE, ms=3.5, alpha=0.6)
    left.axhline(50, color=GREY, lw=0.8, ls="--")
    left.set_xlabel("layer")
    left.set_ylabel("% of the weight on the first token")
    layers = kind["layers"]
    for name, colour, label in (("sharing", BLUE, "heads that share a key"), ("others", RED, "other heads of the layer")):
        right.plot(range(len(layers)), [l["shared_keys"][name]["ratio"]["mean"] for l in layers], "-o", ms=3, color=colour, label=label)
    right.axhline(1, color=GREY, lw=0.8, ls="--")
    right.set_xlabel("layer")
    right.set_ylabel("divergence / null")
    right.legend(frameon=False)
    figure.tight_layout()
    show = lambda i: f"{i['mean']:.4f} ± {i['half']:.4f}"
    text = f"""# Sinks, induction and shared keys in SmolLM2-135M

30 layers of 9 heads; three heads share each key and value head. Text: EWT's sentences 301 to 2,001 (1,701 sentences).

```
multihead heads stats smollm2.gguf --conllu ewt_later.conllu --json
multihead heads similar smollm2.gguf --conllu ewt_later.conllu --json
```

![weight on the first token by layer; divergence of heads with and without a common key](smollm2.svg)

{results.claim(4, 2 * len(sinks) >= len(heads),
f"{len(sinks)} of {len(heads)} heads give at least half of their weight to the first token (Xiao et al. 2023 call it a sink).")}
{results.claim(5, bool(induction),
f"{len(induction)} heads give at least half of their weight, on repeated random tokens, to the token that followed before"
+ (f"; the strongest is {induction[0]['head']} with {percent(induction[0]['induction'])} %." if induction else ".")
+ f" Heads that give half of it to the token before: {len(previous)}.")}
{results.claim(6, closer and p_above(beyond, half, CORPUS_FOLDS) < 0.05,
f"The divergence of two heads that share a key is smaller than that of two other heads of the same layer by {difference['mean']:.4f} ± {difference['half']:.4f} nats; "
f"what their sharpness makes of it (the null) is {null['mean']:.4f} ± {null['half']:.4f}.")}
| pairs | divergence | null of equal entropy | divergence / null |
|---|---|---|---|
""" + "".join(f"| {label} ({keys[name]['pairs']}) | {show(both[name][0])} | {show(both[name][1])} | {show(both[name][2])} |\n"
              for name, label in (("sharing", "share a key"), ("others", "other heads of the layer"))) + """
A common key is no proof of cause: the heads of a group were also trained with one value head. Nobody trained the same model with
groups cut otherwise.

## Strongest heads on repeated random tokens

""" + table(["induction", "%", "previous token", "%"],
            [[f"`{a['head']}`", percent(a["induction"]), f"`{b['head']}`", percent(b["previous_token"])]
             for a, b in zip(sorted(heads, key=lambda h: -h["induction"])[:8], sorted(heads, key=lambda h: -h["previous_token"])[:8])])
    results.save("smollm2", text, figure)


def alike(results):
    rows, apart, figure_rows = [], [], []
    for name, model in (("minilm", "MiniLM-L6"), ("smollm2", "SmolLM2-135M"), ("demo", "demo")):
        for kind in results.read(f"similar_{name}")["kinds"]:
            within, between = kind["within_layers"], kind["between_layers"]
            a, b = within["ratio"], between["ratio"]
            apart.append(a["mean"] + a["half"] < b["mean"] - b["half"])
            label = model if name != "demo" else f"demo, {kind['kind']}"
            show = lambda m: f"{m['divergence']['mean']:.3f} / {m['null_divergence']['mean']:.3f}"
            rows.append([label, len(kind["heads"]), show(within), f"{a['mean']:.3f} ± {a['half']:.3f}", show(between),
                         f"{b['mean']:.3f} ± {b['half']:.3f}", "yes" if apart[-1] else "no"])
            figure_rows.append((label, kind["layers"], b["mean"]))
    figure, axes = plt.subplots(1, len(figure_rows), figsize=(11, 2.8), sharey=True, width_ratios=[1.2, 3, 0.8, 0.8, 0.8])
    for axis, (label, layers, between) in zip(axes, figure_rows):
        axis.plot(range(len(layers)), [l["within"]["ratio"]["mean"] for l in layers], "-o", ms=3.5, color=BLUE, label="in one layer")
        axis.plot(range(len(layers)), [l["to_others"]["ratio"]["mean"] for l in layers], "-o", ms=3.5, color=RED, label="to other layers")
        axis.axhline(1, color=GREY, lw=0.8, ls="--")
        axis.set_title(label.replace(", ", ",\n").replace("self-attention", "self-att.").replace("cross-attention", "cross-att."), fontsize=9)
        axis.set_xlabel("layer")
        axis.set_xticks(range(0, len(layers), 1 if len(layers) < 8 else 5))
    axes[0].set_ylabel("divergence / null")
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    text = f"""# How alike heads are, by layer

The divergence of two heads' weights, query by query, beside the same with each row's weights permuted at random
([the measure](../similar.md)). A ratio of 1: the heads have no more in common than chance; below 1: they read the same keys.

```
multihead heads similar minilm --conllu en_ewt-ud-dev.conllu --json
multihead heads similar smollm2.gguf --conllu ewt_later.conllu --json
multihead heads similar demo --conllu test.en.conllu --target test.de --json
```

![ratio to the null by layer](alike.svg)

{results.claim(7, all(apart), f"In {sum(apart)} of {len(apart)} kinds of attention the heads of one layer are more alike than those of two, their intervals apart.")}
""" + table(["model", "heads", "one layer: divergence / null", "ratio", "two layers: divergence / null", "ratio", "apart"], rows) + """
Divergences alone would mislead: sharp heads differ whatever they read, so a model of flat heads looks "alike". Clark et al. 2019
(section 6) compared divergences and found heads of one layer close together in BERT-base; they had no null.
"""
    results.save("alike", text, figure)


def syntactic(report, part):
    """Heads that Voita et al. 2019 would call syntactic: chosen for a relation, and 10 points above the offset, either way."""
    found = [r for r in report["best"] if r["relation"] != "all" and r["support"] >= 200 and gain(r) >= 0.1 and r["head"].startswith(part)]
    adjusted = holm([p_of_gain(r) for r in found])
    return len({r["head"] for r, p in zip(found, adjusted) if p < 0.05})


def roles(results):
    columns = ("previous token", "next token", "same token", "fixed offset", "induction", "rare word", "first token", "separator", "none")
    counts, positional, rare = {}, {}, {}
    parts = (("demo", "demo, encoder", "encoder."), ("demo", "demo, decoder", "decoder.*.self"), ("demo", "demo, cross-attention", "cross"),
             ("minilm", "MiniLM-L6", "encoder."), ("smollm2", "SmolLM2-135M", "decoder."))
    figure, axis = plt.subplots(figsize=(9, 2.6))
    for name, label, part in parts:
        heads = [h for h in results.read(f"stats_{name}")["heads"]
                 if ("cross" in h["head"]) == (part == "cross") and (part == "cross" or h["head"].startswith(part[:8]))]
        counts[label] = [sum((h["role"] or "none") == c for h in heads) for c in columns]
        positional[label] = max(((share or 0, offset, h["head"]) for h in heads for offset, share in h["most_at_offset"].items()
                                 if int(offset) != 0), default=None)
        known = [(h["on_rarest"], h["head"], h["rarest_by_chance"]) for h in heads if h["on_rarest"] is not None]
        rare[label] = max(known) if known else None
    palette = [BLUE, "#56b4e9", "#009e73", "#004d40", RED, "#cc79a7", "#e69f00", "#f0e442", "#dddddd"]
    for at, (label, row) in enumerate(counts.items()):
        left, total = 0.0, sum(row)
        for colour, column, count in zip(palette, columns, row):
            axis.barh(-at, 100 * count / total, left=left, color=colour, label=column if at == 0 else None)
            left += 100 * count / total
    axis.set_yticks([-i for i in range(len(counts))], list(counts))
    axis.set_xlabel("% of the heads")
    axis.legend(frameon=False, ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.45, -0.2))
    both = ("demo, encoder", "MiniLM-L6")
    of_demo, of_minilm = results.read("relations_demo"), results.read("relations_minilm")
    grammar = {"demo, encoder": syntactic(of_demo, "encoder"), "demo, decoder": syntactic(of_demo, "decoder"),
               "MiniLM-L6": syntactic(of_minilm, "encoder")}
    text = f"""# Simple roles of heads

How many heads do one of a few simple things ([limits](../stats.md#roles)): 90 % of the queries at one offset (positional, Voita et al.
2019), induction, the sentence's rarest word, or at least half of the weight on the first or on a separating token.

```
multihead heads stats demo --conllu test.en.conllu --target test.de --json
multihead heads stats minilm --conllu en_ewt-ud-dev.conllu --json
multihead heads stats smollm2.gguf --conllu ewt_later.conllu --json
```

![share of heads by role](roles.svg)

{results.claim(8, all(positional[b][0] >= 0.9 for b in both),
"The head that comes nearest to reading one offset other than 0: " + "; ".join(f"{b}: `{positional[b][2]}`, {percent(positional[b][0])} % at {positional[b][1]}" for b in both) + ".")}
{results.claim(9, all(rare[b] and rare[b][0] >= 0.5 for b in both),
"The head that reads the rarest word most often: " + "; ".join(f"{b}: `{rare[b][1]}`, {percent(rare[b][0])} % (by chance {percent(rare[b][2])} %)" for b in both) + ".")}
""" + table(["model", "heads", *columns, "syntactic"],
              [[label, sum(row), *row, grammar.get(label, "")] for label, row in counts.items()]) + """
**Beside Voita et al. 2019.** Their translators (WMT, 6 layers of 8 heads in the encoder) have positional, syntactic and rare-word heads;
pruning 38 of the 48 cost 0.15 BLEU, and specialized heads were the last to go. They show which heads have which role as pictures and
print no counts by role, so none stand here. Their rare-word head, in the first layer, read the rarest word in 66 % of the sentences of
OpenSubtitles whose rarest word is not among the 500 most frequent tokens; on WMT one of the two rarest in more than 50 %. "Syntactic" counts, whatever other role they have, the heads
that are best for a relation of at least 200 scored words, in one of the three [directions](../relations.md), by their limit: 10 points
above the best offset (Holm). Trees are there for MiniLM's text and the translator's two languages.
"""
    results.save("roles", text, figure)


def main(directory, to):
    results = Results(directory, to)
    for page in (clark, smollm2, alike, roles):
        page(results)
    print("\n".join(f"claim {number}: {'holds' if holds else 'does not hold'}" for number, holds in results.verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
