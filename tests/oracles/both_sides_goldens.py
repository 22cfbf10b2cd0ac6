"""Makes tests/goldens/FAMILY/NAME.both_sides.golden.safetensors: the states that transformers computes in double precision with the
decoders of decoder_goldens.py and llama_goldens.py when config.json says that tokens see those behind them, too.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/both_sides_goldens.py [FOLDER]
"""

import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens"
GEMMA, NO_MASK = {"use_bidirectional_attention": True}, {"is_causal": False}
# Longer than twice each window.
LENGTHS = (1, 2, 53)
MODELS = {
    "gemma3_text/plain": {"gemma": GEMMA, "causal": NO_MASK, "both": GEMMA | NO_MASK},
    "gemma2/capped": {"causal": NO_MASK},
    "llama/tied_grouped": {"causal": NO_MASK},
    "mistral/window": {"causal": NO_MASK},
    "olmo2/plain": {"causal": NO_MASK},
    "phi3/grouped": {"causal": NO_MASK},
    "qwen2/some_windows": {"causal": NO_MASK},
    "qwen3/tied": {"causal": NO_MASK},
    "smollm3/windows_bf16": {"causal": NO_MASK},
}


def states(original, change, sequences, folder):
    """Of a copy whose config.json says this, too."""
    shutil.copytree(original, folder, dirs_exist_ok=True)
    config = json.loads((original / "config.json").read_text()) | change
    (folder / "config.json").write_text(json.dumps(config))
    found = []
    # Both ways to attend must agree, since one of them makes no mask where none is needed.
    for how in ("eager", "eager" if config["model_type"] == "gemma2" else "sdpa"):
        model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float64, attn_implementation=how).eval()
        with torch.no_grad():
            found.append(np.concatenate([model(torch.tensor(ids)[None]).last_hidden_state[0].numpy() for ids in sequences]))
    assert np.abs(found[0] - found[1]).max() < 1e-5, (original, change)
    return found[0].astype(np.float32)


def main():
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    random = np.random.default_rng(11)
    for name, changes in MODELS.items():
        folder = HERE / name
        vocabulary = transformers.AutoConfig.from_pretrained(folder).vocab_size
        sequences = [random.integers(0, vocabulary, n) for n in LENGTHS]
        tensors = {"ids": np.concatenate(sequences).astype(np.int64), "lengths": np.array(LENGTHS, dtype=np.int64)}
        for what, change in changes.items():
            with tempfile.TemporaryDirectory() as scratch:
                tensors[what] = states(folder, change, sequences, pathlib.Path(scratch))
        file = to / f"{name}.both_sides.golden.safetensors"
        file.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, file)


if __name__ == "__main__":
    main()
