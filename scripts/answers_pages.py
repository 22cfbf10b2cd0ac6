"""Writes one-softmax, rank and inputs of docs/heads/results from the JSON of scripts/answers_runs.py: scripts/answers_pages.py DIR TO.
The limits are those of docs/heads/results/README.md, which were fixed before the runs. A page whose runs are not there is not written."""

import sys
from pathlib import Path

import numpy as np
import scipy.stats

from heads_results import BLUE, CORPUS_FOLDS, GREY, RED, Results, holm, p_above, plt, table

MODELS = {"minilm": "MiniLM-L6", "smollm2": "SmolLM2-135M", "demo": "demo"}
GREEN, ORANGE = "#009e73", "#e69f00"
COLOURS = {"one softmax": BLUE, "mean of the maps": GREEN, "muted": RED, "even weights": ORANGE, "unrelated": GREY, "whole": "black"}
COMMAND = "```\nscripts/answers_models build en_ewt-ud-dev.conllu.gz\n```\n"


def interval(rows, minus=None):
    """Mean and half of the 95 % interval of sum / count over texts, or of the difference of two, by the jackknife over folds of texts."""
    of_both = [np.array(side, dtype=np.float64) for side in (rows, minus) if side is not None]

    def ratio(left_out=None):
        found = []
        for side in of_both:
            kept = np.arange(len(side)) % CORPUS_FOLDS != left_out
            found.append(side[kept, 0].sum() / side[kept, 1].sum())
        return found[0] - sum(found[1:])

    folds = min(CORPUS_FOLDS, len(of_both[0]))
    estimates = np.array([ratio(fold) for fold in range(folds)])
    error = np.sqrt((folds - 1) / folds * np.square(estimates - estimates.mean()).sum())
    return float(ratio()), float(error * scipy.stats.t.ppf(0.975, folds - 1))


def nearer(name, rows, than):
    """By how much a change is nearer to the whole model than another, (mean, half, one-sided p): of cosines the higher one is, of
    losses the lower one."""
    mean, half = interval(rows, than) if name == "minilm" else interval(than, rows)
    return mean, half, p_above(mean, half, min(CORPUS_FOLDS, len(rows)))


def lost(name, report_rows, whole):
    """Of losses what the change adds, of cosines the cosine."""
    return interval(report_rows) if name == "minilm" else interval(report_rows, whole)


def pm(found, digits=3):
    return f"{found[0]:.{digits}f} ± {found[1]:.{digits}f}"


def p_is(p):
    return f"p = {p:.1g}" if p >= 1e-6 else "p < 1e-6"


def in_each(reports, compare):
    """Whether `compare` holds in each model, after Holm over the models, and a sentence."""
    found = {name: compare(name, report) for name, report in reports.items()}
    adjusted = dict(zip(found, holm([p for _, _, p in found.values()])))
    words = "; ".join(f"{MODELS[name]} by {pm(one)} ({p_is(adjusted[name])})" for name, one in found.items())
    return all(p < 0.05 for p in adjusted.values()), words


def beyond(name, found, cosine, rise):
    """Whether the whole interval is below a cosine, or above a rise of the loss."""
    return found[0] + found[1] < cosine if name == "minilm" else found[0] - found[1] > rise


def words_of(name, found):
    return f"{MODELS[name]}: cosine {pm(found)}" if name == "minilm" else f"{MODELS[name]}: {pm(found)} nats a token more"


