"""Writes docs/heads/results/named.md and its picture from what scripts/named_runs.py computed: python scripts/named_heads.py DIR TO. The
limits are those of docs/heads/results/README.md, which were fixed before the runs. What was not run is left out and named."""

import statistics
import sys

from heads_results import BLUE, GREY, RED, Results, gain, holm, percent, plt, rows_of, table
from importance_results import above_zero, p_is, p_text

LABELS = {"minilm": "MiniLM", "smollm2": "SmolLM2", "demo": "demo"}
LEAST_SENTENCES = 20
DRAWS, ORDERS = range(1, 11), range(1, 21)


def has(results, name):
    return (results.directory / f"{name}.json").exists()


def plus_minus(mean, half, digits=4):
    return f"{mean:+.{digits}f} ± {half:.{digits}f}"


class Relation:
    """What muting its head, and each of the seven random ones, does to its words and to the others, by sentence."""

    def __init__(self, results, model, relation):
        about = results.read(f"words_{model}")
        self.model, self.name, self.head = model, relation, about["named"][relation]
        self.seven = about["random"][self.head]
        by_head = {head: results.read(f"words_{model}.{head}") for head in (self.head, *self.seven)}
        self.own, self.others = [], []  # by sentence: {head: mean}
        for at, relations in enumerate(about["relations"]):
            own, others = [{head: self._mean(changes[at], relations, is_own) for head, changes in by_head.items()}
                           for is_own in (True, False)]
            if own[self.head] is not None:
                self.own.append(own)
                if others[self.head] is not None:
                    self.others.append((own, others))

    def _mean(self, changes, relations, is_own):
        found = [c for c, r in zip(changes, relations) if c is not None and (r == self.name) == is_own]
        return statistics.mean(found) if found else None

    def random(self, means):
        return statistics.mean(means[head] for head in self.seven)

    def beside_random(self):
        """Of its words: by sentence, its head minus the random ones."""
        return [means[self.head] - self.random(means) for means in self.own]

    def beside_others(self):
        """Its words minus the others of the sentence, its head muted."""
        return [own[self.head] - others[self.head] for own, others in self.others]

    def beside_both(self):
        return [a - (self.random(own) - self.random(others)) for a, (own, others) in zip(self.beside_others(), self.others)]

    def mean_of(self, head):
        return statistics.mean(means[head] for means in self.own)

    def mean_of_random(self):
        return statistics.mean(map(self.mean_of, self.seven))

    def weaker(self):
        return sum(self.mean_of(head) < self.mean_of(self.head) for head in self.seven)


def relations_of(results, *models):
    """Those that were run whole and have enough sentences; the names of the models that were not."""
    found, missing = [], []
    for model in models:
        about = results.read(f"words_{model}") if has(results, f"words_{model}") else None
        heads = {h for head, seven in about["random"].items() for h in (head, *seven)} if about else {}
        if not about or not all(has(results, f"words_{model}.{head}") for head in heads):
            missing.append(LABELS[model])
            continue
        found += [r for r in (Relation(results, model, name) for name in about["named"]) if len(r.others) >= LEAST_SENTENCES]
    return sorted(found, key=lambda r: (LABELS[r.model], -statistics.mean(r.beside_random()))), missing


def left_out(claims, missing):
    return f"Left out, since not run: {', '.join(missing)} ({claims}).\n\n" if missing else ""


def names(relations):
    return ", ".join(f"{LABELS[r.model]}'s {r.name}" if r.model != "minilm" else r.name for r in relations) or "none"


def beside(relations, unit):
    """The table of its words beside a random head, with p after Holm; and for which p is below 0.05."""
    tests = [above_zero(r.beside_random()) for r in relations]
    adjusted = holm([t[2] for t in tests])
    text = table(["model", "relation", "head", "sentences", f"its head muted, {unit}", "a random head", "difference", "weaker, of 7", "p"],
                 [[LABELS[r.model], r.name, f"`{r.head}`", len(r.own), f"{r.mean_of(r.head):.4f}", f"{r.mean_of_random():.4f}",
                   plus_minus(*t[:2]), r.weaker(), p_text(p)] for r, t, p in zip(relations, tests, adjusted)])
    return text, [r for r, p in zip(relations, adjusted) if p < 0.05]


