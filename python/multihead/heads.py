"""What the heads of a model do: the analyses of ``multihead heads``, each a table.

::

    import multihead as mh
    model = mh.load("minilm")
    mh.heads.relations(model, trees="en_ewt-ud-dev.conllu").where(relation="obj").sort("score")
    mh.heads.importance(model, lines)[:10]

Texts are a list of str, or a file with one a line (gzip or not) given as ``pathlib.Path``. All analyses but those of attributions
obey ``with model.edit(...)``. Every function raises what loading and reading raise, and UsageError on invalid options. The
pages of docs/heads say what each measure means and what it does not; docs/file-formats.md describes ``table.report``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

from ._arguments import checked
from ._corpus import Corpus, File, Texts, corpus
from ._errors import UsageError
from ._model import Model
from ._names import HeadNames, listed
from ._progress import Progress, counting
from ._settings import Options, settings, with_options
from ._table import Table, flat

__all__ = [
    "alignment", "attribution", "circuits", "faithfulness", "importance", "patch", "pruning_curve", "relations", "similar", "stats",
    "where",
]  # fmt: skip

Method = Literal["attention", "norm-weighted", "rollout", "relevance", "flow", "gradient-x-input", "integrated-gradients",
                 "value-zeroing"]  # fmt: skip


def _report(
    model: Model, analysis: Callable[..., str], *read: Corpus, max_batch_tokens: int, progress: Progress, **own: Any
) -> dict[str, Any]:
    """What an analysis of the model's gives, under the edits of this moment."""
    with counting(progress, "sentences") as count, model._edited() as edits:
        found = analysis(*read, max_batch_tokens=max_batch_tokens, edits=edits, progress=count, **own)
    report: dict[str, Any] = json.loads(found)
    return report


def _relations(report: dict[str, Any]) -> list[str]:
    return sorted({row["relation"] for row in report["relations"]})