def one_softmax(results, reports):
    changes = ("one softmax", "mean of the maps", "muted", "even weights", "unrelated")
    once = {name: {c: lost(name, r["at_once"][c], r["at_once"]["whole"]) for c in changes if c in r["at_once"]}
            for name, r in reports.items()}
    apart = {name: once[name]["one softmax"] for name in reports}
    better, better_words = in_each(reports, lambda n, r: nearer(n, r["at_once"]["one softmax"], r["at_once"]["muted"]))
    mean, mean_words = in_each(reports, lambda n, r: nearer(n, r["at_once"]["mean of the maps"], r["at_once"]["one softmax"]))
    counts = {}
    for name, report in reports.items():
        layers = list(zip(report["by_layer"]["one softmax"], report["by_layer"]["muted"]))
        ps = [holm([nearer(name, *pair)[2] for pair in order]) for order in (layers, [pair[::-1] for pair in layers])]
        counts[name] = [sum(p < 0.05 for p in side) for side in ps] + [len(layers)]
    figure, axes = plt.subplots(2, len(reports), figsize=(11, 5.2), height_ratios=[1, 1.1])
    for column, (name, report) in enumerate(reports.items()):
        above, below = axes[0][column], axes[1][column]
        names = list(once[name])[::-1]
        above.barh(names, [once[name][c][0] for c in names], xerr=[once[name][c][1] for c in names], color=[COLOURS[c] for c in names],
                   height=0.7, error_kw={"lw": 0.8})
        label = "cosine to the whole model's vector" if name == "minilm" else "nats a token above the whole model"
        above.set_title(f"{MODELS[name]}: all attentions at once", fontsize=9)
        above.set_xlabel(label)
        for change, layers in report["by_layer"].items():
            values = [lost(name, rows, report["at_once"]["whole"][: len(rows)])[0] for rows in layers]
            below.plot(range(len(values)), values, "-o", ms=3, color=COLOURS[change], label=change)
        below.set_title("one attention at a time", fontsize=9)
        below.set_xlabel("attention, in the order of the pass")
        below.set_ylabel("cosine" if name == "minilm" else "nats a token")
    axes[1][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    rows = []
    for name, report in reports.items():
        for change, found in once[name].items():
            loss = "" if name == "minilm" else pm(interval(report["at_once"][change]))
            rows.append([MODELS[name], change, pm(found) if name == "minilm" else "", loss, "" if name == "minilm" else pm(found)])
        if name != "minilm":
            rows.append([MODELS[name], "none: the whole model", "", pm(interval(report["at_once"]["whole"])), ""])
    most = lambda key: max(report[key] for report in reports.values() if key in report)
    uncut = [MODELS[name] for name, report in reports.items() if "uncut_apart" in report]
    text = f"""# One softmax in place of a layer's

Would the heads of a layer do with one softmax? The maps of all heads are replaced by the one that a single head with the same numbers has,
softmax(Σ q_i·k_i / √(h d_k)); values and W^O stay. **This shows what these weights need, not what another training would find.**

{COMMAND}
![cosines and losses with one softmax, the mean of the maps, attention muted and even weights](one-softmax.svg)

{results.claim(29, all(beyond(n, found, 0.9, 0.5) for n, found in apart.items()),
"With one softmax in all attentions at once, " + "; ".join(words_of(n, found) for n, found in apart.items()) + ".")}
{results.claim(30, better, f"One softmax is nearer to the whole model than attention muted: {better_words}.")}
{results.claim(31, mean, f"The mean of the maps is nearer than one softmax: {mean_words}.")}
{results.claim(32, all(2 * closer > of for closer, _, of in counts.values()),
"In one attention alone one softmax is nearer than that attention muted (Holm) in " + "; ".join(
    f"{closer} of {of} of {MODELS[n]}, farther in {farther}" for n, (closer, farther, of) in counts.items()) + ".")}
## All attentions at once

Texts: {", ".join(f"{r['texts']} ({MODELS[n]})" for n, r in reports.items())}; ± is half the 95 % interval.

""" + table(["model", "maps", "cosine", "loss, nats a token", "above the whole model"], rows) + f"""
"Unrelated" is the cosine between the vectors of a sentence and the next one, or the loss of the next sentence's translation.

## Checked in the same run

- The one map is the h maps multiplied, each to the power 1/√h, with rows made to sum to 1: {most('product_apart'):.1g} apart at most, in
  all attentions of three texts of each model.
- The whole model's own maps, put in their places, change no score by more than {most('own_maps_apart'):.1g}.
- {" and ".join(uncut)}, loaded from a folder whose config.json says one head, score what the changed maps score, to
  {most('uncut_apart'):.1g}: one softmax is that model. (With rotary positions one head would turn at other frequencies, so SmolLM2 has no
  such folder.)
"""
    results.save("one-softmax", text, figure)


def needs(report, r, words=20):
    """The numbers of a layer's factors of rank r, and the multiplications of its scores on so many words."""
    d, h, g = report["d_model"], report["heads"], report["key_heads"]
    numbers = h * d * r + (g * d * report["d_key"] if g < h else h * d * r)
    return numbers, words * numbers + h * words * words * r


def rank(results, reports):
    ranks = {name: sorted(map(int, report["weighted"]), reverse=True) for name, report in reports.items()}
    found = {name: {way: {r: lost(name, report[way][str(r)], report["whole"]) for r in ranks[name]} for way in ("weighted", "plain")}
             for name, report in reports.items()}
    at = lambda name, share: round(share * reports[name]["d_key"])
    enough = {"minilm": lambda f: f[0] - f[1] > 0.95, "smollm2": lambda f: f[0] + f[1] < 0.1, "demo": lambda f: f[0] + f[1] < 0.05}
    half = {name: found[name]["weighted"][at(name, 0.5)] for name in reports}
    eighth = {name: found[name]["weighted"][at(name, 0.125)] for name in reports}
    better, better_words = in_each(reports, lambda n, r: nearer(n, *(r[way][str(at(n, 0.5))] for way in ("weighted", "plain"))))
    figure, axes = plt.subplots(1, len(reports), figsize=(11, 2.9))
    for axis, name in zip(axes, reports):
        for way, colour in (("weighted", BLUE), ("plain", RED)):
            means, halves = zip(*(found[name][way][r] for r in ranks[name]))
            axis.errorbar(ranks[name], means, halves, fmt="-o", ms=4, color=colour, capsize=2, label=f"{way} truncation")
        axis.set_title(f"{MODELS[name]}, d_k = {reports[name]['d_key']}", fontsize=9)
        axis.set_xlabel("rank of W_i^Q W_i^K^T")
        axis.set_xticks(ranks[name])
        axis.set_ylabel("cosine" if name == "minilm" else "nats a token more")
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    rows = []
    for name, report in reports.items():
        for r in ranks[name]:
            numbers, products = needs(report, r)
            rows.append([MODELS[name], r, *(pm(found[name][way][r]) for way in ("weighted", "plain")), f"{numbers:,}", f"{products:,}"])
    one_matrix = ", ".join(f"{r['heads'] * r['d_model'] ** 2:,} ({MODELS[n]})" for n, r in reports.items())
    most = lambda *keys: max(report[key] for report in reports.values() for key in keys)
    text = f"""# The rank that heads use

W_i^Q W_i^K^T has rank d_k at most. All heads of a model are truncated to a lower rank at once and nothing is trained again: weighted by
the activations of text, so that the scores change least, or by the matrices alone (plain, the singular value decomposition). With the
rotary positions of SmolLM2 heads keep whole planes of their queries. [What is done exactly](README.md#fixed-before-the-runs-of-claims-29-to-37).

{COMMAND}
![cosines and losses by rank](rank.svg)

{results.claim(33, all(enough[n](f) for n, f in half.items()),
"At half of the rank, weighted, " + "; ".join(words_of(n, f) for n, f in half.items()) + ".")}
{results.claim(34, better, f"At half of the rank the weighted truncation is nearer to the whole model than the plain one: {better_words}.")}
{results.claim(35, all(beyond(n, f, 0.9, 0.5) for n, f in eighth.items()),
"At an eighth, weighted, " + "; ".join(words_of(n, f) for n, f in eighth.items()) + ".")}
## Score against rank

Of MiniLM cosines to the whole model's vectors, of the others nats a token above the whole model's loss. Numbers: those of W^Q and W^K of
one attention as two factors of that rank, without biases; multiplications: of its scores on 20 words. The truncated matrices ran in the
sizes of the whole ones.

""" + table(["model", "rank", "weighted", "plain", "numbers", "multiplications"], rows) + f"""
One matrix W_i [d, d] for each head in place of its factors would have {one_matrix} numbers an attention.
SmolLM2's keys stay as they are, since the three heads that share one drop other planes.

Checked in the same run: at rank d_k no score changes by more than {most('weighted_full_rank_apart', 'plain_full_rank_apart'):.1g}; the
queries that the matrices of the file make are those that the model shows, to {most('matrices_apart'):.1g} of the largest.
"""
    results.save("rank", text, figure)


def inputs(results, reports):
    rows, smallest, below, figure_rows = [], {}, {}, []
    for name, report in reports.items():
        shares = np.array([report["as_they_are"][a] for a in report["as_they_are"]])  # [attentions, heads]
        rotated = np.array([report["rotated"][a] for a in report["as_they_are"]])  # [attentions, rotations, heads]
        smallest[name] = float(shares.min())
        below[name] = (int((shares < rotated.min(1)).sum()), shares.size)
        figure_rows.append((name, shares, rotated))
        rows.append([MODELS[name], shares.size, f"{100 * shares.mean():.1f}", f"{100 * shares.min():.1f}", f"{100 * rotated.mean():.1f}",
                     f"{100 * rotated.min():.1f}", f"{below[name][0]} of {shares.size}", f"{100 / report['heads']:.1f}"])
    figure, axes = plt.subplots(1, len(figure_rows), figsize=(10, 2.9), sharey=True)
    for axis, (name, shares, rotated) in zip(axes, figure_rows):
        layers = range(len(shares))
        axis.plot(layers, 100 * rotated.mean((1, 2)), color=GREY, label="in a rotated basis (mean)")
        for head in range(shares.shape[1]):
            axis.plot(layers, 100 * shares[:, head], "o", ms=3, color=BLUE, alpha=0.6, label="a head" if head == 0 else None)
        axis.axhline(100 / reports[name]["heads"], color=RED, lw=0.8, ls="--", label="a head with a slice of d/h, at most")
        axis.set_title(MODELS[name], fontsize=9)
        axis.set_xlabel("layer")
        axis.set_ylim(0, 102)
    axes[0].set_ylabel("% of the coordinates")
    axes[0].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(0, 0.35))
    figure.tight_layout()
    by_layer = {name: [(float(shares[i].min()), float(shares[i].max()), reports[name]["overlap"][a], reports[name]["gains"][a])
                       for i, a in enumerate(reports[name]["as_they_are"])] for name, shares, _ in figure_rows}
    least = {name: min(range(len(layers)), key=lambda i: layers[i][0]) for name, layers in by_layer.items()}
    few = "; ".join(f"{MODELS[n]}'s layer {i}: {100 * by_layer[n][i][0]:.1f} to {100 * by_layer[n][i][1]:.1f} %" for n, i in least.items())
    others = "; ".join(f"{100 * min(low for j, (low, *_) in enumerate(by_layer[n]) if j != i):.1f} % ({MODELS[n]})" for n, i in least.items())
    same = "; ".join(f"{o[i][2]:.3f} in that layer, {min(x[2] for x in o):.3f} or more in all ({MODELS[n]})"
                     for (n, o), i in zip(by_layer.items(), least.values()))
    gains = "; ".join(f"{100 * by_layer[n][i][3]:.1f} % ({MODELS[n]})" for n, i in least.items() if by_layer[n][i][3] is not None)
    sliced = 100 * max(report["largest_of_a_slice"] for report in reports.values())
    text = f"""# What a head reads of a row

Does a head read a part of its input, or all of it? By coordinate: how large the rows of W_i^Q W_i^K^T, of its transpose and of
W_i^V W_i^O are, as the number of coordinates that this spreads over, (Σ n)² / Σ n², in % of d
([what is done exactly](README.md#fixed-before-the-runs-of-claims-29-to-37)). No change of basis inside a head alters it. **It depends on the basis of
the input**, since a slice is a matter of coordinates; so beside it stands the same in 100 bases that are rotated at random.

{COMMAND}
![share of the coordinates that each head reads, by layer](inputs.svg)

{results.claim(36, all(s >= 0.5 for s in smallest.values()),
"The smallest share of a head is " + "; ".join(f"{100 * s:.1f} % ({MODELS[n]})" for n, s in smallest.items()) + ".")}
{results.claim(37, all(2 * b > of for b, of in below.values()),
"Below all 100 rotated bases are the shares of " + "; ".join(f"{b} of {of} heads ({MODELS[n]})" for n, (b, of) in below.items()) + ".")}
""" + table(["model", "heads", "mean %", "smallest %", "rotated, mean %", "rotated, smallest %", "below all rotations",
              "a slice, at most %"], rows) + f"""
Heads of these models that are cut to a slice of d/h coordinates (all other rows of their matrices made 0) have {sliced:.1f} % at
most: the measure would show one.

## Looked at after the runs

Which heads read few coordinates was not asked before. The layer with the smallest share:
{few}.
Elsewhere the smallest is {others}. The gains of the norm before that layer, which all its heads share, alone have a share of
{gains}. Heads of a layer read largely the same coordinates, not each its own: the cosine between what two of them read by
coordinate, which is 0 for heads with a slice each, is on average over pairs
{same}.
"""
    results.save("inputs", text, figure)


