"""Directions that steer a model while they are added to its values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _native
from ._arguments import checked

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray


class Direction:
    """A vector for a site of a model, made by :func:`multihead.heads.direction` or read from a file.

    ::

        with model.edit(add={direction: 4}):       # four times the vector, at every position
            model.generate(text)
    """

    def __init__(self, native: _native.Direction) -> None:
        self._native = native

    @property
    def site(self) -> str:
        """Where it is added: "decoder.12.output"."""
        return self._native.site

    @property
    def head(self) -> int | None:
        """Of a site of heads side by side whose columns these are; None: all."""
        return self._native.head

    @property
    def numbers(self) -> NDArray[np.float32]:
        """A copy of the vector, [columns], e.g. for `add={site: At(numbers)}`, which asks for no model."""
        return self._native.numbers()

    @property
    def length(self) -> float:
        return self._native.length

    @property
    def row_length(self) -> float | None:
        """The mean length of the rows that it was made of; None: not known."""
        return self._native.row_length

    @property
    def made(self) -> str:
        """How, in words."""
        return self._native.made

    @property
    def weights(self) -> str:
        """SHA-256 of the files of the model's weights; it steers no model of other weights. Empty: not known."""
        return self._native.weights

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as a .safetensors file, in one step, which `multihead ... --steer` takes, too."""
        self._native.save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` or ``multihead heads steer --save`` wrote. Raises FileError, and FormatError on another file."""
        return cls(_read(path))

    def __repr__(self) -> str:
        where = self.site if self.head is None else f"{self.site}, head {self.head}"
        return f"<direction at {where}: {self.made or 'given'}; length {self.length:.4g}>"


@checked
def _read(path: str | os.PathLike[str]) -> _native.Direction:
    return _native.read_direction(os.fspath(path))
