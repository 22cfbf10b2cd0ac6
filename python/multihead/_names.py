"""Heads and sites as they are given: names, patterns, heads themselves; one or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ._arguments import text


class Head(NamedTuple):
    """A head of a model. It may be given wherever the name of one may."""

    name: str  # "encoder.3.self_attention.1"
    attention: str  # "encoder.3.self_attention"
    number: int  # from 0
    layer: int  # from 0
    key_head: int  # the number of the keys that it reads; heads with the same one share them
    d_key: int  # numbers of its queries and keys
    d_value: int  # numbers of its values


HeadName = str | Head
HeadNames = str | Head | Iterable[str | Head]


def head_name(head: HeadName) -> str:
    return head.name if isinstance(head, Head) else head


def listed(given: HeadNames, argument: str) -> list[str]:
    """A list of the names that were given; a str and a Head are one."""
    if isinstance(given, (str, Head)):
        return [head_name(given)]
    return [text(head_name(one), argument) for one in given]
