"""Makes tests/goldens/llama, mistral, qwen2 and qwen3: tiny random models as LlamaForCausalLM.save_pretrained (and so on) and
LlamaModel.save_pretrained write them, and the logits and hidden states that transformers computes with them in double precision, sequence by sequence.
(Only the angles of rotary positions are float32 there.)

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/llama_goldens.py [FOLDER]
"""

import shutil

import torch
from causal import make_all, save_golden
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

# Odd and unequal on purpose: two queries for each key, or all for one; heads that are not hidden_size / heads wide.
LLAMA = {
    "tied_grouped": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=10,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=500.0),
    ),
    "untied_biased_linear_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        attention_bias=True,
        mlp_bias=True,
        rms_norm_eps=1e-3,
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.5),
    ),
    "llama3_one_key_f16": dict(
        vocab_size=29,
        max_position_embeddings=137,
        hidden_size=21,
        intermediate_size=31,
        num_hidden_layers=2,
        num_attention_heads=7,
        num_key_value_heads=1,
        head_dim=12,
        tie_word_embeddings=True,
        hidden_act="gelu_pytorch_tanh",
        rope_parameters=dict(
            rope_type="llama3",
            rope_theta=100.0,
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=64,
        ),
    ),
}

MISTRAL = {
    "window": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=6,
        sliding_window=17,
    ),
    "no_window_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        num_key_value_heads=5,
        head_dim=None,
        sliding_window=None,
        rope_parameters=dict(rope_type="default", rope_theta=1000.0),
    ),
}
QWEN2 = {
    "tied": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=3,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=500.0),
    ),
    "window_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        num_key_value_heads=1,
        use_sliding_window=True,
        sliding_window=13,
        max_window_layers=0,
    ),
    "some_windows": dict(
        vocab_size=29,
        max_position_embeddings=131,
        hidden_size=18,
        intermediate_size=23,
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=3,
        use_sliding_window=True,
        sliding_window=11,
        max_window_layers=1,
    ),
}
QWEN3 = {
    "tied": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=10,
        rms_norm_eps=1e-3,
        tie_word_embeddings=True,
    ),
    "biased_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        num_key_value_heads=1,
        head_dim=4,
        attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=500.0),
    ),
}
FAMILIES = {
    "llama": (LLAMA, LlamaConfig, LlamaForCausalLM),
    "mistral": (MISTRAL, MistralConfig, MistralForCausalLM),
    "qwen2": (QWEN2, Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (QWEN3, Qwen3Config, Qwen3ForCausalLM),
}


def make(folder, name, sizes, make_config, make_model):
    torch.manual_seed(sum(map(ord, name)))
    config = make_config(bos_token_id=0, eos_token_id=1, attn_implementation="eager", **sizes)
    model = make_model(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    types = {"bf16": torch.bfloat16, "_f16": torch.float16}
    for parameter in model.parameters():  # and not the angles, which model.to() would round as well
        parameter.data = parameter.data.to(types.get(name[-4:], torch.float32))
    shutil.rmtree(folder / name, ignore_errors=True)
    saved = model.model if "one_key" in name else model  # a tied model needs no head
    saved.save_pretrained(folder / name, max_shard_size="8KB" if name.startswith("untied") else "1GB")
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    save_golden(model.double(), [1, 2, 127, config.max_position_embeddings], folder / f"{name}.golden.safetensors")


if __name__ == "__main__":
    for family, (models, *classes) in FAMILIES.items():
        make_all(models, lambda *which, classes=classes: make(*which, *classes), family)
