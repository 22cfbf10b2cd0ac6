"""Makes tests/goldens/minilm: the tokens, states and vectors that transformers (eager attention) and sentence-transformers
compute in float32 with all-MiniLM-L6-v2 for the lines of lines.txt. Of the states some rows are kept.

    python -m venv venv && venv/bin/pip install torch transformers sentence-transformers
    venv/bin/python tests/oracles/minilm_goldens.py MODEL [FOLDER]      (MODEL: the folder that scripts/models makes)
"""

import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

WORDS = "the small dog sees a cat in old gardens while two birds sing about rain , bread and unbelievably long words .".split()
LINES = [
    "Two dogs run across the field.",
    "A pair of dogs is running over the grass.",
    "The stock market fell by three per cent on Friday.",
    "",
    "Hello",
    "Où est la bibliothèque ? Straße, naïve, Ångström, Łódź.",
    "日本語の文です。 汉字和词语。",
    "emoji 👩‍👩‍👧 and 🇩🇪, a zero\u200bwidth space, and\u00a0others",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "don't can't e.g. U.S.A. 3.14159 1,000,000 -- (brackets) [MASK] [SEP]",
    " ".join(WORDS[i % 21] for i in range(120)),
    " ".join(WORDS[i * i % 21] for i in range(400)),  # cut to 256 tokens
]


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "minilm"
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    sentences = SentenceTransformer(sys.argv[1], device="cpu")
    model = AutoModel.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
    ids, states = [], []
    with torch.no_grad():
        for line in LINES:
            tokens = sentences.tokenizer(line, truncation=True, max_length=256, padding=False)["input_ids"]
            ids.append(tokens)
            states.append(model(input_ids=torch.tensor([tokens])).last_hidden_state[0].numpy())
    lengths = [len(tokens) for tokens in ids]
    begins = np.cumsum([0] + lengths)
    rows = sorted({row for begin, end in zip(begins, begins[1:]) for row in [begin, *range(begin + 7, end, 29), end - 1]})
    (folder / "lines.txt").write_text("".join(line + "\n" for line in LINES), encoding="utf8")
    save_file({"lengths": np.array(lengths), "ids": np.concatenate(ids).astype(np.int64), "rows": np.array(rows),
               "states": np.concatenate(states)[rows], "vectors": sentences.encode(LINES)}, folder / "golden.safetensors")
    print(lengths, len(rows))


if __name__ == "__main__":
    main()
