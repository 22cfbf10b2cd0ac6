"""Token ids in the place of texts: of one text a list of whole numbers or an array [tokens]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np

from ._arguments import _Kind, _Refused, _take_text, _type_of, whole_numbers
from ._errors import UsageError

Integers = np.ndarray[Any, np.dtype[np.integer[Any]]]


class TokenIds(list[int]):
    """Those of one text, where they were checked."""


def _listed(value: Any) -> Any:
    """An array, torch's too, as a list."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_whole(value: Any) -> bool:
    return not isinstance(value, float) and hasattr(type(value), "__index__") and getattr(value, "ndim", 0) == 0


def _take_ids(value: Any) -> TokenIds:
    items = _listed(value)
    if not isinstance(items, (list, tuple)):
        raise _Refused(_type_of(value))
    if not items:
        raise _Refused("no ids at all", UsageError)
    for item in items:
        if not _is_whole(item):
            raise _Refused(f"{_type_of(item)} in it")
    return TokenIds(whole_numbers(items, "token ids"))


def _take_text_or_ids(value: Any) -> str | TokenIds:
    return _take_text(value) if isinstance(value, str) else _take_ids(value)


def _take_texts_or_ids(value: Any) -> Any:
    """What can be read once alone, an iterator, is checked where it is read."""
    if isinstance(value, str):
        return _take_text(value)
    items = _listed(value)
    if isinstance(items, (bytes, dict)) or not hasattr(type(items), "__iter__"):
        raise _Refused(_type_of(value))
    if not isinstance(items, (list, tuple)):
        return items
    if (items and _is_whole(items[0])) or (not items and isinstance(value, np.ndarray)):
        return _take_ids(items)
    try:
        return [_take_text_or_ids(item) for item in items]
    except _Refused as refused:
        found = refused.found if refused.found.endswith(" in it") else f"{refused.found} in it"
        raise _Refused(found, refused.kind) from None


_ONE = _Kind("text or a list of token ids", _take_text_or_ids)
_ANY = _Kind("text, a list of token ids, or a list of either", _take_texts_or_ids)

TextOrIds = Annotated[str | Sequence[int] | Integers, _ONE]
TextsOrIds = Annotated[str | Sequence[int] | Integers | Iterable[str | Sequence[int] | Integers], _ANY]


def text_or_ids(value: Any, argument: str) -> str | TokenIds:
    """The value, if it is text or token ids. Raises ArgumentTypeError, UsageError or FormatError."""
    found: str | TokenIds = _ONE.of(value, argument)
    return found


def texts_or_ids(values: Any, argument: str) -> tuple[Any, bool]:
    """Texts, or the token ids of several, as a list, and whether it is a single one. Raises what text_or_ids() does, and
    UsageError where there are both."""
    if isinstance(values, (str, TokenIds)):
        return [values], True
    found = [text_or_ids(one, argument) for one in values]
    if len({isinstance(one, str) for one in found}) > 1:
        raise UsageError(f"`{argument}`: texts and token ids are both in the list; give lists of one of them")
    return found, False
