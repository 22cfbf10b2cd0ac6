"""The five questions about multi-head attention, answered by running."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _native
from ._arguments import checked
from ._names import listed


@dataclass(frozen=True)
class Clause:
    """A part of a claim: what was asked of a measurement, and what it gave."""

    statement: str
    verdict: str  # "PASS", "FAIL", "UNDECIDED", "MEASURED" or "WITHDRAWN"
    asked: str
    measured: str


@dataclass(frozen=True)
class Claim:
    """A claim of a study, which holds when all its clauses do."""

    id: str  # "002.1"
    statement: str
    verdict: str
    remark: str
    clauses: list[Clause]


@dataclass(frozen=True)
class Study:
    """What a study found.

    Attributes:
        question, answer: the answer has only sentences that follow from verdicts; empty when some claims were left out.
        claims: all that were checked.
        pictures: plots as SVG, by name.
        report: everything, with tables and the numbers of plots.
    """

    name: str
    question: str
    answer: str
    claims: list[Claim]
    pictures: Mapping[str, str] = field(repr=False)
    report: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        lines = [self.question, *([self.answer] if self.answer else [])]
        return "\n\n".join([*lines, "\n".join(f"{claim.id} {claim.verdict}: {claim.statement}" for claim in self.claims)])

    def _repr_html_(self) -> str:
        import html

        shown = self.report["picture"]
        picture = next((svg for name, svg in self.pictures.items() if shown and shown in name), "")
        rows = "".join(
            f"<tr><td>{html.escape(claim.id)}</td><td>{html.escape(claim.verdict)}</td>"
            f"<td style='text-align: left'>{html.escape(claim.statement)}</td></tr>"
            for claim in self.claims
        )
        answer = f"<p>{html.escape(self.answer)}</p>" if self.answer else ""
        return f"<h4>{html.escape(self.question)}</h4>{answer}{picture}<table>{rows}</table>"


def studies() -> dict[str, str]:
    """The names of the studies, and the question that each answers."""
    return dict(_native.studies())


@checked
def study(
    name: str,
    *,
    claims: str | Iterable[str] = (),
    size: Literal["quick", "standard", "paper"] = "quick",
    runs: str | os.PathLike[str] = "study/runs",
    data: str | os.PathLike[str] = "",
    checkpoint: str | os.PathLike[str] = "",
) -> Study:
    """Runs a study, as ``multihead study NAME`` does.

    ::

        mh.study("two-matrices-or-one", claims="002.1")    # formulas, in a moment
        mh.study("one-product")                             # trains small models for some minutes

    Args:
        name: one of `studies()`.
        claims: only these, such as "002.1"; none: all, which gives an answer.
        size: "quick" has micro tasks, and leaves open what they cannot decide; "paper" takes hours, on real text in `data`.
        runs: a folder for trained models; those that are there are not trained again.
        checkpoint: a translator or an encoder that claim 002.6 looks into in place of a model trained here.

    Steps go to the logger "multihead.study" (INFO). Ctrl-C ends it between steps of training, and what is trained is kept.
    """
    import logging

    found, pictures = _native.study(
        name, claims=listed(claims, "claims"), size=size, runs=os.fspath(runs), data=os.fspath(data),
        checkpoint=os.fspath(checkpoint), on_step=logging.getLogger("multihead.study").info,
    )  # fmt: skip
    report = json.loads(found)
    checked = [
        Claim(one["id"], one["statement"], one["verdict"], one["remark"],
              [Clause(part["statement"], part["verdict"], part["asked"], part["measured"]) for part in one["clauses"]])
        for one in report["claims"]
    ]  # fmt: skip
    return Study(report["name"], report["question"], report["answer"], checked, dict(pictures), report)
