"""Which heads fetch a fact from far back in a long text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ._arguments import checked
from ._heads_report import report_of
from ._model import Model
from ._names import HeadNames
from ._progress import Progress
from ._settings import Options, with_options
from ._table import Table


@with_options("retrieval")
@checked
def retrieval(
    model: Model,
    needles: Iterable[Sequence[str]] | None = None,
    *,
    filler: str | None = None,
    lengths: Iterable[int] = (512,),
    depths: Iterable[float] = (0, 0.25, 0.5, 0.75, 1),
    # settings of retrieval
    answers: Literal["forced", "greedy"] = "forced",
    limit: Literal["none", "answer", "all"] = "none",
    sinks: int = 4,
    window: int = 64,
    by_group: bool = False,
    heads: HeadNames = (),
    text_tokens: int = 512,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """Retrieval heads: which heads of a causal model fetch a fact from far back in a long text (docs/heads/retrieval.md).

    Args:
        answers: read the answer whatever the model would say, or what it says, as Wu et al. do.
        limit: also measure what is lost with each head limited to the first keys and a window: in the rows of the question and the
            answer, or in all.
        sinks: how many of the first keys a limited head sees (at least 0).
        window: how many of the last keys it sees, its own among them (at least 1).
        by_group: limit heads that share keys together.
        heads: limit this head, or those of a pattern, instead of all.
        text_tokens: tokens of the filler whose loss is measured with each head limited; 0: it is not (at least 0).
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        needles: facts, each a sentence, a question and its answer, which stands in the sentence; None: ten that come with it.
        filler: the text around them, repeated where it is too short; None: one that comes with it.
        lengths: tokens of a text, with the question and without the answer.
        depths: where the fact stands: 0 at the beginning, 1 right before the question.

    A row for each head: `score` (share of the answer's tokens that it copies) and `weight` (what it gives to them), with half the
    width of their 95 % intervals, `score_half` and `weight_half`; `by_place`, the score at each length and depth of
    ``table.report["places"]``; of limited heads `fall` (of the answer's log-probability) and `loss_rise`.
    """
    report = report_of(
        model._native.retrieval, "retrieval", locals(),
        needles=None if needles is None else [list(needle) for needle in needles],
        filler=filler, lengths=list(lengths), depths=list(depths),
    )  # fmt: skip
    limited: dict[str, dict[str, Any]] = {}
    for one in report.get("limited", []):
        figures = {key: value for key, value in one.items() if key != "heads"}
        limited.update(dict.fromkeys(one["heads"], figures))
    return Table([{**row, **limited.get(row["head"], {})} for row in report["heads"]], report)
