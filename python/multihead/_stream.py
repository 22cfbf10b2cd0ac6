"""A text piece by piece, while a thread of its own makes it."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ._remarks import listener, remark

Tell = Callable[[str], bool]  # False: nobody wants more


class _Remark(NamedTuple):
    line: str


class _Maker:
    """A thread that runs make(tell), and what it told."""

    def __init__(self, make: Callable[[Tell], object], context: contextvars.Context, told: int) -> None:
        import queue
        import threading

        self.process = os.getpid()
        self.pieces: queue.SimpleQueue[str | _Remark | BaseException | None] = queue.SimpleQueue()
        self._make = make
        self._told = told  # characters that the reader has already
        self._again = told > 0
        self._left = threading.Event()
        self._thread = threading.Thread(target=context.copy().run, args=(self._work,), daemon=True)
        self._thread.start()

    def _tell(self, piece: str) -> bool:
        known = min(self._told, len(piece))
        self._told -= known
        if known < len(piece):
            self.pieces.put(piece[known:])
        return not self._left.is_set()

    def _hear(self, line: str) -> None:
        if not self._again:
            self.pieces.put(_Remark(line))

    def _work(self) -> None:
        listener.set(self._hear)
        try:
            self._make(self._tell)
            self.pieces.put(None)
        except BaseException as error:  # told to whoever reads the pieces
            self.pieces.put(error)

    def leave(self) -> None:
        if self.process == os.getpid():  # a child of fork() has no such thread
            self._left.set()
            self._thread.join()


def streamed(make: Callable[[Tell], object]) -> Iterator[str]:
    """The pieces that make(tell) tells, as they come, in the context of this call. A reader who leaves ends the work.

    REQUIRES: make() tells the same text each time: in a child of fork() the text is made again, and read on from where it was.
    """
    return _pieces(make, contextvars.copy_context())


def _pieces(make: Callable[[Tell], object], context: contextvars.Context) -> Iterator[str]:
    told = 0
    maker = _Maker(make, context, told)
    try:
        while (piece := maker.pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, _Remark):
                remark(piece.line)
                continue
            told += len(piece)
            yield piece
            if maker.process != os.getpid():
                maker = _Maker(make, context, told)
    finally:
        maker.leave()