def muted_pairs(results, reports):
    rows, ps, losses = [], [], {}
    for name, report in reports.items():
        of_pair, of_others = [], []
        for attention, (_, *pair) in report["pairs"].items():
            lost = {head: value for head, value in report["lost"].items() if head.rsplit(".", 1)[0] == attention}
            of_pair.append(np.mean([lost[head] for head in pair]))
            of_others.append(np.mean([value for head, value in lost.items() if head not in pair]))
        losses[name] = np.array(of_pair), np.array(of_others)
        ps.append(float(scipy.stats.wilcoxon(of_pair, of_others, alternative="less").pvalue))
        ratio = np.mean([found[0] for found in report["pairs"].values()])
        rows.append([MODELS[name], len(of_pair), f"{ratio:.3f}", f"{np.mean(of_pair):.4g}", f"{np.mean(of_others):.4g}",
                     f"{int((losses[name][0] < losses[name][1]).sum())} of {len(of_pair)}"])
    adjusted = holm(ps)
    for row, p in zip(rows, adjusted):
        row.append(f"{p:.1g}")
    figure, axes = plt.subplots(1, len(reports), figsize=(8, 3.2))
    for axis, (name, (pair, others)) in zip(axes, losses.items()):
        axis.plot(others, pair, "o", ms=4, color=BLUE)
        ends = [min(pair.min(), others.min()), max(pair.max(), others.max())]
        axis.plot(ends, ends, color=GREY, lw=0.8, ls="--")
        axis.set_title(f"{MODELS[name]}: a dot for each attention", fontsize=9)
        axis.set_xlabel("lost without another head")
        axis.set_ylabel("lost without one of the two alike")
    figure.tight_layout()
    words = "; ".join(f"{row[0]} p = {row[-1]}, less in {row[5]} attentions" for row in rows)
    text = f"""# Without one of the two most alike heads

Are heads that read alike spare? In each attention the two whose rows are nearest, beside chance, are found on one text; on another, what the
score loses without one of them stands beside what it loses without another head of the attention
([what is done exactly](README.md#fixed-before-the-runs-of-claims-29-to-37)).

{COMMAND}
![what each attention loses without one of its two most alike heads, against what it loses without another](alike-muted.svg)

{results.claim(38, all(p < 0.05 for p in adjusted), f"Without one of the two less is lost than without another head (Holm): {words}.")}
MiniLM's score is the cosine to the whole model's vector, SmolLM2's the log-probability of a sentence, nats.

""" + table(["model", "attentions", "ratio of the two, mean", "lost without one of them, mean", "without another", "less", "p"], rows)
    results.save("alike-muted", text, figure)


def main(directory, to):
    results = Results(directory, to)
    for page, run, names in ((one_softmax, "one_softmax", MODELS), (rank, "rank", MODELS), (inputs, "inputs", ("minilm", "smollm2")),
                             (muted_pairs, "alike_muted", ("minilm", "smollm2"))):
        if all(Path(directory, f"{run}_{name}.json").exists() for name in names):
            page(results, {name: results.read(f"{run}_{name}") for name in names})
    print("\n".join(f"claim {number}: {'holds' if holds else 'does not hold'}" for number, holds in results.verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
