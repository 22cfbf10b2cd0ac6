"""Arguments that are one text or several."""

from __future__ import annotations

from collections.abc import Iterable


def listed(given: str | Iterable[str]) -> list[str]:
    """A list of what was given; a str is one."""
    return [given] if isinstance(given, str) else list(given)
