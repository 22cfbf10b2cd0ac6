"""multihead: trains, runs and looks inside the heads of Transformers on the CPU.

::

    import multihead as mh

    model = mh.demo()                                   # a translator that comes with the package
    model.translate("the small dog sees a cat .")
    with model.edit(mute="encoder.0.self_attention.1"):
        model.translate("the small dog sees a cat .")
    mh.view(model, "the small dog sees a cat .")        # see its heads, in a notebook

    minilm = mh.load("sentence-transformers/all-MiniLM-L6-v2")   # a folder, a .gguf file, or a model of Hugging Face's cache
    minilm.embed(["two dogs run .", "a pair of dogs is running ."])

docs/python.md is the guide.
"""

from . import heads
from ._attention import attention, attention_backward
from ._check import check
from ._edits import At
from ._errors import (
    ArgumentTypeError,
    Error,
    FileError,
    FilePermissionError,
    FormatError,
    InternalError,
    Interrupted,
    MissingFileError,
    MissingPackageError,
    Remark,
    ShapeError,
    UnknownNameError,
    UsageError,
)
from ._measures import Bleu, bleu, geometries, ledger, set_threads
from ._model import Model, convert, demo, load
from ._names import Head
from ._native import threads, version
from ._observation import Gradients, Observation
from ._parameters import HeadWeights, Parameters
from ._results import AlignedTranslation, Label, LabelledToken, Next, NextToken, Tokens, Translation, Word
from ._study import Claim, Clause, Study, studies, study
from ._table import Table
from ._training import Training, train, training_settings
from ._view import Page, view

__version__ = version()

__all__ = [
    "AlignedTranslation", "ArgumentTypeError", "At", "Bleu", "Claim", "Clause", "Error", "FileError", "FilePermissionError",
    "FormatError", "Gradients", "Head", "HeadWeights", "InternalError", "Interrupted", "Label", "LabelledToken",
    "MissingFileError", "MissingPackageError", "Model", "Next", "NextToken", "Observation", "Page", "Parameters", "Remark",
    "ShapeError", "Study", "Table", "Tokens", "Training", "Translation", "UnknownNameError", "UsageError", "Word",
    "__version__", "attention", "attention_backward", "bleu", "check", "convert", "demo", "geometries", "heads", "ledger",
    "load", "set_threads", "studies", "study", "threads", "train", "training_settings", "view",
]  # fmt: skip
