"""The page of heads, in a notebook and as a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import _native
from ._arguments import checked, text_or_list
from ._corpus import File, Texts, corpus
from ._errors import UsageError
from ._model import Model
from ._names import HeadName, head_name
from ._progress import Progress, counting
from ._settings import settings
from ._table import Table

Report = Table | Mapping[str, Any] | File | None


class Page:
    """A page that opens in any browser and needs nothing else. A notebook shows it as the result of a cell.

    Attributes:
        html: the page. title: the head that it opens at, in words. height: pixels in a notebook.
    """

    def __init__(self, page: str, title: str, height: int) -> None:
        self.html = page
        self.title = title
        self.height = height

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file, in one step: what was there before stays until all is written."""
        _native.write_file(os.fspath(path), self.html)

    def _repr_html_(self) -> str:
        import html

        return (
            f'<iframe title="{html.escape(self.title, quote=True)}" srcdoc="{html.escape(self.html, quote=True)}" '
            f'style="width: 100%; height: {self.height}px; border: 1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Page of {len(self.html) / 2**20:.1f} MB: {self.title}; page.save('heads.html') writes it>"


def _report(given: Report, argument: str) -> tuple[str, str]:
    """Its JSON, empty where a file is to be read, and what messages call it."""
    if given is None:
        return "", ""
    if isinstance(given, (str, os.PathLike)):
        return "", os.fspath(given)
    return json.dumps(dict(given.report if isinstance(given, Table) else given)), f"`{argument}`"


@checked
def view(
    model: Model,
    text: str | Iterable[str],
    *,
    # settings of view
    head: HeadName = "",
    max_size: int = 32,
    walk: str | int = "",
    importance: bool = True,
    source_language: str | None = None,
    target_language: str | None = None,
    live: bool = False,
    live_weights: Literal["file", "float16", "int8"] = "file",
    # end of settings
    target: str | Iterable[str] = (),
    corpus_text: Texts = None,
    corpus_target: Texts = None,
    trees: File | None = None,
    target_trees: File | None = None,
    alignment: File | None = None,
    circuit: Report = None,
    retrieval: Report = None,
    aligners: Report = None,
    height: int = 720,
    progress: Progress = False,
) -> Page:
    """The heads of a model on texts as one page: weights over the text, what each head does, which matter, a walk through a layer.

    ::

        mh.view(mh.demo(), "the small dog sees a cat .")            # as the last line of a cell
        mh.view(model, text).save("heads.html")

    Args:
        head: open at this head; without: at the one with the best evidence.
        max_size: largest page, in MB (1 to 1024).
        walk: an attention, e.g. encoder.0.self_attention, or the number of a layer: add a walk through it, step by step, on the
            first text.
        importance: importance, attribution, contributions and lens, which take longest.
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.
        live: put the model into the page: it answers there, on texts and with heads that the reader chooses.
        live_weights: how the page holds its weights: as the file has them, or rounded, which makes the page smaller.
        target: of a translator, a translation for each text; without: the greedy ones.
        corpus_text: texts on which is measured what heads do, as in `multihead.heads`; without: the page's own texts.
        corpus_target, trees, target_trees, alignment: what is known of them. UsageError without `corpus_text` or `trees`.
        circuit, retrieval, aligners: what `multihead.heads.circuit`, `retrieval` and `alignment(gold=False)` gave of this model,
            its report or a file of it.
        height: pixels in a notebook.
    """
    texts, _ = text_or_list(text, "text")
    targets = text_or_list(target, "target")[0]
    measured = None
    if corpus_text is not None or trees is not None:
        measured = corpus(corpus_text, target=corpus_target, trees=trees, target_trees=target_trees, alignment=alignment)
    else:
        of_corpus = {"corpus_target": corpus_target, "target_trees": target_trees, "alignment": alignment}
        for argument, given in of_corpus.items():
            if given is not None:
                raise UsageError(f"`{argument}` needs a corpus: give its sentences with `corpus_text` or `trees`")
    chosen = settings("view", locals(), head=head_name(head), walk=str(walk))
    name = os.path.basename(os.path.normpath(model.path)) or model.path
    with counting(progress, "sentences") as count, model._edited() as edits:
        page, title = model._native.view(
            texts, targets=targets, corpus=measured, name=name, command=f"multihead.view(multihead.load({name!r}), ...)",
            settings=chosen, circuit=_report(circuit, "circuit"), retrieval=_report(retrieval, "retrieval"),
            aligners=_report(aligners, "aligners"), edits=edits, progress=count,
        )  # fmt: skip
    return Page(page, title, height)
