"""Which heads matter."""

from __future__ import annotations

from typing import Literal

from ._arguments import checked
from ._corpus import File, Texts
from ._heads_report import on_corpus
from ._model import Model
from ._names import HeadNames
from ._progress import Progress
from ._settings import Options, with_options
from ._table import Table


@with_options("importance", curve=False)
@checked
def importance(
    model: Model,
    text: Texts = None,
    *,
    # settings of importance but curve, points, random_orders
    by: Literal["gradient", "ablation", "alone"] = "gradient",
    to: Literal["zero", "mean"] = "zero",
    heads: HeadNames = (),
    normalised: bool = False,
    layer_by_layer: bool = False,
    masked: float = 0.15,
    seed: int = 1,
    label: str = "",
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    progress: Progress = False,
) -> Table:
    """How much each head matters, ranked (docs/heads/importance.md).

    Args:
        by: gradient: absolute derivative of the score by a factor on the head's output (fast); ablation: what the score loses
            without the head; alone: what it loses without all other heads of the attention, where least is best.
        to: what a head's output becomes when it is left out.
        heads: rank these heads only, e.g. 'encoder.*'.
        normalised: divide each importance by the L2 norm of those of its attention's heads.
        layer_by_layer: rank heads within each attention instead of over the whole model.
        masked: share of the words that a model of masked words predicts (0.001 to 1).
        seed: seed of the masks and the random orders.
        label: label of a classifier whose logit is the score; without: the best one of each text.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    The score is the log-probability of the translation, of the next tokens or of masked words; of a model of vectors a cosine.
    A row for each head: `head`, `rank`, `importance`, `importance_half_width` (of the 95 % interval over texts).
    """
    report = on_corpus("importance", locals())
    return Table(report["heads"], report)


@with_options("importance", curve=True)
@checked
def pruning_curve(
    model: Model,
    text: Texts = None,
    *,
    # settings of importance but curve
    by: Literal["gradient", "ablation", "alone"] = "gradient",
    to: Literal["zero", "mean"] = "zero",
    heads: HeadNames = (),
    normalised: bool = False,
    layer_by_layer: bool = False,
    masked: float = 0.15,
    seed: int = 1,
    label: str = "",
    max_batch_tokens: int = 2048,
    source_language: str | None = None,
    target_language: str | None = None,
    points: int = 10,
    random_orders: int = 10,
    # end of settings
    options: Options = None,
    target: Texts = None,
    pair: Texts = None,
    trees: File | None = None,
    progress: Progress = False,
) -> Table:
    """The score as heads are muted, the least important first; ranked on one half of the texts, scored on the other.

    Args:
        by: gradient: absolute derivative of the score by a factor on the head's output (fast); ablation: what the score loses
            without the head; alone: what it loses without all other heads of the attention, where least is best.
        to: what a head's output becomes when it is left out.
        heads: rank these heads only, e.g. 'encoder.*'.
        normalised: divide each importance by the L2 norm of those of its attention's heads.
        layer_by_layer: rank heads within each attention instead of over the whole model.
        masked: share of the words that a model of masked words predicts (0.001 to 1).
        seed: seed of the masks and the random orders.
        label: label of a classifier whose logit is the score; without: the best one of each text.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        points: steps of the curve (1 to 10000).
        random_orders: random orders beside it (0 to 1000).
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.

    A row for each point: `muted` (heads), `score`, `loss`, `random` with their intervals.
    """
    report = on_corpus("importance", locals() | {"curve": True})
    return Table(report["curve"]["points"], report)
