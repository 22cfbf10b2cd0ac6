"""Writes pruning, ranking and trust of docs/heads/results from what scripts/importance_results computed:
python scripts/importance_results.py DIR TO [PAGE ...]. The limits are those of docs/heads/results/README.md, which were fixed before the runs."""

import json
import statistics
import sys

import scipy.stats

from heads_results import BLUE, GREY, RED, Results, holm, plt, table
from importance_orders import RANDOM_ORDERS, relations_with_heads
from tree_words import after_words, trees_of

MODELS = {"smollm2": "SmolLM2", "demo": "demo"}


def p_text(p):
    return f"{p:.1g}" if p >= 1e-6 else "< 1e-6"


def p_is(p):
    return f"p {'= ' if p >= 1e-6 else ''}{p_text(p)}"


def above_zero(values):
    """The mean, half of its 95 % interval, and the one-sided p that it is above 0 (Student's t)."""
    half = statistics.stdev(values) / len(values) ** 0.5 * scipy.stats.t.ppf(0.975, len(values) - 1)
    return statistics.mean(values), half, float(scipy.stats.ttest_1samp(values, 0, alternative="greater").pvalue)


def pruning(results):
    systems = {s["system"]: s for s in results.read("bleu")["systems"]}
    whole = systems["translations_gradient.0"]["score"]
    names = ["gradient", "ablation", *(f"random{i}" for i in range(1, RANDOM_ORDERS + 1))]
    counts = sorted(int(s.rsplit(".", 1)[1]) for s in systems if s.startswith("translations_gradient."))
    gates = sorted((float(price), int(count), s) for s in systems if s.startswith("translations_gates")
                   for price, count in [s.removeprefix("translations_gates").rsplit(".", 1)])

    def loss(name, count):
        return whole - systems[f"translations_{name}.{count}"]["score"] if count else 0.0

    def most(name, limit):
        """The largest number up to which every step costs at most `limit`."""
        found = 0
        for count in counts:
            if loss(name, count) > limit:
                break
            found = count
        return found

    figure, axis = plt.subplots(figsize=(7, 3.2))
    for name, colour in (("gradient", BLUE), ("ablation", RED)):
        axis.plot(counts, [whole - loss(name, c) for c in counts], color=colour, label=f"by {name}")
    at_random = [statistics.mean(whole - loss(n, c) for n in names[2:]) for c in counts]
    axis.plot(counts, at_random, color=GREY, label=f"at random (mean of {RANDOM_ORDERS})")
    axis.plot([count for _, count, _ in gates], [systems[s]["score"] for _, _, s in gates], "o", color="black", label="by gates, trained on")
    axis.set_xlabel("heads muted, of 48")
    axis.set_ylabel("BLEU")
    axis.legend(frameon=False)
    order = [h["head"] for h in results.read("gradients_multi30k")["heads"]][::-1]
    roles = {h["head"]: h["role"] for h in results.read("stats_multi30k")["heads"]}
    with_role = [order.index(h) + 1 for h in order if roles[h]]
    without = [order.index(h) + 1 for h in order if not roles[h]]
    p = float(scipy.stats.mannwhitneyu(with_role, without, alternative="greater").pvalue) if with_role and without else 1.0
    fifth = most("gradient", 0.5)
    last = order[-10:]
    text = f"""# How many heads can a translator lose?

Preset tiny on Multi30k (4 + 4 layers of 4 heads: 16 in the encoder, 16 of the decoder's self-attention, 16 of its cross-attention),
trained once by the recipe of [the benchmark](../../../benchmarks/README.md), {whole:.2f} BLEU on test_2016_flickr. Heads are ranked on the
validation sentences, muted from the last rank up in steps of 2, and the test set is translated with a beam of 5, each sentence to at most
three times its tokens.

![BLEU as heads are muted](pruning.svg)

{results.claim(10, fifth >= 10, f"By gradients {fifth} of 48 heads go for at most 0.5 BLEU.")}
{results.claim(11, p < 0.05, f"{len(with_role)} heads have a role; their mean place in the order is {statistics.mean(with_role) if with_role else 0:.1f} of 48, that of the others {statistics.mean(without):.1f} (Mann-Whitney {p_is(p)}).")}
## Heads that go for so many BLEU

The largest number of heads up to which no step costs more; beside it the loss there, with the p of the paired bootstrap (1,000 samples)
against the whole model.

"""
    rows = []
    for name in names:
        row = [name]
        for limit in (0.1, 0.5, 1.0):
            count = most(name, limit)
            paired = systems[f"translations_{name}.{count}"] if count else None
            row.append(f"{count} ({loss(name, count):+.2f}, {p_is(paired['p_value'])})" if count else "0")
        rows.append(row)
    text += table(["order", "0.1 BLEU", "0.5 BLEU", "1 BLEU"], rows)
    text += f"""
## Heads that gates close

The translator trained on for 600 updates with gates on its heads (Voita et al. 2019; `train --init-from --head-gates`) at three prices of an
open head, in nats a target token. These have learned to do without the heads they lost, and have seen 600 updates more than the others:
of the whole model's {whole:.2f} BLEU the p is the paired bootstrap's.

"""
    text += table(["price of a head", "heads closed", "BLEU", "p", "muted by gradients"],
                  [[f"{price:g}", f"{count} of 48", f"{systems[s]['score']:.2f}", p_text(systems[s]["p_value"]),
                    f"{whole - loss('gradient', count - count % 2):.2f}"] for price, count, s in gates])
    survivors = {s: set(order) - closed_heads(results, price) for price, _, s in gates}
    text += "\nOf the heads that stay open, " + "; ".join(
        f"at {price:g} {sum(bool(roles[h]) for h in survivors[s])} of {len(survivors[s])} have a role" for price, _, s in gates)
    text += f" ({len(with_role)} of 48 in the whole model).\n"
    text += "\n## The last ten heads\n\nThe last first, by gradients; roles are those of `heads stats`.\n\n"
    text += table(["head", "role"], [[f"`{h}`", roles[h] or ""] for h in last[::-1]])
    results.save("pruning", text, figure)