def beyond(relations, unit, others_too):
    """The same of its words minus the others; others_too: their plain difference has to be above 0, too."""
    plain, both = ([above_zero(getattr(r, which)()) for r in relations] for which in ("beside_others", "beside_both"))
    adjusted = holm([max(a[2], b[2]) if others_too else b[2] for a, b in zip(plain, both)])
    text = table(["model", "relation", "sentences", f"its words minus others, {unit}", "that minus the same of a random head", "p"],
                 [[LABELS[r.model], r.name, len(r.others), plus_minus(*a[:2]), plus_minus(*b[:2]), p_text(p)]
                  for r, a, b, p in zip(relations, plain, both, adjusted)])
    return text, [r for r, p in zip(relations, adjusted) if p < 0.05]


def encoder_words(results, axis):
    relations, missing = relations_of(results, "minilm")
    if not relations:
        return left_out("claims 22 and 23", missing)
    first, own = beside(relations, "1 - cosine")
    second, more = beyond(relations, "1 - cosine", True)
    y = range(len(relations))[::-1]
    axis.barh([i + 0.2 for i in y], [r.mean_of(r.head) for r in relations], color=BLUE, height=0.4, label="its head")
    axis.barh([i - 0.2 for i in y], [r.mean_of_random() for r in relations], color=GREY, height=0.4, label="a random head of the layer")
    axis.set_yticks(list(y), [r.name for r in relations])
    axis.set_xlabel("MiniLM: 1 - cosine of the states\nof the relation's words, a head muted")
    axis.legend(frameon=False, fontsize=8)
    return f"""## MiniLM: the words of a relation

{results.claim(22, len(own) >= 5, f"The words of {len(own)} of {len(relations)} relations turn further when their head is muted than "
f"when a random head of the layer is (Holm): {names(own)}.")}
{results.claim(23, len(more) >= 5, f"The words of {len(more)} of {len(relations)} turn further than the other words of the sentence when "
f"their head is muted, and by more than when a random head is (Holm): {names(more)}.")}
How far the last state of a word turns, 1 - cosine, mean over sentences; differences with 95 % intervals, paired by sentence. "Weaker": how
many of the seven random heads turn these words less. p is one-sided, after Holm.

{first}
{second}
"""


def decoder_words(results):
    relations, missing = relations_of(results, "smollm2", "demo")
    if not relations:
        return left_out("claims 24 and 25", missing)
    first, own = beside(relations, "nats")
    second, more = beyond(relations, "nats", False)
    sentences = (f"The loss after the words of {len(own)} of {len(relations)} relations rises more when their head is muted than when a "
                 f"random head is (Holm): {names(own)}.",
                 f"Minus that after the other words of the sentence it rises more for {len(more)} of {len(relations)} "
                 f"(Holm): {names(more)}.")
    if missing:  # the claims are about both models
        judged = left_out("claims 24 and 25", missing) + "\n\n".join(sentences) + "\n"
    else:
        judged = results.claim(24, len(own) >= 3, sentences[0]) + "\n" + results.claim(25, len(more) >= 3, sentences[1])
    return f"""## SmolLM2 and demo: the loss after the words of a relation

{judged}
How much the loss of the token after the word rises, nats, mean over sentences.

{first}
{second}
"""


