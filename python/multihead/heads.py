"""What the heads of a model do: the analyses of ``multihead heads``, each a table; and directions that steer a model.

::

    import multihead as mh
    model = mh.load("minilm")
    mh.heads.relations(model, trees="en_ewt-ud-dev.conllu").where(relation="obj").sort("score")
    mh.heads.importance(model, lines)[:10]

Texts are a list of str, or a file with one a line (gzip or not) given as ``pathlib.Path``. All analyses but those of attributions
obey ``with model.edit(...)``. Every function raises what loading and reading raise, and UsageError on invalid options. The
pages of docs/heads say what each measure means and what it does not; docs/file-formats.md describes ``table.report``.
"""

from ._heads_circuit import circuit
from ._heads_contributions import contributions
from ._heads_decisions import attribution, faithfulness, lens, patch
from ._heads_importance import importance, pruning_curve
from ._heads_measures import alignment, circuits, compare, relations, similar, stats, where
from ._heads_retrieval import retrieval
from ._heads_steering import direction, steer
from ._steering import Direction

__all__ = [
    "Direction", "alignment", "attribution", "circuit", "circuits", "compare", "contributions", "direction", "faithfulness",
    "importance", "lens", "patch", "pruning_curve", "relations", "retrieval", "similar", "stats", "steer", "where",
]  # fmt: skip