def closed_heads(results, price):
    return set((results.directory / f"gated_{price:g}" / "closed_heads.txt").read_text().split())


def lines_of(results, name):
    return (results.directory / name).read_text(encoding="utf-8").splitlines()


def risen(results, name, head, relation, trees, offsets):
    """By sentence of the second half: how much more the loss of the token after the relation's words rises than after other words."""
    whole, muted = lines_of(results, f"losses_{name}.none"), lines_of(results, f"losses_{name}.{head}")
    differences = []
    for number, words in enumerate(trees):
        if number % 2 == 0:  # heads are chosen on sentences 1, 3, ...
            continue
        places = [tuple(map(int, o.split(":"))) for o in offsets[number].split()]
        rise = [float(a) - float(b) for a, b in zip(whole[number].split()[1:], muted[number].split()[1:])]
        after = after_words(words, places, rise, name != "smollm2")
        own = [number for (found, _, _), number in zip(words, after) if found == relation and number is not None]
        others = [number for (found, _, _), number in zip(words, after) if found != relation and number is not None]
        if own and others:
            differences.append(statistics.mean(own) - statistics.mean(others))
    return differences


def ranking(results):
    gradient = {h["head"]: (h["rank"], h["importance"]) for h in results.read("gradients_smollm2")["heads"]}
    ablation = {h["head"]: h["importance"] for h in results.read("ablations_smollm2")["heads"]}
    heads = sorted(ablation, key=lambda h: gradient[h][0])
    rho = scipy.stats.spearmanr([gradient[h][1] for h in heads], [ablation[h] for h in heads], alternative="greater")
    top = scipy.stats.spearmanr([gradient[h][1] for h in heads[:30]], [ablation[h] for h in heads[:30]])
    figure, axis = plt.subplots(figsize=(5, 3.6))
    axis.scatter([gradient[h][1] for h in heads], [ablation[h] for h in heads], s=12, color=BLUE)
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=0.01)
    axis.set_xlabel("mean |d score / d gate|, nats (sentences 1 to 200)")
    axis.set_ylabel("loss without the head, nats (201 to 400)")
    text = f"""# Do gradients rank heads as ablation does?

SmolLM2-135M, 270 heads, on English-EWT: the 30 heads with the largest gradients on sentences 1 to 200 and every eighth of the others, left
out one by one on sentences 201 to 400.

![gradient and ablation of 60 heads](ranking.svg)

{results.claim(12, rho.statistic >= 0.5 and rho.pvalue < 0.05,
f"Spearman's rank correlation over {len(heads)} heads is {rho.statistic:.2f} ({p_is(rho.pvalue)}); among the 30 first alone {top.statistic:.2f}.")}
## Is a relation's loss that of its head?

For each relation with a head of its own, how much more the loss of the token after the relation's words rises than the loss after other
words, when that head is muted: nats, mean over sentences that have both, with the 95 % interval and the p after Holm.

"""
    found, rows, late = [], [], {}
    for name, label in MODELS.items():
        chosen = relations_with_heads(results.read(f"relations_{name}"))
        path = results.directory / ("ewt.conllu" if name == "smollm2" else "grammar/test.de.conllu")
        trees = [words for _, words in trees_of(path)]
        offsets = lines_of(results, f"offsets_{name}")
        for relation, head in sorted(chosen.items()):
            differences = risen(results, name, head, relation, trees, offsets)
            if len(differences) < 10:
                continue
            found.append((label, relation, head, len(differences), *above_zero(differences)))
        order = [h["head"] for h in results.read(f"gradients_{name}")["heads"]][::-1]
        order = [h for h in order if h.startswith("decoder") and "cross" not in h]
        own = [order.index(h) + 1 for h in set(chosen.values())]
        others = [place for place in range(1, len(order) + 1) if place not in own]
        p = float(scipy.stats.mannwhitneyu(own, others, alternative="greater").pvalue) if own and others else 1.0
        late[label] = (own, others, p)
    adjusted = holm([entry[-1] for entry in found])
    more = [p < 0.05 and entry[4] > 0 for p, entry in zip(adjusted, found)]
    for entry, p in zip(found, adjusted):
        label, relation, head, count, mean, half, _ = entry
        rows.append([label, relation, f"`{head}`", count, f"{mean:+.4f} ± {half:.4f}", p_text(p)])
    text += results.claim(15, bool(found) and 2 * sum(more) >= len(found), f"It rises more for {sum(more)} of {len(found)} relations (Holm).")
    text += "\n" + table(["model", "relation", "head", "sentences", "rise beyond other words", "p"], rows)
    places = "; ".join(f"{label}: {len(own)} of {len(own) + len(others)} heads, mean place {statistics.mean(own):.1f}, of the others {statistics.mean(others):.1f} ({p_is(p)})" if own else f"{label}: none" for label, (own, others, p) in late.items())
    less = [f"{label}'s {relation}" for label, relation, _, _, mean, half, _ in found if mean + half < 0]
    text += f"\nThe opposite, a rise that is smaller than elsewhere, its interval below 0: {', '.join(less) or 'none'}.\n"
    text += """
A relation's words are those that a tree attaches by it. It has a head of its own when this head's guess for them is at least 10 points above
the best offset on the other half of the sentences; several relations may have the same one.
"""
    text += "\n## Do the heads of relations go first or last?\n\n"
    text += results.withdrawn(16, f"it could not hold, since with one of demo's 8 heads p is at least 1/8. What was found, in the order of pruning by gradients, 1 going first, among the decoder's heads of self-attention: {places}.")
    results.save("ranking", text, figure)