def repeated(results, axis):
    draws = [seed for seed in DRAWS if has(results, f"induction_draw{seed}")]
    if not has(results, "induction_heads") or len(draws) < len(DRAWS):
        return left_out("claims 26 and 27", ["induction"])
    whole, heads = results.read("induction_whole"), results.read("induction_heads")
    others = [results.read(f"induction_draw{seed}") for seed in draws]
    losses = whole["first_and_second"]

    def rises(muted, copy):
        return [after[copy] - before[copy] for before, after in zip(losses, muted["first_and_second"])]

    second = rises(heads, 1)
    tests = [above_zero([a - b for a, b in zip(second, rises(draw, 1))]) for draw in others]
    adjusted = holm([t[2] for t in tests])
    least, most = min(tests)[0], max(tests)[0]
    in_first, in_second = (statistics.mean(copies) for copies in zip(*losses))
    gained = in_first - in_second
    more = above_zero([a - b for a, b in zip(second, rises(heads, 0))])
    share = statistics.mean(second) / gained
    show = lambda values: plus_minus(*above_zero(values)[:2])
    short = lambda muted: ", ".join(h.removeprefix("decoder.").replace("self_attention.", "") for h in muted)
    of_draws = [statistics.mean(rises(draw, 1)) for draw in others]
    axis.bar(range(len(others) + 1), [statistics.mean(second), *of_draws], color=[BLUE] + [GREY] * len(others))
    axis.axhline(gained, color=RED, lw=0.8, ls="--")
    axis.annotate("what repetition gains", (len(others) + 0.5, gained), color=RED, fontsize=8, ha="right", va="bottom")
    axis.set_xticks([0, len(others) / 2 + 0.5], ["induction\nheads", "seven random heads,\nten draws"])
    axis.set_ylabel("SmolLM2: rise of the loss of\nthe second copy, nats a token")
    return f"""## SmolLM2: induction heads on repeated text

{results.claim(26, least > 0 and max(adjusted) < 0.05, f"The seven induction heads muted raise the loss of the second copy by "
f"{show(second)} nats a token, by {least:.3f} to {most:.3f} more than ten draws of seven random heads do (largest p after Holm: "
f"{p_text(max(adjusted))}).")}
{results.claim(27, more[2] < 0.05 and share >= 0.25, f"The loss of the same tokens in the first copy rises by {show(rises(heads, 0))}; the "
f"second copy's rises by {plus_minus(*more[:2])} more ({p_is(more[2])}). It rises by {percent(share, 0)} % of what repetition gains: the "
f"whole model loses {in_first:.3f} nats a token in the first copy and {in_second:.3f} in the second.")}
{len(losses)} sentences, {whole["tokens"]:,} tokens in the second copies; means over sentences with 95 % intervals, paired by sentence.
Heads are written layer.head.

{table(["muted", "heads", "rise in the first copy", "rise in the second", "p, induction heads above it"],
       [["induction", short(heads["muted"]), show(rises(heads, 0)), show(second), ""],
        *([f"draw {seed}", short(d["muted"]), show(rises(d, 0)), show(rises(d, 1)), p_text(p)]
          for seed, d, p in zip(draws, others, adjusted))])}
"""


def orders(results, axis):
    rows = []
    for seed in (s for s in ORDERS if has(results, f"order{s}")):
        enough = [row for name, row in rows_of(results.read(f"order{seed}")).items() if name != "all" and row["support"] >= 200]
        rows.append((seed, max(enough, key=gain)))
    if not rows:
        return left_out("claim 28", ["the random orders"])
    gains = sorted(gain(row) for _, row in rows)
    axis.hist([100 * g for g in gains], color=GREY)
    axis.axvline(10, color=RED, lw=0.8, ls="--")
    axis.set_xlabel("MiniLM, random orders: largest gain of\nany relation and head, points")
    axis.set_ylabel(f"of {len(rows)} orders")
    sentence = (f"In {len(rows)} orders the largest gain over the best offset that any of 72 heads has for any relation lies between "
                f"{percent(gains[0])} and {percent(gains[-1])} points (median {percent(statistics.median(gains))}).")
    missing = len(ORDERS) - len(rows)
    judged = left_out("claim 28", [f"{missing} of the orders"]) + sentence if missing else results.claim(28, gains[-1] < 0.1, sentence)
    return f"""## MiniLM: twenty random orders of the numbers of W^Q and W^K

{judged}
Of each order (`heads relations minilm --seed N`) the relation with the largest gain, of those with at least 200 scored words.

{table(["seed", "relation", "head", "%", "offset %", "gain"],
       [[seed, row["relation"], f"`{row['head']}`", percent(row["score"]), percent(row["baseline"]), percent(gain(row))]
        for seed, row in rows])}"""


def main(directory, to):
    results = Results(directory, to)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
    words, loss = encoder_words(results, axes[0]), decoder_words(results)
    copies, drawn = repeated(results, axes[1]), orders(results, axes[2])
    shown = []
    for axis, about in zip(axes, ("Words of relations with their head and with a random head muted",
                                  "Loss of the second copy of a text with induction heads and with random heads muted",
                                  "Largest gain of each random order")):
        if axis.has_data():
            shown.append(about)
        else:  # not run
            axis.remove()
    text = f"""# What is a named head for?

Some heads of MiniLM, SmolLM2 and `demo` are named for what they read: the words of a relation, or what followed the same token before.
Here they are muted. Do these words change, and more than when a random head of the same layer is muted? What was asked, and
with which limits, was [fixed before](README.md#what-a-named-head-is-for).

```
scripts/named_heads build en_ewt-ud-dev.conllu
```

![{'; '.join(shown)}](named.svg)

{words}{loss}{copies}{drawn}"""
    figure.tight_layout()
    results.save("named", text.rstrip() + "\n", figure)
    print("\n".join(f"claim {number}: {'holds' if holds else 'does not hold'}" for number, holds in results.verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
