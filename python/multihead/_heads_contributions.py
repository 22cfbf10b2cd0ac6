"""What each part of a model adds to what it says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ._arguments import checked
from ._errors import UsageError
from ._heads_report import report_of
from ._model import Model
from ._progress import Progress
from ._settings import Options, settings, with_options
from ._table import Table


@with_options("contributions")
@checked
def contributions(
    model: Model,
    text: str | Iterable[str | Sequence[str]],
    *,
    answer: str = "",
    wrong: str = "",
    prefix: str = "",
    token: int | None = None,
    # settings of contributions
    every_position: bool = False,
    centred: bool = False,
    sources: int = 3,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """What the embeddings, each head and each layer add to a logit or a cosine, in sum (docs/heads/contributions.md).

    Args:
        every_position: explain the logit of each token of the text, all at once, in place of an answer.
        centred: explain logits less the mean of all logits.
        sources: of so many heads, the strongest, show the part of each token that they read (0 to 1000000).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        text: one text; or several, each perhaps as (text, answer) or (text, answer, wrong): means over them.
        answer: the word, or label, whose logit is explained; without: the model's own. Of a model of vectors the text with which
            the cosine is.
        wrong: a word, a label or a text whose logit or cosine is subtracted.
        prefix: of a translator, how its target begins.
        token: of a classifier of tokens: the one whose label is explained, from 0.

    A row for each part: its `name`, `kind`, `layer` and `sum`, of several texts `mean` and `half`, half the width of its 95 %
    interval. ``table.report`` has `positions` and `sources` of each part, and `error`, by how much they are off.
    """
    if isinstance(text, str):
        with model._edited() as edits:
            report = json.loads(model._native.contributions(
                text, answer=answer, wrong=wrong, prefix=prefix, token=token, settings=settings("contributions", locals()),
                edits=edits,
            ))  # fmt: skip
        rows = [{key: part[key] for key in ("name", "kind", "layer", "sum")} for part in report["parts"]]
        return Table(rows, report)
    questions = [_question(one, answer, wrong) for one in text]
    report = report_of(model._native.mean_contributions, "contributions", locals(), questions=questions, prefix=prefix, token=token)
    rows = [{**{key: part[key] for key in ("name", "kind", "layer")}, **part["sum"]} for part in report["parts"]]
    return Table(rows, report)


def _question(one: str | Sequence[str], answer: str, wrong: str) -> list[str]:
    given = [one] if isinstance(one, str) else list(one)
    if not 1 <= len(given) <= 3 or not all(isinstance(part, str) for part in given):
        raise UsageError("`text`: expected a text, or (text, answer) or (text, answer, wrong) of each, got " + repr(one))
    return given + [answer, wrong][len(given) - 1 :]
