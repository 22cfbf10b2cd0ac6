"""Compares the vectors of `multihead embed` with those of sentence-transformers on Multi30k (validation, English) and the
sentences of the English web treebank (dev): every cosine must be at least 0.999999.

    venv/bin/python tests/oracles/minilm_check.py TOOL MODEL DATA
"""

import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
from sentence_transformers import SentenceTransformer


def main():
    tool, folder, data = sys.argv[1:]
    model = SentenceTransformer(folder, device="cpu")
    with gzip.open(f"{data}/multi30k/val.en.gz", "rt", encoding="utf8") as file:
        multi30k = file.read().splitlines()
    with gzip.open(f"{data}/ud-ewt/en_ewt-ud-dev.conllu.gz", "rt", encoding="utf8") as file:
        treebank = [line[len("# text = "):].strip() for line in file if line.startswith("# text = ")]
    # And texts as long as the model reads, and longer.
    long_texts = [" ".join(treebank[i : i + 1 + i % 40]) for i in range(0, len(treebank), 50)]
    for name, lines in (("Multi30k val", multi30k), ("EWT dev", treebank), ("EWT dev, texts of several", long_texts)):
        with tempfile.TemporaryDirectory() as scratch:
            source, target = pathlib.Path(scratch) / "lines", pathlib.Path(scratch) / "vectors.npy"
            source.write_text("".join(line + "\n" for line in lines), encoding="utf8")
            subprocess.run([tool, "embed", folder, "-i", source, "-o", target, "--format", "npy"], check=True)
            found = np.load(target).astype(np.float64)
        expected = model.encode(lines).astype(np.float64)
        cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
        print(f"{name}: {len(lines)} lines, least cosine {cosines.min():.9f}, "
              f"greatest difference {np.abs(found - expected).max():.2e}")
        if not cosines.min() >= 0.999999:
            sys.exit(f"minilm_check: line {cosines.argmin() + 1} of {name}: {lines[cosines.argmin()]}")


if __name__ == "__main__":
    main()
