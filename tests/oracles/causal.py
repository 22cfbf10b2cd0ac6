"""What the goldens of causal models have in common: the logits and hidden states of a few random sequences."""

import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file


def save_golden(model, lengths, file):
    """Runs the model on sequences of these lengths, one by one: ids, states and logits end to end."""
    random = np.random.default_rng(7)
    tensors = {"lengths": np.array(lengths, dtype=np.int64)}
    ids = [random.integers(0, model.config.vocab_size, n) for n in lengths]
    tensors["ids"] = np.concatenate(ids).astype(np.int64)
    states, logits = [], []
    for sequence in ids:
        with torch.no_grad():
            out = model(torch.tensor(sequence)[None], output_hidden_states=True)
        states.append(out.hidden_states[-1][0].numpy())
        logits.append(out.logits[0].numpy())
    tensors["states"] = np.concatenate(states).astype(np.float32)
    tensors["logits"] = np.concatenate(logits).astype(np.float32)
    save_file(tensors, file)


def make_all(models, make, goldens):
    """make(folder, name, sizes) for each of the models, in FOLDER/GOLDENS; FOLDER: tests/goldens, or what is given."""
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens"
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here) / goldens
    folder.mkdir(parents=True, exist_ok=True)
    for name, sizes in models.items():
        make(folder, name, sizes)
