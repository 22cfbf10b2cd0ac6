"""What each head does: statistics, relations, alignment, heads that are alike, changed or sure, circuits."""

from __future__ import annotations

import json

from ._arguments import checked
from ._corpus import File, Texts
from ._errors import UsageError
from ._heads_report import on_corpus
from ._model import Model
from ._names import HeadNames, listed
from ._progress import Progress
from ._settings import Options, settings, with_options
from ._table import Table


@with_options("stats")
@checked
def stats(
    model: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    # settings of stats
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Entropy, distance, sinks, roles and patterns of every head on a corpus (docs/heads/stats.md).

    Args:
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    A row for each head: `entropy` (nats), `entropy_share` (of the largest possible), `distance` (tokens), `at_offset.+1` (weight on
    the key after the query), `on_first`, `role`, ...
    """
    report = on_corpus("stats", locals())
    return Table(report["heads"], report)


@with_options("relations")
@checked
def relations(
    model: Model,
    text: Texts = None,
    *,
    trees: File | None = None,
    relation: str | None = None,
    target: Texts = None,
    target_trees: File | None = None,
    random: bool = True,
    # settings of relations
    probe: int = 0,
    least_support: int = 10,
    seed: int = 1,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Which head follows which grammatical relation (docs/heads/relations.md).

    Args:
        probe: learn a mix of all heads that finds the trees, by so many passes over half of the sentences (at least 0).
        least_support: leave relations of fewer words on either half out (at least 1).
        seed: seed of the heads with random weights.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        trees: CoNLL-U of the texts; without `text` their words are the text.
        relation: rank all heads for this one, such as "obj", on all sentences; of many heads the first is a little too high.
        random: also measure as many heads with random weights, the floor (`report["random"]`).

    A row for each relation and direction, with the head that was chosen on one half of the sentences, measured on the other:
    `relation`, `direction`, `head`, `score` (share of the words), its interval, the best fixed offset. ``report["relations"]`` has
    every head on all sentences.
    """
    report = on_corpus("relations", locals(), random=random and relation is None)
    if relation is None:
        return Table(report["best"], report)
    ranked = Table(report["relations"], report).where(relation=relation).sort("score")
    if not ranked:
        known = ", ".join(sorted({row["relation"] for row in report["relations"]}))
        raise UsageError(f"the trees have no relation {relation!r} on enough words; they have {known}")
    return ranked


@with_options("alignment")
@checked
def alignment(
    model: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    alignment: File | None = None,
    trees: File | None = None,
    target_trees: File | None = None,
    gold: bool = True,
    pairs: int = 200,
    # settings of alignment
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """How well each head of cross-attention aligns words, by word alignments in Pharaoh format, or without them by what leaving a
    source word out does (docs/heads/alignment.md).

    Args:
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        gold: False chooses the heads that align without gold alignments; ``table.report["chosen"]`` has them. pairs: from so many.
    """
    if alignment is not None and not gold:
        raise UsageError("`gold=False` chooses heads without gold alignments; leave `alignment` out")
    report = on_corpus("alignment", locals(), gold=gold, pairs=pairs)
    return Table(report["alignment"], report)


@with_options("similar")
@checked
def similar(
    model: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    # settings of similar
    nearest: int = 3,
    cluster_ratio: float = 0.25,
    seed: int = 1,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Which heads read alike: divergences of their weights, and what chance would give (docs/heads/similar.md).

    Args:
        nearest: heads that are named for each head, in JSON (at least 0).
        cluster_ratio: most divergence within a cluster, as a share of chance (0 to 1).
        seed: seed of the permutations.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    A row for each head with the `nearest` others. ``report["kinds"]`` has the matrices.
    """
    report = on_corpus("similar", locals())
    return Table([{"kind": kind["kind"], **head} for kind in report["kinds"] for head in kind["heads"]], report)


@with_options("compare")
@checked
def compare(
    model: Model,
    after: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    # settings of compare
    seed: int = 1,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """What a training changed in each head: what it reads, and its weights (docs/heads/compare.md).

    Args:
        seed: seed of the permutations.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    `after` was trained from `model`, whose tokens and greedy translations are read; edits of `model` hold for both. A row for each
    head: `divergence.mean` (nats) of what it reads before and after, `ratio.mean` of it to chance, `qk_change`, `ov_change`, ...
    """
    report = on_corpus("compare", locals(), after=after._native)
    return Table(report["heads"], report)


@with_options("where")
@checked
def where(
    model: Model,
    text: Texts = None,
    *,
    heads: HeadNames = (),
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    # settings of where
    sentences: int = 10,
    usual: int = 3,
    tokens: int = 10,
    least_count: int = 10,
    sure: float = 0.5,
    alike: int = 5,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Where heads are most sure: their strongest sentences, the tokens that they choose, heads alike (docs/heads/where.md).

    Args:
        sentences: sentences shown of a head: those whose largest weight is largest (0 to 1000).
        usual: sentences shown whose largest weight is about the median (0 to 1000).
        tokens: tokens shown that are read, or read from, more often than chance (0 to 1000).
        least_count: leave tokens out that occur less often in the corpus (at least 1).
        sure: a query is sure when its largest weight is at least this (0 to 1).
        alike: heads that choose the same keys most often (0 to 1000).
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        heads: names or patterns; none: all.
    """
    report = on_corpus("where", locals(), heads=listed(heads, "heads"))
    return Table(report["heads"], report)


@with_options("circuits")
@checked
def circuits(
    model: Model,
    *,
    compositions: bool = True,
    # settings of circuits
    random_draws: int = 8,
    seed: int = 1,
    # end of settings
    options: Options = None,
) -> Table:
    """W_QK and W_OV of every head, from the weights alone: spectra, ranks, copying (docs/heads/circuits.md).

    Args:
        random_draws: random matrices averaged for the baseline of compositions (at least 1).
        seed: seed of these matrices.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        compositions: how much of what a head writes is read by heads of later layers, ``report["compositions"]``.
    """
    report = json.loads(model._native.circuits(compositions=compositions, settings=settings("circuits", locals())))
    return Table(report["circuits"], report)
