"""Makes tests/goldens/similarities.safetensors: vectors, and how alike they are by each SimilarityFunction of sentence-transformers
in double precision.

  scripts/python torch sentence-transformers safetensors numpy && .venv/bin/python tests/oracles/similarity_goldens.py [FOLDER]
"""

import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SimilarityFunction

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS
    random = np.random.default_rng(19)
    queries, rows = (random.normal(size=(count, 7)).astype(np.float32) for count in (5, 11))
    rows[3] = queries[2]  # the distance is 0
    rows[8] = 0  # the cosine is 0
    tensors = {"queries": queries, "rows": rows}
    for function in SimilarityFunction:
        if function.value not in ("cosine", "dot", "euclidean", "manhattan"):
            continue
        alike = SimilarityFunction.to_similarity_fn(function)
        found = alike(torch.from_numpy(queries).double(), torch.from_numpy(rows).double())
        tensors[function.value] = found.numpy().astype(np.float32)
    save_file(tensors, folder / "similarities.safetensors")


if __name__ == "__main__":
    main()
