"""Opens a folder of `multihead convert --precision int8` in transformers, and the same numbers as a folder of float32: outputs must be
equal.

    python -m venv venv && venv/bin/pip install torch transformers compressed-tensors
    multihead convert minilm --out int8 --precision int8 && multihead convert int8 --out numbers --dtype float32
    venv/bin/python tests/oracles/int8_check.py encoder|causal|translator int8 numbers
"""

import sys

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

KINDS = {"encoder": AutoModel, "causal": AutoModelForCausalLM, "translator": AutoModelForSeq2SeqLM}


def main():
    kind, folder, numbers = sys.argv[1:]
    integers = KINDS[kind].from_pretrained(folder, dtype=torch.float32).eval()
    floats = KINDS[kind].from_pretrained(numbers, dtype=torch.float32).eval()
    torch.manual_seed(0)
    ids = torch.randint(5, floats.config.vocab_size, (2, 12))
    more = {"decoder_input_ids": ids[:, :5]} if kind == "translator" else {}
    with torch.no_grad():
        found, expected = integers(input_ids=ids, **more)[0], floats(input_ids=ids, **more)[0]
    difference = (found - expected).abs().max().item()
    print(f"{type(integers).__name__}: largest difference {difference} of {expected.abs().max().item():.3g}")
    if difference != 0:
        sys.exit(1)


main()
