"""Makes tests/goldens/FAMILY of the decoders below: tiny random models as their class's save_pretrained writes them, and the
logits and hidden states that transformers computes with them in double precision, sequence by sequence. (Only the angles of rotary
positions are float32 there, and GPT-Neo's scores.)

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/decoder_goldens.py [FOLDER]
"""

import shutil

import torch
import transformers
from causal import make_all, save_golden

# Odd and unequal on purpose.
GPT_NEOX = {
    "parallel": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=30,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=3,
        rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.4),
    ),
    "sequential_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        hidden_act="gelu_new",
        use_parallel_residual=False,
        attention_bias=False,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.5, partial_rotary_factor=1.0),
    ),
}
GPT_NEO = {
    "windows": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=21,
        num_layers=3,
        num_heads=3,
        attention_types=[[["global", "local"], 1], [["local"], 1]],
        window_size=13,
    ),
    "wide_f16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_layers=2,
        num_heads=5,
        attention_types=[[["global"], 2]],
        tie_word_embeddings=False,
    ),
}
OPT = {
    "before": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=21,
        ffn_dim=29,
        num_hidden_layers=2,
        num_attention_heads=3,
        word_embed_proj_dim=21,
    ),
    "after_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        ffn_dim=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        word_embed_proj_dim=20,
        do_layer_norm_before=False,
        enable_bias=False,
        tie_word_embeddings=False,
        activation_function="gelu",
    ),
}
PHI = {
    "plain": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=3,
    ),
    "grouped_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=40,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rope_parameters=dict(rope_type="yarn", rope_theta=300.0, factor=4.0, original_max_position_embeddings=37,
                             partial_rotary_factor=0.4),
    ),
}
PHI3 = {
    "grouped": dict(
        vocab_size=37,
        max_position_embeddings=131,
        original_max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        sliding_window=17,
    ),
    "longrope_bf16": dict(
        vocab_size=31,
        max_position_embeddings=256,
        original_max_position_embeddings=139,
        hidden_size=40,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=4,
        tie_word_embeddings=True,
        rope_parameters=dict(
            rope_type="longrope",
            rope_theta=300.0,
            partial_rotary_factor=0.6,
            short_factor=[1.0, 1.1, 1.25],
            long_factor=[1.0, 2.5, 7.0],
        ),
    ),
}
OLMO2 = {
    "plain": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=3,
        rms_norm_eps=1e-3,
    ),
    "grouped_yarn_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=40,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_bias=True,
        tie_word_embeddings=True,
        rope_parameters=dict(
            rope_type="yarn",
            rope_theta=300.0,
            factor=8.0,
            original_max_position_embeddings=29,
            beta_fast=4.0,
            beta_slow=0.5,
            mscale=1.0,
            mscale_all_dim=0.7,
            truncate=False,
        ),
    ),
}
SMOLLM3 = {
    "some_turn": dict(
        vocab_size=37,
        max_position_embeddings=131,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=3,
        no_rope_layers=[1, 0, 1],
    ),
    "windows_bf16": dict(
        vocab_size=31,
        max_position_embeddings=139,
        hidden_size=20,
        intermediate_size=23,
        num_hidden_layers=2,
        num_attention_heads=5,
        num_key_value_heads=5,
        no_rope_layer_interval=2,
        use_sliding_window=True,
        sliding_window=13,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=False,
        rope_parameters=dict(rope_type="dynamic", rope_theta=300.0, factor=3.0),
    ),
}
GEMMA = dict(
    vocab_size=37,
    max_position_embeddings=131,
    hidden_size=24,
    intermediate_size=29,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=3,
    head_dim=10,
    query_pre_attn_scalar=7,
    sliding_window=17,
)
GEMMA2 = {
    "capped": GEMMA | dict(attn_logit_softcapping=1.5, final_logit_softcapping=3.0),
    "scores_capped_bf16": GEMMA
    | dict(
        vocab_size=31,
        max_position_embeddings=139,
        num_hidden_layers=2,
        num_key_value_heads=1,
        attention_bias=True,
        attn_logit_softcapping=2.5,
        final_logit_softcapping=None,
        layer_types=["full_attention", "sliding_attention"],
    ),
    "logits_capped": GEMMA | dict(num_hidden_layers=2, attn_logit_softcapping=None, tie_word_embeddings=False),
}
GEMMA3 = {
    "plain": GEMMA
    | dict(
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=700.0, factor=2.0),
            sliding_attention=dict(rope_type="default", rope_theta=30.0),
        ),
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "pattern_bf16": GEMMA | dict(vocab_size=31, max_position_embeddings=139, num_hidden_layers=2, sliding_window_pattern=2),
}
FAMILIES = {
    "gemma2": (GEMMA2, "Gemma2Config", "Gemma2ForCausalLM"),
    "gemma3_text": (GEMMA3, "Gemma3TextConfig", "Gemma3ForCausalLM"),
    "gpt_neo": (GPT_NEO, "GPTNeoConfig", "GPTNeoForCausalLM"),
    "gpt_neox": (GPT_NEOX, "GPTNeoXConfig", "GPTNeoXForCausalLM"),
    "olmo2": (OLMO2, "Olmo2Config", "Olmo2ForCausalLM"),
    "opt": (OPT, "OPTConfig", "OPTForCausalLM"),
    "phi": (PHI, "PhiConfig", "PhiForCausalLM"),
    "phi3": (PHI3, "Phi3Config", "Phi3ForCausalLM"),
    "smollm3": (SMOLLM3, "SmolLM3Config", "SmolLM3ForCausalLM"),
}


def make(folder, name, sizes, make_config, make_model):
    torch.manual_seed(sum(map(ord, name)))
    config = getattr(transformers, make_config)(
        bos_token_id=0, eos_token_id=1, pad_token_id=2, attn_implementation="eager", **sizes
    )
    model = getattr(transformers, make_model)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    types = {"bf16": torch.bfloat16, "_f16": torch.float16}
    for parameter in model.parameters():  # and not the angles, which model.to() would round as well
        parameter.data = parameter.data.to(types.get(name[-4:], torch.float32))
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    longest = config.max_position_embeddings
    if "longrope" in name:
        longest = config.original_max_position_embeddings
    save_golden(model.double(), [1, 2, 127, longest], folder / f"{name}.golden.safetensors")


if __name__ == "__main__":
    for family, (models, *classes) in FAMILIES.items():
        make_all(models, lambda *which, classes=classes: make(*which, *classes), family)
