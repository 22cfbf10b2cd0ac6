"""What a model decides by: values of another run, and the tokens that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

from ._arguments import checked
from ._corpus import Texts
from ._heads_report import on_corpus, report_of
from ._model import Model
from ._progress import Progress
from ._settings import Options, settings, with_options
from ._table import Table, flat

# names of attribution.methods
Method = Literal[
    "attention",
    "norm-weighted",
    "rollout",
    "relevance",
    "flow",
    "gradient-x-input",
    "integrated-gradients",
    "value-zeroing",
]


@with_options("patch")
@checked
def patch(
    model: Model,
    *,
    clean: str,
    corrupt: str,
    answer: str,
    wrong: str,
    prefix: str = "",
    token: int | None = None,
    # settings of patch
    what: Literal["heads", "patterns", "stream"] = "heads",
    by_position: bool = False,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Activation patching: which values of the clean run decide between two answers (docs/heads/patch.md).

    Args:
        what: what is put in: outputs of heads, their attention weights, or the residual stream before a layer.
        by_position: patch one token position at a time (the tool always does for the stream).
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        clean: a text on which the model prefers `answer` to `wrong`; corrupt: one of equally many tokens on which it does not.
        answer, wrong: words that come next, or stand in the mask's place; of a model of vectors texts to be near to.
        prefix: of a translator, how its target begins.
        token: of a classifier of tokens: the one between whose labels it decides, from 0.

    A row for each patched run: `head`, of the stream the `site`; `restored` (1: the value alone gives the clean run's score; 0: it
    changes nothing).
    """
    report = report_of(
        model._native.patch, "patch", locals(),
        clean=clean, corrupt=corrupt, answer=answer, wrong=wrong, prefix=prefix, token=token,
    )  # fmt: skip
    column = "site" if what == "stream" else "head"
    return Table([{column if key == "name" else key: value for key, value in row.items()} for row in report["values"]], report)


@with_options("lens")
@checked
def lens(
    model: Model,
    text: str,
    *,
    answer: str = "",
    position: int | None = None,
    target: str = "",
    pair: str = "",
    second: str = "",
    # settings of lens
    sublayers: bool = False,
    words: int = 5,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
) -> Table:
    """The logit lens: what the residual stream says after each layer, read by the model's own end (docs/heads/lens.md).

    Args:
        sublayers: also read the sums after each attention; otherwise embeddings and layers.
        words: how many of the most probable words a report has for each place (1 to 256).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        answer: a word whose rank and log-probability are told, of a classifier a label; without: those of the token that the text
            has there (`actual`) and of what the model says in the end (`predicted`).
        position: the token whose stream is read, from 0, or from the end (-1 is the last); None: all, of a text with masks these.
        target: of a translator; without: its greedy translation. pair: of an encoder such as a cross-encoder: a second text, which
            it reads as one sequence with the first.
        second: of a model that makes vectors: a text whose vector is compared with that of each layer.

    A row for each place (`site`) and position: the most probable `word`, of a classifier the `label`, with its
    `probability`, ranks, `entropy`, and `divergence` from the end, KL(p_end || p); ``table.report`` has the next words. Of vectors
    a row for each place: cosines with the text's `own` vector and with that of the `second` text.
    """
    with model._edited() as edits:
        report = json.loads(model._native.lens(
            text, answer=answer, position=position, target=target, pair=pair, second=second, settings=settings("lens", locals()),
            edits=edits,
        ))  # fmt: skip
    if report["says"] == "vectors":
        return Table(report["values"], report)
    read = {one["position"]: one["token"] for one in report["positions"]}
    first = "word" if report["says"] == "words" else "label"
    rows = []
    for value in report["values"]:
        best = value["best"][0]
        rest = {key: number for key, number in value.items() if key not in ("site", "position", "best")}
        score = {key: number for key, number in best.items() if key not in ("token", "id")}
        rows.append({"site": value["site"], "position": value["position"], "token": read[value["position"]], first: best["token"],
                     **score, **rest})  # fmt: skip
    return Table(rows, report)


@with_options("attribution")
@checked
def attribution(
    model: Model,
    text: str,
    *,
    second: str = "",
    pair: str = "",
    position: int | None = None,
    target: str = "",
    target_token: str = "",
    label: str = "",
    # settings of attribution but points, draws, seed
    methods: Method | Iterable[Method] = (),
    steps: int = 64,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
) -> Table:
    """Which tokens count for what the model says, by eight measures (docs/heads/attribution.md).

    Args:
        methods: a method, e.g. rollout; without: all.
        steps: steps of integrated gradients (1 to 100000).
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        second: of an encoder: the cosine of the vectors of both texts is explained, else the log-probability of a token.
        pair: of an encoder such as a cross-encoder: a second text, which it reads as one sequence with the first.
        position: the token that is explained, from 0; None: the last word.
        target: of a translator; without: its greedy translation. target_token: another token in that place.
        label: of a classifier: whose logit is explained; without: the best one.

    A row for each token, with a column for each method.
    """
    report = json.loads(model._native.attribution(
        text, second=second, pair=pair, position=position, target_token=target_token, label=label, target=target,
        settings=settings("attribution", locals()), edits=model._edits(),
    ))  # fmt: skip
    rows = [{**{key: value for key, value in token.items() if key != "scores"}, **flat(token["scores"])}
            for token in report["tokens"]]  # fmt: skip
    return Table(rows, report)


@with_options("attribution")
@checked
def faithfulness(
    model: Model,
    text: Texts = None,
    *,
    target: Texts = None,
    pair: Texts = None,
    # settings of attribution
    methods: Method | Iterable[Method] = (),
    steps: int = 64,
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    points: int = 20,
    draws: int = 5,
    seed: int = 1,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Which attributions to trust: the areas under deletion and insertion curves (docs/heads/attribution.md).

    Args:
        methods: a method, e.g. rollout; without: all.
        steps: steps of integrated gradients (1 to 100000).
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        points: points of the curve; longer texts replace several tokens a point (1 to 10000).
        draws: random orders of a sentence, the floor (1 to 10000).
        seed: seed of random orders.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        pair: second texts: an encoder's cosines are explained.

    A row for each method, "random" the last: `deletion.mean` (lower is better), `insertion.mean` (higher is better), intervals.
    """
    report = on_corpus("attribution", locals(), analysis="faithfulness", of_pairs=pair is not None)
    return Table(report["methods"], report)
