"""Attention of PyTorch programs on the CPU by the kernel of this library, by one line::

    import multihead.torch

    multihead.torch.install()      # from here on torch.nn.functional.scaled_dot_product_attention is ours on the CPU

Forward and backward; the same results within rounding. What the kernel does not do is computed by torch's own code, with the
same bits as without this module. docs/torch.md says which call takes which way.

`import multihead.torch.transformers` gives one model our attention; `weights`, `outputs`, `patch`, `mute`, `gates` and
`importance` look at heads of a model of transformers and change them while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .._errors import MissingPackageError

try:
    import torch as _torch
except ImportError:
    raise MissingPackageError("multihead.torch: torch is not installed; `pip install torch` gets it") from None
if tuple(int(part) for part in _torch.__version__.split("+")[0].split(".")[:2]) < (2, 9):
    raise MissingPackageError(f"multihead.torch: torch {_torch.__version__} is too old; `pip install -U torch` gets 2.9 or newer")

from . import _override
from ._heads import gates, importance, layers, mute, outputs, patch, weights

__all__ = ["attention", "gates", "importance", "install", "layers", "mute", "outputs", "patch", "uninstall", "weights"]


def install() -> None:
    """Puts our kernel under torch.nn.functional.scaled_dot_product_attention on the CPU, for the whole process.

    It takes torch's number of threads (torch.get_num_threads()) at this moment; `multihead.set_threads` changes it later. What
    torch.compile has compiled before stays as it was compiled. A second call does nothing.
    """
    _override.install()


def uninstall() -> None:
    """Takes the kernel away: torch's own code, or another override that was there, computes again. Twice is once."""
    _override.uninstall()


@contextmanager
def attention() -> Iterator[None]:
    """`install` for a block; what was installed before stays so after it. The whole process sees it, not this thread alone.

    ::

        with multihead.torch.attention():
            loss = model(**batch).loss
            loss.backward()
    """
    was_installed = _override.installed()
    _override.install()
    try:
        yield
    finally:
        if not was_installed:
            _override.uninstall()
