"""Makes tests/goldens/bert: tiny random models as BertForPreTraining, BertForMaskedLM and BertModel write them, and what
transformers computes with them in double precision, on a padded batch: states, pooled states and logits of words.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/bert_goldens.py [FOLDER]
"""

import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertModel

# Odd and unequal on purpose.
MODELS = {
    "pretraining": (BertForPreTraining, dict(vocab_size=61, max_position_embeddings=67, hidden_size=21,
                                             num_hidden_layers=3, num_attention_heads=3, intermediate_size=31)),
    "masked": (BertForMaskedLM, dict(vocab_size=53, max_position_embeddings=37, hidden_size=20, num_hidden_layers=1,
                                     num_attention_heads=5, intermediate_size=17, type_vocab_size=3,
                                     hidden_act="gelu_new", layer_norm_eps=1e-5)),
    "encoder": (BertModel, dict(vocab_size=43, max_position_embeddings=41, hidden_size=24, num_hidden_layers=2,
                                num_attention_heads=2, intermediate_size=19, hidden_act="relu")),
}


def make(folder, name, kind, sizes):
    torch.manual_seed(sum(map(ord, name)))
    model = kind(BertConfig(attn_implementation="eager", **sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    model = model.double()
    random = np.random.default_rng(11)
    lengths = [1, 2, 27, model.config.max_position_embeddings]
    ids = [random.integers(1, model.config.vocab_size, n) for n in lengths]
    types = [random.integers(0, model.config.type_vocab_size, n) for n in lengths]
    longest = max(lengths)
    padded = lambda rows: torch.tensor(np.array([np.pad(r, (0, longest - len(r))) for r in rows]))
    mask = torch.tensor(np.array([[1] * n + [0] * (longest - n) for n in lengths]))
    with torch.no_grad():
        out = model(input_ids=padded(ids), token_type_ids=padded(types), attention_mask=mask, output_hidden_states=True)
        base = model if kind is BertModel else model.bert
        pooled = base.pooler(out.hidden_states[-1]) if base.pooler is not None else None
    unpadded = lambda t: np.concatenate([t[s, :n].numpy() for s, n in enumerate(lengths)]).astype(np.float32)
    tensors = {"lengths": np.array(lengths), "ids": np.concatenate(ids), "types": np.concatenate(types),
               "states": unpadded(out.hidden_states[-1])}
    if pooled is not None:
        tensors["pooled"] = pooled.numpy().astype(np.float32)
    if kind is BertForMaskedLM:
        tensors["logits"] = unpadded(out.logits)
    if kind is BertForPreTraining:
        tensors["logits"] = unpadded(out.prediction_logits)
    save_file(tensors, folder / f"{name}.golden.safetensors")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "bert"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    for name, (kind, sizes) in MODELS.items():
        make(folder, name, kind, sizes)


if __name__ == "__main__":
    main()
