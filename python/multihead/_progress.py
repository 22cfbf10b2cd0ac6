"""Progress of long calls: a function of yours, or a bar."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._errors import MissingPackageError

if TYPE_CHECKING:
    from tqdm import tqdm

Progress = bool | Callable[[int], None]


def bar(what: str, total: int | None = None) -> tqdm[Any]:
    """A bar of tqdm. Raises MissingPackageError without tqdm."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise MissingPackageError("progress=True needs tqdm: pip install tqdm, or give a function that is called instead") from None
    return tqdm(total=total, unit=f" {what}")


@contextlib.contextmanager
def counting(progress: Progress, what: str, total: int | None = None) -> Iterator[Callable[[int], None] | None]:
    """A function that is told how many are done; None: nobody wants to know. True is a bar, which ends with the block."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        with contextlib.closing(bar(what, total)) as shown:

            def show(done: int) -> None:
                shown.update(done - shown.n)

            yield show
