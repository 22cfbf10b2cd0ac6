"""Is a model computed right?"""

from __future__ import annotations

import json
from typing import Any, Unpack

from . import _native, _settings
from ._arguments import checked
from ._errors import Error, MissingPackageError
from ._model import Model
from ._settings import with_settings
from ._table import Table
from ._text_settings import CheckSettings


def _ask(request: str, answer: str) -> None:
    """Runs the tool's script in this process."""
    names: dict[str, Any] = {"__name__": "site_oracle"}
    try:
        exec(compile(_native.site_oracle(), "site_oracle.py", "exec"), names)
        names["answer"](request, answer)
    except SystemExit as failed:
        is_missing = isinstance(failed.__context__, ImportError)
        raise (MissingPackageError if is_missing else Error)(str(failed)) from None


@checked
@with_settings("check", CheckSettings)
def check(model: Model, **settings: Unpack[CheckSettings]) -> Table:
    """Is a model computed right? Its sites, logits and greedy text beside what transformers computes (docs/verbs/check.md).

    ::

        mh.check(model).report["right"]

    Keyword Args:
        tolerance: largest relative difference of a site that is right: the largest |a - b| / max(|b|, median |b|) of its rows, a
            here and b in transformers (1e-09 to 1, default 0.0001).
        text: compare on this text instead of the usual four.
        new_tokens: tokens of each greedy text that is compared (0 to 1000, default 12).
        source_language: language of the texts, of a translator of many: de, deu, or a code of the model such as deu_Latn or de_DE.
        target_language: language of the translations, said in the same way.

    It needs torch and transformers, and for a GGUF file gguf. A row for each part of a site's name, over all layers and heads:
    `part` and the largest relative differences `together`, `alone` and `cached`. ``table.report`` has the verdict `right`, the
    `first` site that differs, and all else.
    """
    report = json.loads(model._native.check(settings=_settings.settings("check", settings), ask=_ask))
    return Table(report["parts"], report)
