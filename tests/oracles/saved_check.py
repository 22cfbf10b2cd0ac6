"""Opens folders that multihead saved with Hugging Face Transformers and compares with the folders that it read.

saved_check.py FOLDER SAVED [TOLERANCE]: prints the largest difference of logits (of states, where the model predicts no words),
and fails when it is more than TOLERANCE times the largest number (0: they are equal).
"""

import sys

import torch
import transformers


def outputs(folder: str) -> torch.Tensor:
    config = transformers.AutoConfig.from_pretrained(folder)
    name = (config.architectures or [""])[0]
    model = getattr(transformers, name, transformers.AutoModel).from_pretrained(folder, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, config.vocab_size, (2, 7), generator=generator)
    with torch.no_grad():
        result = model(ids)
    return result[0]


def main() -> None:
    given, saved = outputs(sys.argv[1]), outputs(sys.argv[2])
    tolerance = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    difference = (given - saved).abs().max().item()
    print(f"{sys.argv[2]}: largest difference {difference:.3g} of numbers up to {given.abs().max().item():.3g}")
    assert difference <= tolerance * given.abs().max().item()


main()
