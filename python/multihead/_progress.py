"""Progress of long calls: a function of yours, or a bar."""

from __future__ import annotations

from collections.abc import Callable

Progress = bool | Callable[[int], None]


def counter(progress: Progress, what: str, total: int | None = None) -> Callable[[int], None] | None:
    """A function that is told how many are done; None: nobody wants to know. True is a bar of tqdm, and needs it."""
    if progress is False:
        return None
    if progress is not True:
        return progress
    from tqdm.auto import tqdm

    bar = tqdm(total=total, unit=f" {what}")

    def show(done: int) -> None:
        bar.update(done - bar.n)
        if total is not None and done >= total:
            bar.close()

    return show
