"""Remarks of the library as warnings of Python."""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import warnings
from collections.abc import Callable

from ._errors import Remark

# Lines of these are nobody's who reads a warning.
_INSIDE = (os.path.dirname(os.path.abspath(__file__)) + os.sep, contextlib.__file__)

# Who hears them in place of Python's warnings: a thread of ours has no line of the user's to point at.
listener: contextvars.ContextVar[Callable[[str], None] | None] = contextvars.ContextVar("listener", default=None)


def remark(line: str) -> None:
    """Warns of a line worth knowing, at the line outside of this package that called it."""
    if (hear := listener.get()) is not None:
        return hear(line)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    return warnings.warn(line, Remark, stacklevel=level)