@checked
def stats(
    model: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """Entropy, distance, sinks, roles and patterns of every head on a corpus (docs/heads/stats.md).

    A row for each head: `entropy` (nats), `entropy_share` (of the largest possible), `distance` (tokens), `at_offset.+1` (weight on
    the key after the query), `on_first`, `role`, ...
    """
    read = corpus(text, target=target, pair=pair, trees=trees)
    report = _report(model, model._native.stats, read, max_batch_tokens=max_batch_tokens, progress=progress)
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
    # end of settings
    options: Options = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """Which head follows which grammatical relation (docs/heads/relations.md).

    Args:
        probe: learn a mix of all heads that finds the trees, by so many passes over half of the sentences (at least 0).
        least_support: leave relations of fewer words on either half out (at least 1).
        seed: seed of the heads with random weights.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        trees: CoNLL-U of the texts; without `text` their words are the text.
        relation: rank all heads for this one, such as "obj", on all sentences; of many heads the first is a little too high.
        random: also measure as many heads with random weights, the floor (`report["random"]`).

    A row for each relation and direction, with the head that was chosen on one half of the sentences, measured on the other:
    `relation`, `direction`, `head`, `score` (share of the words), its interval, the best fixed offset. ``report["relations"]`` has
    every head on all sentences.
    """
    report = _report(
        model, model._native.relations, corpus(text, target=target, trees=trees, target_trees=target_trees),
        random=random and relation is None, settings=settings("relations", locals()), max_batch_tokens=max_batch_tokens,
        progress=progress,
    )  # fmt: skip
    if relation is None:
        return Table(report["best"], report)
    ranked = Table(report["relations"], report).where(relation=relation).sort("score")
    if not ranked:
        raise UsageError(f"the trees have no relation {relation!r} on enough words; they have {', '.join(_relations(report))}")
    return ranked


@checked
def alignment(
    model: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    alignment: File | None = None,
    trees: File | None = None,
    target_trees: File | None = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """How well each head of cross-attention aligns words, by word alignments in Pharaoh format (docs/heads/alignment.md)."""
    report = _report(
        model, model._native.alignment, corpus(text, target=target, alignment=alignment, trees=trees, target_trees=target_trees),
        max_batch_tokens=max_batch_tokens, progress=progress,
    )  # fmt: skip
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
    # end of settings
    options: Options = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """Which heads read alike: divergences of their weights, and what chance would give (docs/heads/similar.md).

    Args:
        nearest: heads that are named for each head, in JSON (at least 0).
        cluster_ratio: most divergence within a cluster, as a share of chance (0 to 1).
        seed: seed of the permutations.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    A row for each head with the `nearest` others. ``report["kinds"]`` has the matrices.
    """
    report = _report(
        model, model._native.similar, corpus(text, target=target, pair=pair, trees=trees), settings=settings("similar", locals()),
        max_batch_tokens=max_batch_tokens, progress=progress,
    )  # fmt: skip
    return Table([{"kind": kind["kind"], **head} for kind in report["kinds"] for head in kind["heads"]], report)


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
    # end of settings
    options: Options = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """Where heads are most sure: their strongest sentences, the tokens that they choose, heads alike (docs/heads/where.md).

    Args:
        sentences: strongest sentences of a head (0 to 1000).
        usual: sentences of about the median strength (0 to 1000).
        tokens: key tokens and query tokens that stand out most (0 to 1000).
        least_count: leave tokens out that occur less often in the corpus (at least 1).
        sure: a query is sure when its largest weight is at least this (0 to 1).
        alike: heads that choose the same keys most often (0 to 1000).
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        heads: names or patterns; none: all.
    """
    report = _report(
        model, model._native.where, corpus(text, target=target, pair=pair, trees=trees), heads=listed(heads, "heads"),
        settings=settings("where", locals()), max_batch_tokens=max_batch_tokens, progress=progress,
    )  # fmt: skip
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


def _importance(given: dict[str, Any], **fixed: Any) -> dict[str, Any]:
    """The report on the arguments of `importance` or `pruning_curve`."""
    given["heads"] = listed(given["heads"], "heads")
    model, read = given["model"], corpus(given["text"], target=given["target"], pair=given["pair"], trees=given["trees"])
    return _report(
        model, model._native.importance, read, settings=settings("importance", given, **fixed),
        max_batch_tokens=given["max_batch_tokens"], progress=given["progress"],
    )  # fmt: skip


@with_options("importance", curve=False)
@checked
def importance(
    model: Model,
    text: Texts = None,
    *,
    # settings of importance
    by: Literal["gradient", "ablation", "alone"] = "gradient",
    to: Literal["zero", "mean"] = "zero",
    heads: HeadNames = (),
    normalised: bool = False,
    layer_by_layer: bool = False,
    masked: float = 0.15,
    seed: int = 1,
    # end of settings
    options: Options = None,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """How much each head matters, ranked (docs/heads/importance.md).

    Args:
        by: gradients of gates (fast), leaving each head out, or all others of its attention.
        to: what a head's output becomes when it is left out.
        heads: these heads alone, e.g. 'encoder.*'.
        normalised: divide by the L2 norm over the attention's heads.
        layer_by_layer: rank the heads of each attention by themselves.
        masked: share of the words that a model of masked words predicts (0.001 to 1).
        seed: seed of the masks and the random orders.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    The score is the log-probability of the translation, of the next tokens or of masked words; of a model of vectors a cosine.
    A row for each head: `head`, `rank`, `importance`, `importance_half_width` (of the 95 % interval over texts).
    """
    report = _importance(locals())
    return Table(report["heads"], report)


@with_options("importance", curve=True)
@checked
def pruning_curve(
    model: Model,
    text: Texts = None,
    *,
    # settings of importance, with the curve
    by: Literal["gradient", "ablation", "alone"] = "gradient",
    to: Literal["zero", "mean"] = "zero",
    heads: HeadNames = (),
    normalised: bool = False,
    layer_by_layer: bool = False,
    masked: float = 0.15,
    seed: int = 1,
    points: int = 10,
    random_orders: int = 10,
    # end of settings
    options: Options = None,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """The score as heads are muted, the least important first; ranked on one half of the texts, scored on the other.

    Args:
        by: gradients of gates (fast), leaving each head out, or all others of its attention.
        to: what a head's output becomes when it is left out.
        heads: these heads alone, e.g. 'encoder.*'.
        normalised: divide by the L2 norm over the attention's heads.
        layer_by_layer: rank the heads of each attention by themselves.
        masked: share of the words that a model of masked words predicts (0.001 to 1).
        seed: seed of the masks and the random orders.
        points: steps of the curve (1 to 10000).
        random_orders: random orders beside it (0 to 1000).
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    A row for each point: `muted` (heads), `score`, `loss`, `random` with their intervals.
    """
    report = _importance(locals(), curve=True)
    return Table(report["curve"]["points"], report)


@checked
def patch(
    model: Model,
    *,
    clean: str,
    corrupt: str,
    answer: str,
    wrong: str,
    what: Literal["heads", "patterns", "stream"] = "heads",
    by_position: bool = False,
    prefix: str = "",
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """Activation patching: which values of the clean run decide between two answers (docs/heads/patch.md).

    Args:
        clean: a text on which the model prefers `answer` to `wrong`; corrupt: one of equally many tokens on which it does not.
        answer, wrong: words that come next, or stand in the mask's place; of a model of vectors texts to be near to.
        what: what is put into the corrupt run: heads' outputs, their weights, or the input of each layer.
        by_position: one position at a time.
        prefix: of a translator, how its target begins.

    A row for each patched run: `head`, of the stream the `site`; `restored` (1: the value alone gives the clean run's score; 0: it
    changes nothing).
    """
    report = _report(
        model, model._native.patch, clean=clean, corrupt=corrupt, answer=answer, wrong=wrong, prefix=prefix, what=what,
        by_position=by_position, max_batch_tokens=max_batch_tokens, progress=progress,
    )  # fmt: skip
    column = "site" if what == "stream" else "head"
    return Table([{column if key == "name" else key: value for key, value in row.items()} for row in report["values"]], report)


@checked
def attribution(
    model: Model,
    text: str,
    *,
    second: str = "",
    methods: Method | Iterable[Method] = (),
    position: int | None = None,
    target: str = "",
    target_token: str = "",
    steps: int = 64,
    max_batch_tokens: int = 2048,
) -> Table:
    """Which tokens count for what the model says, by eight measures (docs/heads/attribution.md).

    Args:
        second: of an encoder: the cosine of the vectors of both texts is explained, else the log-probability of a token.
        methods: none: all; flow only where the text is short enough.
        position: the token that is explained, from 0; None: the last word.
        target: of a translator; without: its greedy translation. target_token: another token in that place.
        steps: of integrated gradients.

    A row for each token, with a column for each method.
    """
    report = json.loads(model._native.attribution(
        text, second=second, methods=listed(methods, "methods"), position=position, target_token=target_token, target=target,
        steps=steps, max_batch_tokens=max_batch_tokens, edits=model._edits(),
    ))  # fmt: skip
    rows = [{**{key: value for key, value in token.items() if key != "scores"}, **flat(token["scores"])}
            for token in report["tokens"]]  # fmt: skip
    return Table(rows, report)


@checked
def faithfulness(
    model: Model,
    text: Texts = None,
    *,
    methods: Method | Iterable[Method] = (),
    target: Texts = None,
    pair: Texts = None,
    points: int = 20,
    draws: int = 5,
    seed: int = 1,
    steps: int = 64,
    max_batch_tokens: int = 2048,
    progress: Progress = False,
) -> Table:
    """Which attributions to trust: the areas under deletion and insertion curves (docs/heads/attribution.md).

    Args:
        pair: second texts: an encoder's cosines are explained. points: most steps of a curve. draws: random orders, the floor.

    A row for each method, "random" the last: `deletion.mean` (lower is better), `insertion.mean` (higher is better), intervals.
    """
    report = _report(
        model, model._native.faithfulness, corpus(text, target=target, pair=pair), of_pairs=pair is not None,
        methods=listed(methods, "methods"), points=points, draws=draws, seed=seed, steps=steps,
        max_batch_tokens=max_batch_tokens, progress=progress,
    )  # fmt: skip
    return Table(report["methods"], report)
