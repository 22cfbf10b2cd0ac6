"""Makes tests/goldens/left_out.safetensors: what leaving out each source token costs each target token of some models in
tests/goldens, in double precision, with transformers. A token is left out by a hook that makes its row of what the encoder's first
layer reads 0. Of each model:

    MODEL.ids          [n] the source, its end token last
    MODEL.target       [m] the target, without its end token
    MODEL.differences  [m, n - 1] log p of target token i given the source, less the same without source token j

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/left_out_goldens.py
"""

import pathlib

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

GOLDENS = pathlib.Path(__file__).parent.parent / "goldens"
IDS = [5, 3, 7, 11, 2, 13, 6]
TARGET = [9, 4, 8, 12, 5]
MODELS = {
    "bart/plain": (transformers.BartForConditionalGeneration, lambda model: model.model.encoder.layers[0]),
    "m2m_100/plain": (transformers.M2M100ForConditionalGeneration, lambda model: model.model.encoder.layers[0]),
    "marian/gelu_f16": (transformers.MarianMTModel, lambda model: model.model.encoder.layers[0]),
    "t5/plain": (transformers.T5ForConditionalGeneration, lambda model: model.encoder.block[0]),
}


def main():
    found = {}
    for name, (kind, first_layer) in MODELS.items():
        model = kind.from_pretrained(GOLDENS / name, attn_implementation="eager", dtype=torch.float64).double().eval()
        ids = [*IDS, model.config.eos_token_id]
        start = model.config.decoder_start_token_id
        left_out = None

        def leave_out(module, args):
            rows = args[0].clone()
            if left_out is not None:
                rows[:, left_out] = 0
            return (rows, *args[1:])

        first_layer(model).register_forward_pre_hook(leave_out)

        def log_p():
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[start, *TARGET[:-1]]])).logits[0]
            return logits.log_softmax(-1)[torch.arange(len(TARGET)), TARGET].numpy()

        whole = log_p()
        differences = []
        for left_out in range(len(IDS)):
            differences.append(whole - log_p())
        found[f"{name}.ids"] = np.array(ids, dtype=np.int64)
        found[f"{name}.target"] = np.array(TARGET, dtype=np.int64)
        found[f"{name}.differences"] = np.stack(differences, axis=1).astype(np.float32)
        print(name, np.abs(found[f"{name}.differences"]).max())
    save_file(found, GOLDENS / "left_out.safetensors")


main()
