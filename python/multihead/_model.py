"""Models: load one, and ask it."""

from __future__ import annotations

import os
from typing import Any, Literal

from . import _native
from ._arguments import checked
from ._errors import FormatError
from ._facts import Precision
from ._folders import model_path
from ._inside import Inside
from ._names import HeadNames, listed
from ._next import NextTokens
from ._parameters import Numbers
from ._remarks import remark
from ._texts import TextTasks


class Model(TextTasks, NextTokens, Inside, Numbers):
    """A Transformer of any family that multihead reads, loaded by :func:`load` or :func:`demo`.

    Each method takes one text or a list of texts, and returns one result or a list. Any number of threads may use a model at
    once. Numbers are float32. A method that this kind of model does not have raises UsageError that says what it can do.
    Texts that are too long are cut, and words that the tokenizer does not know counted; a ``multihead.Remark`` warning says so.
    A pickled model is where it was read from, and is read from there again (docs/python.md).
    """

    def __reduce__(self) -> Any:
        opened = self._native
        return _reopened, (opened.place, opened.precision, opened.weights, opened.removed, self._name)

    def __copy__(self) -> Model:
        return Model(self._native, self._name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.__copy__()  # nothing in it changes

    @checked
    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        dtype: Literal["float32", "bfloat16"] = "float32",
        own_format: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Writes the model as a folder, in one step: nothing half is ever there. Transformers opens it if it has such a class.
        Where heads were pruned and its config.json says so by ``pruned_heads``, Transformers 4 opens it and 5 does not; a
        ``multihead.Remark`` warning says so. An older folder of that name that multihead wrote is replaced.

        Args:
            dtype: how parameters are written.
            own_format: allow heads that the family's config.json cannot say; such a folder multihead opens and Transformers
                does not.
            overwrite: allow to replace a model's folder that multihead did not write.
        """
        self._native.save(os.fspath(folder), dtype, own_format, overwrite)

    @checked
    def prune(self, heads: HeadNames) -> Model:
        """The same model without these heads (names or patterns), which gives what this one gives with them muted; `save` it.
        docs/heads/prune.md says which heads have to stay."""
        names = listed(heads, "heads")
        return Model(self._native.pruned(names), f"{self._name}, pruned")


def _reopened(place: str, precision: str, weights: str, removed: list[str], name: str) -> Model:
    """A model that was pickled. Raises MissingFileError where it is gone, FormatError on other weights."""
    native = _native.Model(place, precision)
    if native.weights != weights:
        hashes = f"(SHA-256 {native.weights[:12]}...) than the model that was pickled ({weights[:12]}...)"
        raise FormatError(f"{place} has other weights {hashes}; load it again")
    return Model(native.pruned(removed) if removed else native, name)


@checked
def load(folder: str | os.PathLike[str], *, precision: Precision = "same") -> Model:
    """Loads a model: a folder of Transformers, sentence-transformers or multihead, a .gguf file, "demo", or the name of a model in
    Hugging Face's local cache such as "sentence-transformers/all-MiniLM-L6-v2". Nothing is downloaded, and weights stay in their
    files, which are mapped into memory. What is worth knowing of the folder, such as tensors that are not read, is a
    ``multihead.Remark`` warning.

    Args:
        precision: how exactly products with weights are computed (docs/precision.md): "same", float32 on the numbers of the file;
            "near" rounds their inputs to 16 bits and "fast" to 8, which takes less time. "near:float32" and the like name the
            kernel, one that this machine has.

    Raises:
        MissingFileError (a FileNotFoundError): there is no such folder, or a file of it is missing.
        FormatError (a ValueError): another architecture, or a damaged file.
    """
    name = os.fspath(folder)
    native = _native.Model(model_path(folder), precision)
    for line in native.remarks:
        remark(line)
    return Model(native, os.path.basename(os.path.normpath(name)) or name)


@checked
def demo(*, precision: Precision = "same") -> Model:
    """The translator that comes with multihead: English to German, 630,688 parameters, 24 heads. precision: as of :func:`load`."""
    return Model(_native.Model("demo", precision), "demo")


@checked
def convert(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    dtype: Literal["float32", "bfloat16"] = "float32",
    overwrite: bool = False,
) -> None:
    """Writes a model that `load` takes, such as a .gguf file, as a folder that Transformers opens. Heads of another geometry are
    made by the tool: ``multihead convert --help``. overwrite: allow to replace a model's folder that multihead did not write."""
    load(source).save(folder, dtype=dtype, overwrite=overwrite)
