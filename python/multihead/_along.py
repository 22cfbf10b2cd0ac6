"""Linear functions of the values at a site: the sum of the values times the numbers of `along`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._arguments import whole_numbers
from ._errors import UsageError
from ._steering import Direction

_Given = tuple[list[int], Any]  # the columns that the numbers are of (none: all), and the numbers


def _of_one(along: Any, of: str, head: int | None) -> _Given:
    if isinstance(along, Direction):
        if along.site != of or along.head != head:
            raise UsageError(f"`along`: {along!r} is of another site or head than of={of!r}, head={head}")
        return [], along.numbers
    if isinstance(along, Mapping):
        if not along:
            raise UsageError("`along`: name at least one column, a token id at logits")
        return whole_numbers(list(along), "along"), np.array(list(along.values()), dtype=np.float32)
    return [], np.asarray(along, np.float32) if isinstance(along, (list, tuple)) else along


def _for_each(along: Any) -> bool:
    """Whether it has an entry for each text of a list, in place of one for all."""
    if isinstance(along, (list, tuple)):
        return bool(along) and not np.isscalar(along[0]) and getattr(along[0], "ndim", 1) > 0
    return getattr(along, "ndim", 1) > 1


def along_texts(
    along: Any, position: Any, texts: int, single: bool, of: str, head: int | None
) -> list[tuple[int | None, list[int], Any]]:
    """Of each text the row that is meant, columns and numbers. Raises UsageError where lists have other lengths, and
    ArgumentTypeError on what are no numbers."""
    if along is None:
        raise UsageError(f"`along` is missing: say by which numbers the values at {of} are multiplied, e.g. a direction")
    given = list(along) if not single and _for_each(along) else [along] * texts
    positions = [position] * texts if position is None or isinstance(position, int) else whole_numbers(position, "position")
    for name, entries in (("along", given), ("position", positions)):
        if len(entries) != texts:
            raise UsageError(f"`{name}`: expected one for each of {texts} texts, got {len(entries)}")
    return [(where, *_of_one(one, of, head)) for where, one in zip(positions, given, strict=True)]
