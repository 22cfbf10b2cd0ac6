"""Makes tests/goldens/gpt2: tiny random models as GPT2LMHeadModel.save_pretrained and GPT2Model.save_pretrained write
them, and the logits and hidden states that transformers computes with them in double precision, sequence by sequence.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/gpt2_goldens.py [FOLDER]
"""

import shutil

import torch
from causal import make_all, save_golden
from transformers import GPT2Config, GPT2LMHeadModel

# Odd and unequal on purpose: heads of 7, 5 and 3; feed-forward layers that are not 4 times as wide.
MODELS = {
    "tied": dict(vocab_size=61, n_positions=67, n_embd=21, n_layer=3, n_head=3),
    "untied_shards_bf16": dict(
        vocab_size=53,
        n_positions=37,
        n_embd=20,
        n_layer=2,
        n_head=4,
        n_inner=31,
        activation_function="gelu",
        tie_word_embeddings=False,
        scale_attn_by_inverse_layer_idx=True,
        layer_norm_epsilon=1e-3,
    ),
    "no_prefix": dict(vocab_size=43, n_positions=41, n_embd=15, n_layer=2, n_head=5, scale_attn_weights=False),
}


def make(folder, name, sizes):
    torch.manual_seed(sum(map(ord, name)))
    config = GPT2Config(bos_token_id=0, eos_token_id=1, attn_implementation="eager", **sizes)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    if name.endswith("bf16"):
        model = model.to(torch.bfloat16)
    shutil.rmtree(folder / name, ignore_errors=True)
    if name == "no_prefix":
        model.transformer.save_pretrained(folder / name)
    else:
        model.save_pretrained(folder / name, max_shard_size="8KB" if "shards" in name else "1GB")
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    save_golden(model.double(), [1, 2, 27, config.n_positions], folder / f"{name}.golden.safetensors")


if __name__ == "__main__":
    make_all(MODELS, make, "gpt2")