def trust(results):
    text = """# Which explanation of a text is faithful?

Tokens are replaced from the one that a method finds most important down (deletion), or put back into a text of replaced tokens (insertion);
what counts is the area under the curve of what is explained. Small areas of deletion and large areas of
insertion are faithful ([the measure](../attribution.md)). Means over sentences with 95 % intervals; p against random orders and against
raw attention, paired by sentence, one-sided, after Holm.

"""
    below, above = {}, {}
    for name, label in (("minilm", "MiniLM"), ("demo", "demo")):
        report = results.read(f"trust_{name}")
        methods = {m["method"]: m for m in report["methods"]}
        areas = {m: entry["deletion_by_sentence"] for m, entry in methods.items()}

        def against(other, among):
            ps = holm([float(scipy.stats.ttest_rel(areas[m], areas[other], alternative="less").pvalue) for m in among])
            return dict(zip(among, ps))

        chance = against("random", [m for m in methods if m != "random"])
        raw = against("attention", [m for m in methods if m not in ("random", "attention")])
        below[label] = [m for m, p in chance.items() if p < 0.05]
        above[label] = [m for m, p in raw.items() if p < 0.05]
        interval = lambda i: f"{i['mean']:.3f} ± {i['half']:.3f}"
        ordered = sorted(methods, key=lambda m: methods[m]["deletion"]["mean"])
        text += f"## {label}, {report['sentences']} texts, tokens replaced by `{report['replacement']}`\n\n"
        text += table(["method", "deletion", "insertion", "p, random", "p, attention"],
                      [[m, interval(methods[m]["deletion"]), interval(methods[m]["insertion"]), p_text(chance[m]) if m in chance else "",
                        p_text(raw[m]) if m in raw else ""] for m in ordered]) + "\n"
    listed = lambda found: "; ".join(f"{label}: {', '.join(methods) or 'none'}" for label, methods in found.items())
    text += results.claim(13, all(below.values()), f"Better than random orders: {listed(below)}.")
    text += "\n" + results.claim(14, all(above.values()), f"Better than raw attention: {listed(above)}.")
    text += """
Integrated gradients have it easier than others: their baseline is the text whose tokens are all replaced, the very text at which deletion
ends. Without them claim 14 would rest on MiniLM's relevance alone, and not hold for `demo`.
"""
    results.save("trust", text)


def main(directory, to, *names):
    results = Results(directory, to)
    for page in (pruning, ranking, trust):
        if not names or page.__name__ in names:
            page(results)
    print("\n".join(f"claim {number}: {'holds' if holds else 'does not hold'}" for number, holds in results.verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
