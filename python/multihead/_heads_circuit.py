"""Which edges between heads and layers decide between two answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from typing import Literal

from ._arguments import checked
from ._errors import UsageError
from ._heads_report import report_of
from ._model import Model
from ._progress import Progress
from ._settings import Options, with_options
from ._table import Table


@with_options("circuit")
@checked
def circuit(
    model: Model,
    pairs: Iterable[Sequence[str]],
    *,
    token: int | None = None,
    svg: str | PathLike[str] | None = None,
    # settings of circuit
    share: float = 0.8,
    steps: int = 5,
    exact: int = 20,
    exact_of: Literal["largest", "random"] = "largest",
    most_pairs: int = 50,
    removals: int = 2000,
    random: int = 1000,
    random_pairs: int = 4,
    seed: int = 1,
    max_batch_tokens: int = 512,
    source_language: str | None = None,
    target_language: str | None = None,
    # end of settings
    options: Options = None,
    progress: Progress = False,
) -> Table:
    """A small set of edges between heads and layers that decides between two answers (docs/heads/circuit.md).

    Args:
        share: share of the decision that the circuit must keep (0.01 to 1).
        steps: runs between the corrupt and the clean text whose gradients give the scores (1 to 1000).
        exact: of so many edges measure the effect exactly, too (0 to 100000).
        exact_of: which these are: those of the largest scores, or some that are drawn at random, which show whether scores and
            effects agree.
        most_pairs: look for the circuit and prove it on the first so many pairs; all give scores (1 to 100000).
        removals: at most so many runs to find edges that the circuit does not need (0 to 10000000).
        random: random circuits of the same size to compare with (0 to 1000000).
        random_pairs: run the random circuits on the first so many pairs (1 to 100000).
        seed: seed of the random circuits and edges.
        max_batch_tokens: most source and target tokens in a batch (at least 1).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        options: settings of another report, ``table.report["options"]``; arguments that are given count before them.
        pairs: of each (clean, corrupt, answer, wrong), or of a translator (clean, corrupt, answer, wrong, prefix): two texts of
            equally many tokens, and the words, labels or, of a model of vectors, texts between which it decides.
        token: of a classifier of tokens: the one between whose labels it decides, from 0.
        svg: the file of a picture of the circuit.

    A row for each edge of the circuit, the largest absolute scores first: where it comes `from`, where it leads `to`, and its
    `score`, the share of the decision that gradients expect of it. ``table.report`` has `faithfulness` and `completeness` with
    their intervals, `exact` (edges whose effects were measured), and `random` circuits of the same size.
    """
    report = report_of(
        model._native.circuit, "circuit", locals(), pairs=[_pair(one) for one in pairs], token=token,
        svg="" if svg is None else fspath(svg),
    )  # fmt: skip
    return Table([{key: edge[key] for key in ("from", "to", "score")} for edge in report["edges"]], report)


def _pair(one: Sequence[str]) -> list[str]:
    given = [] if isinstance(one, str) else list(one)
    if not 4 <= len(given) <= 5 or not all(isinstance(part, str) for part in given):
        raise UsageError("`pairs`: expected (clean, corrupt, answer, wrong) of each, then perhaps a prefix, got " + repr(one))
    return given if len(given) == 5 else [*given, ""]
