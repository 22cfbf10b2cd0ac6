"""Makes tests/goldens/config_keys: what each key of config.json does in transformers.

For each family a tiny random model (FAMILY.safetensors, bfloat16) and FAMILY.json: its config.json, tokens to read, the last
row of the states and logits that transformers computes in double precision, and a list of keys: every field of the family's
configuration class and of PretrainedConfig, and further ones that files have. Each key is set alone to another value:

    {"key": ..., "value": ..., "becomes": ..., "numbers": [...]}

`numbers` is there when transformers opens the folder and gives others; "same" stands for those of the config.json itself, and
"not opened" for an error of transformers, or weights that do not fit. `becomes` says what multihead makes of it: obeyed, changes
nothing, refused, remarked, opened here alone (transformers fails); tests/folders/families/config_keys_test.cpp compares. It is kept
from the list that is there already; fill in what a new key becomes.

    venv/bin/python tests/oracles/config_keys_goldens.py [FOLDER [FAMILY ...]]
"""

import dataclasses
import json
import logging
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.configuration_utils import PreTrainedConfig

TOKENS = [5, 17, 3, 11, 23, 7, 19]
SOURCE, TARGET = [5, 17, 3, 11], [23, 7, 19]

ENCODER = dict(
    vocab_size=29,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=7,
    max_position_embeddings=13,
    layer_norm_eps=1e-3,
)
DECODER = dict(
    vocab_size=29,
    hidden_size=12,
    intermediate_size=7,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=17,
    rms_norm_eps=1e-3,
    bos_token_id=0,
    eos_token_id=1,
    rope_parameters=dict(rope_type="default", rope_theta=30.0),
)
PLAIN = dict(rope_type="default", rope_theta=30.0)
GEMMA = DECODER | dict(head_dim=6, query_pre_attn_scalar=5, sliding_window=4)
LAYER_NORMED = dict(
    vocab_size=29,
    hidden_size=12,
    intermediate_size=7,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=17,
    layer_norm_eps=1e-3,
    bos_token_id=0,
    eos_token_id=1,
)
TRANSLATOR = dict(
    vocab_size=29,
    d_model=12,
    encoder_layers=2,
    decoder_layers=1,
    encoder_attention_heads=3,
    decoder_attention_heads=2,
    encoder_ffn_dim=7,
    decoder_ffn_dim=11,
    max_position_embeddings=13,
)
T5 = dict(
    vocab_size=29,
    d_model=12,
    d_kv=5,
    d_ff=7,
    num_layers=2,
    num_decoder_layers=1,
    num_heads=3,
    relative_attention_num_buckets=4,
    relative_attention_max_distance=3,
    layer_norm_epsilon=1e-3,
    decoder_start_token_id=3,
)
DECODERS = {
    "bart", "m2m_100", "mbart", "mt5", "t5", "umt5", "gemma2", "gemma3_text", "gpt2", "gpt_neo", "gpt_neox", "llama", "marian", "mistral", "olmo2", "opt", "phi", "phi3", "qwen2",
    "qwen3", "smollm3",
}  # fmt: skip
# Family: names of classes, sizes. The models of a kind have the same weights file where they can.
FAMILIES = {
    "bert": ("BertConfig", "BertForMaskedLM", ENCODER),
    "roberta": ("RobertaConfig", "RobertaForMaskedLM", ENCODER | dict(type_vocab_size=1)),
    "camembert": ("CamembertConfig", "CamembertForMaskedLM", ENCODER | dict(type_vocab_size=1)),
    "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaForMaskedLM", ENCODER | dict(type_vocab_size=1)),
    "mpnet": ("MPNetConfig", "MPNetForMaskedLM", ENCODER),
    "deberta-v2": (
        "DebertaV2Config",
        "DebertaV2ForMaskedLM",
        ENCODER
        | dict(
            type_vocab_size=2,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            share_att_key=True,
            position_buckets=4,
            max_relative_positions=9,
            norm_rel_ebd="layer_norm",
        ),
    ),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        dict(vocab_size=29, dim=12, n_layers=2, n_heads=3, hidden_dim=7, max_position_embeddings=13),
    ),
    "electra": ("ElectraConfig", "ElectraForMaskedLM", ENCODER | dict(embedding_size=10)),
    "nomic_bert": ("NomicBertConfig", "NomicBertForMaskedLM", ENCODER | dict(rope_parameters=PLAIN)),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertForMaskedLM",
        dict(
            vocab_size=29,
            hidden_size=12,
            intermediate_size=7,
            num_hidden_layers=3,
            num_attention_heads=3,
            max_position_embeddings=17,
            norm_eps=1e-3,
            local_attention=4,
            pad_token_id=2,
            bos_token_id=0,
            cls_token_id=0,
            eos_token_id=1,
            sep_token_id=1,
        ),
    ),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        dict(
            vocab_size=29,
            n_positions=17,
            n_embd=12,
            n_layer=2,
            n_head=3,
            n_inner=7,
            layer_norm_epsilon=1e-3,
            bos_token_id=0,
            eos_token_id=1,
        ),
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", DECODER),
    "mistral": ("MistralConfig", "MistralForCausalLM", DECODER | dict(sliding_window=4)),
    "qwen2": (
        "Qwen2Config",
        "Qwen2ForCausalLM",
        DECODER | dict(use_sliding_window=True, sliding_window=4, max_window_layers=1),
    ),
    "qwen3": (
        "Qwen3Config",
        "Qwen3ForCausalLM",
        DECODER | dict(use_sliding_window=True, sliding_window=4, max_window_layers=1, head_dim=6),
    ),
    # Without soft caps, which change the numbers: their rows set them.
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        GEMMA | dict(rope_parameters=PLAIN, attn_logit_softcapping=None, final_logit_softcapping=None),
    ),
    "gemma3_text": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        GEMMA
        | dict(
            rope_parameters=dict(full_attention=PLAIN, sliding_attention=PLAIN | dict(rope_theta=70.0)),
            layer_types=["sliding_attention", "full_attention"],
        ),
    ),
    "gpt_neo": (
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        dict(
            vocab_size=29,
            max_position_embeddings=17,
            hidden_size=12,
            num_layers=2,
            num_heads=3,
            attention_types=[[["global", "local"], 1]],
            window_size=4,
            intermediate_size=7,
            layer_norm_epsilon=1e-3,
            bos_token_id=0,
            eos_token_id=1,
        ),
    ),
    "gpt_neox": (
        "GPTNeoXConfig",
        "GPTNeoXForCausalLM",
        LAYER_NORMED | dict(rope_parameters=PLAIN | dict(partial_rotary_factor=0.5), hidden_size=24, num_attention_heads=3),
    ),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", DECODER),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        dict(
            vocab_size=29,
            max_position_embeddings=17,
            hidden_size=12,
            ffn_dim=7,
            num_hidden_layers=2,
            num_attention_heads=3,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=2,
        ),
    ),
    "phi": (
        "PhiConfig",
        "PhiForCausalLM",
        LAYER_NORMED | dict(rope_parameters=PLAIN | dict(partial_rotary_factor=0.75), hidden_size=16, num_key_value_heads=1),
    ),
    "phi3": (
        "Phi3Config",
        "Phi3ForCausalLM",
        DECODER | dict(sliding_window=4, original_max_position_embeddings=17, pad_token_id=2),
    ),
    "smollm3": (
        "SmolLM3Config",
        "SmolLM3ForCausalLM",
        DECODER | dict(use_sliding_window=True, sliding_window=4, no_rope_layers=[1, 0], pad_token_id=2, layer_types=None),
    ),
    "bart": ("BartConfig", "BartForConditionalGeneration", TRANSLATOR),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", TRANSLATOR | dict(decoder_start_token_id=3)),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", TRANSLATOR),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", T5),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5),
    "umt5": ("UMT5Config", "UMT5ForConditionalGeneration", T5),
    "marian": (
        "MarianConfig",
        "MarianMTModel",
        TRANSLATOR | dict(pad_token_id=2, eos_token_id=0, decoder_start_token_id=2),
    ),
}

LINEAR = dict(rope_type="linear", rope_theta=30.0, factor=2.0)
UNKNOWN = dict(rope_type="proportional", rope_theta=30.0, factor=2.0)
DYNAMIC = dict(rope_type="dynamic", rope_theta=30.0, factor=2.0)
LONG = dict(
    rope_type="longrope",
    rope_theta=30.0,
    factor=2.0,
    original_max_position_embeddings=8,
    short_factor=[1.0, 1.5, 2.5],
    long_factor=[1.0, 3.0, 9.0],
)
YARN = dict(rope_type="yarn", rope_theta=30.0, factor=2.0, original_max_position_embeddings=8)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=30.0,
    factor=4.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=8,
)
# Other values, where that of `other()` would not do.
VALUES = {
    "architectures": ["SomethingElse"],
    "dtype": "float16",
    "chunk_size_feed_forward": 1,
    "problem_type": "regression",
    "id2label": {"0": "a", "1": "b", "2": "c"},
    "label2id": {"a": 0, "b": 1, "c": 2},
    "transformers_version": "4.0.0",
    "classifier_dropout": 0.5,
    "pad_token_id": 4,
    "bos_token_id": 6,
    "eos_token_id": 8,
    "cls_token_id": 6,
    "sep_token_id": 8,
    "decoder_start_token_id": 6,
    "forced_eos_token_id": 8,
    "hidden_act": "relu",
    "hidden_activation": "relu",
    "activation": "relu",
    "activation_function": "relu",
    "classifier_activation": "relu",
    "classifier_pooling": "mean",
    "summary_type": "last",
    "summary_activation": "tanh",
    "hidden_size": 18,
    "n_embd": 18,
    "dim": 18,
    "d_model": 18,
    "num_attention_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 3,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "layer_norm_eps": 0.5,
    "layer_norm_epsilon": 0.5,
    "rms_norm_eps": 0.5,
    "norm_eps": 0.5,
    "initializer_range": 0.5,
    "init_std": 0.5,
    "vocab_size": 31,
    "decoder_vocab_size": 31,
    "sliding_window": 2,
    "local_attention": 2,
    "max_window_layers": 0,
    "attn_logit_softcapping": 2.0,
    "final_logit_softcapping": 3.0,
    "word_embed_proj_dim": 6,
    "use_bidirectional_attention": True,
    "query_pre_attn_scalar": 11,
    "relative_attention_num_buckets": 16,
    "rope_parameters": LLAMA3,
}
# Keys that no field of a class is, but that files have, or that transformers looks at.
EVERYWHERE = {
    "torch_dtype": "float16",
    "_name_or_path": "somewhere",
    "is_causal": None,  # set below
    "use_bidirectional_attention": True,
    "position_embedding_type": "relative_key",
    "per_layer_config": {"1": {"intermediate_size": 7, "hidden_act": "relu", "layer_norm_eps": 0.5}},
    "quantization_config": {"quant_method": "awq", "bits": 4},
    "num_beams": 4,
    "x_y": 3,
}
ROPE = {
    "rope_theta": 500.0,
    "partial_rotary_factor": 0.5,
    "original_max_position_embeddings": 4,
    "rope_interleaved": True,
    "attn_logit_softcapping": 5.0,
}
WINDOWED = {"layer_types": ["sliding_attention", "full_attention"]}
ROPE_TYPES = {
    "rope_scaling": LINEAR,
    "rope_parameters (yarn)": YARN,
    "rope_parameters (dynamic)": DYNAMIC,
    "rope_parameters (longrope)": LONG,
    "rope_parameters (proportional)": UNKNOWN,
    "rope_parameters (part)": PLAIN | dict(partial_rotary_factor=0.5),
    "rope_parameters (null)": None,
}
# The same where a part of a head's numbers turn.
PART_TYPES = {key: value and {"partial_rotary_factor": 0.75, **value} for key, value in ROPE_TYPES.items()} | {
    "rope_parameters (no part)": PLAIN
}
# Null for a key that has a value.
NULLS = {"sliding_window (null)": None, "pad_token_id (null)": None}
BART = {
    "hidden_size": 18,
    "num_attention_heads": 4,
    "normalize_before": True,
    "normalize_embedding": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 3,
    "force_bos_token_to_be_generated": True,
    "decoder_vocab_size": 31,
}
OF_T5 = {
    "hidden_size": 18,
    "num_attention_heads": 5,
    "num_hidden_layers": 3,
    "head_dim": 4,
    "n_positions": 11,
    "decoder_start_token_id": 6,
    "tie_word_embeddings": False,
    "relative_attention_max_distance": 40,
    "output_past": True,
    "dense_act_fn": "silu",
    "is_gated_act (other)": True,
    "scale_decoder_outputs": False,
    "feed_forward_proj (gelu)": "gelu",
    "num_decoder_layers (null)": None,
}
MORE = {
    "t5": OF_T5,
    "mt5": OF_T5 | {"is_gated_act (other)": False},
    "umt5": OF_T5 | {"is_gated_act (other)": False},
    "bart": BART,
    "mbart": BART | {"normalize_before": False},
    "m2m_100": BART
    | {"normalize_before": False, "normalize_embedding": True, "static_position_embeddings": False, "pad_token_id (null)": None},
    "deberta-v2": {
        "share_att_key": False,
        "position_buckets": 6,
        "norm_rel_ebd": "none",
        "pos_att_type (one)": ["c2p"],
        "pos_att_type (text)": " P2C | c2p ",
        "pos_att_type (null)": None,
        "embedding_size": 18,
        "attention_head_size": 5,
        "pooler_hidden_size": 18,
        "conv_kernel_size": 3,
        "conv_act": "gelu",
        "conv_groups": 2,
        "cls_dropout": 0.25,
        "is_decoder": True,
    },
    "distilbert": {"hidden_size": 18, "num_attention_heads": 2, "is_decoder": True},
    "gpt2": {"hidden_size": 18, "num_attention_heads": 2, "n_ctx": 5},
    "marian": {
        "hidden_size": 18,
        "num_attention_heads": 4,
        "normalize_before": True,
        "normalize_embedding": True,
        "static_position_embeddings": False,
    },
    "modernbert": {
        "global_attn_every_n_layers": 2,
        "global_rope_theta": 30.0,
        "local_rope_theta": 30.0,
        "sliding_window": 1,
        "rope_scaling": dict(rope_type="linear", factor=2.0),
        "is_decoder": True,
        "rope_parameters (flat yarn)": YARN,
        "rope_parameters (nested yarn)": {"full_attention": YARN},
        "rope_parameters (nested linear)": {
            "full_attention": dict(rope_type="linear", rope_theta=30.0, factor=2.0),
            "sliding_attention": dict(rope_type="default", rope_theta=70.0),
        },
        "rope_parameters (null)": {"full_attention": None, "sliding_attention": None},
    },
    # The last ones are those of nomic's own code, which the class of transformers does not read.
    "nomic_bert": ROPE
    | ROPE_TYPES
    | {
        "is_decoder": True,
        "tie_word_embeddings": False,
        "pad_token_id (null)": None,
        "auto_map": {},
        "n_embd": 18,
        "n_head": 2,
        "n_layer": 3,
        "n_inner": 256,
        "n_positions": 29,
        "activation_function": "geglu",
        "layer_norm_epsilon": 0.5,
        "rotary_emb_base": 500,
        "rotary_scaling_factor": 2,
        "max_trained_positions": 11,
        "pad_vocab_size_multiple": 64,
        "causal": True,
        "prenorm": True,
        "parallel_block": True,
        "parallel_block_tied_norm": True,
        "use_rms_norm": True,
        "qkv_proj_bias": True,
        "mlp_fc1_bias": True,
        "mlp_fc2_bias": True,
        "norm_mlp": True,
        "rotary_emb_fraction": 0.5,
        "rotary_emb_interleaved": True,
        "rotary_emb_scale_base": 512,
        "rotary_head_dim": True,
        "num_heads_kv": 1,
        "moe_every_n_layers": 2,
        "scale_attn_weights": False,
        "scale_attn_by_inverse_layer_idx": True,
        "reorder_and_upcast_attn": True,
        "dense_seq_output": False,
        "fused_bias_fc": True,
        "fused_dropout_add_ln": True,
        "use_flash_attn": True,
        "use_xentropy": True,
        "add_pooling_layer": True,
        "summary_type": "last",
        "attn_pdrop": 0.5,
        "embd_pdrop": 0.5,
        "resid_pdrop": 0.5,
    },
    "gemma2": ROPE | ROPE_TYPES | NULLS | {"hidden_act": "relu", "sliding_window_pattern": 3, "layer_types (null)": None},
    "gemma3_text": ROPE
    | NULLS
    | {
        "hidden_act": "relu",
        "sliding_window_pattern": 2,
        "_sliding_window_pattern": 2,
        "rope_local_base_freq": 500.0,
        "rope_scaling": dict(rope_type="linear", factor=2.0),
        "rope_parameters (null)": None,
        "rope_parameters (flat)": PLAIN,
        "rope_parameters (full alone)": {"full_attention": PLAIN},
        "rope_parameters (yarn)": {"full_attention": YARN, "sliding_attention": PLAIN | dict(rope_theta=70.0)},
        "rope_parameters (part)": {
            "full_attention": PLAIN | dict(partial_rotary_factor=0.5),
            "sliding_attention": PLAIN | dict(rope_theta=70.0),
        },
        "rope_parameters (proportional)": {"full_attention": UNKNOWN, "sliding_attention": PLAIN},
        "layer_types (null)": None,
    },
    "gpt_neo": {
        "num_attention_heads": 2,
        "num_hidden_layers": 3,
        "attention_layers": ["local", "global"],
        "attention_types (null)": None,
        "intermediate_size (null)": None,
        "pad_token_id (null)": None,
        "attention_bias": True,
    },
    "gpt_neox": ROPE | PART_TYPES | {"rotary_pct": 1.0, "rotary_emb_base": 500.0, "head_dim": 6, "num_key_value_heads": 1},
    "olmo2": ROPE
    | ROPE_TYPES
    | WINDOWED
    | {"mlp_bias": True, "head_dim": 4, "sliding_window": 2, "pad_token_id (null)": None, "clip_qkv": 0.1},
    "opt": {
        "pad_token_id (null)": None,
        "word_embed_proj_dim (null)": None,
        "intermediate_size": 9,
        "layer_norm_eps": 0.5,
        "attention_bias": False,
    },
    "phi": ROPE | PART_TYPES | {"head_dim": 16, "attention_bias": True, "pad_token_id (null)": None, "sliding_window": 2},
    "phi3": ROPE
    | ROPE_TYPES
    | WINDOWED
    | NULLS
    | {
        "head_dim": 4,
        "attention_bias": True,
        "mlp_bias": True,
        "rope_scaling (longrope)": LONG,
        "rope_parameters (yarn longrope)": LONG | dict(rope_type="yarn", original_max_position_embeddings=17),
        "rope_parameters (long)": LONG | dict(original_max_position_embeddings=17),
    },
    "smollm3": ROPE
    | ROPE_TYPES
    | NULLS
    | {
        "head_dim": 4,
        "max_window_layers": 0,
        "layer_types (null)": None,
        "no_rope_layers (null)": None,
        "no_rope_layers (short)": [1],
    },
    "llama": ROPE | WINDOWED | {"sliding_window": 2, "rope_parameters (yarn)": YARN},
    "mistral": ROPE | WINDOWED | {"attention_bias": True, "mlp_bias": True, "rope_parameters (yarn)": YARN},
    "qwen2": ROPE | {"attention_bias": False, "mlp_bias": True, "head_dim": 6, "rope_parameters (yarn)": YARN},
    "qwen3": ROPE
    | {
        "mlp_bias": True,
        "rope_parameters (yarn)": YARN,
        "rope_parameters (nested)": {"full_attention": dict(rope_type="default", rope_theta=30.0)},
    },
}
FOR_FAMILY = {
    ("t5", "feed_forward_proj"): "silu",
    ("mt5", "feed_forward_proj"): "gated-silu",
    ("umt5", "feed_forward_proj"): "gated-silu",
    ("modernbert", "rope_parameters"): {
        "full_attention": dict(rope_type="default", rope_theta=30.0),
        "sliding_attention": dict(rope_type="default", rope_theta=70.0),
    },
    ("modernbert", "layer_types"): ["sliding_attention", "full_attention", "full_attention"],
    ("modernbert", "num_attention_heads"): 2,
    ("bert", "num_attention_heads"): 2,
    ("roberta", "num_attention_heads"): 2,
    ("camembert", "num_attention_heads"): 2,
    ("xlm-roberta", "num_attention_heads"): 2,
    ("mpnet", "num_attention_heads"): 2,
    ("deberta-v2", "num_attention_heads"): 2,
    ("deberta-v2", "pos_att_type"): ["p2c"],
    ("deberta-v2", "pooler_hidden_act"): "relu",
    ("electra", "num_attention_heads"): 2,
    ("nomic_bert", "num_attention_heads"): 2,
    ("nomic_bert", "head_dim"): 6,
    ("gpt2", "n_head"): 2,
    ("distilbert", "n_heads"): 2,
    ("qwen2", "hidden_size"): 24,
    ("qwen2", "num_attention_heads"): 6,
    ("qwen2", "layer_types"): ["sliding_attention", "full_attention"],
    ("gemma2", "layer_types"): ["full_attention", "sliding_attention"],
    ("gemma3_text", "layer_types"): ["full_attention", "sliding_attention"],
    ("gemma3_text", "rope_parameters"): {"full_attention": LLAMA3, "sliding_attention": PLAIN},
    ("gpt_neo", "attention_types"): [[["local", "global"], 1]],
    ("gpt_neo", "num_heads"): 2,
    ("gpt_neox", "num_attention_heads"): 2,
    ("gpt_neox", "rope_parameters"): LLAMA3 | dict(partial_rotary_factor=0.5),
    ("gpt_neox", "hidden_size"): 48,
    ("olmo2", "hidden_size"): 24,
    ("olmo2", "num_attention_heads"): 6,
    ("phi", "hidden_size"): 32,
    ("phi", "num_attention_heads"): 1,
    ("phi3", "hidden_size"): 24,
    ("phi3", "num_attention_heads"): 6,
    ("smollm3", "hidden_size"): 24,
    ("smollm3", "num_attention_heads"): 6,
    ("opt", "num_attention_heads"): 2,
    ("opt", "activation_function"): "gelu",
    ("m2m_100", "activation_function"): "gelu",
    ("phi", "rope_parameters"): LLAMA3 | dict(partial_rotary_factor=0.75),
    ("phi3", "original_max_position_embeddings"): 4,
    ("phi3", "rope_parameters"): dict(
        rope_type="longrope", rope_theta=30.0, short_factor=[1.0, 1.5, 2.5], long_factor=[1.0, 3.0, 9.0]
    ),
    ("smollm3", "layer_types"): ["sliding_attention", "full_attention"],
    ("smollm3", "no_rope_layers"): [0, 1],
    ("qwen3", "layer_types"): ["sliding_attention", "full_attention"],
}


def other(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.25 if value != 0.25 else 0.5
    raise ValueError(f"give another value than {value!r} in VALUES")


def keys_of(family, config_class, config):
    """(key, value) of all that are changed."""
    base = {field.name: field.default for field in dataclasses.fields(PreTrainedConfig)}
    fields = {field.name: field.default for field in dataclasses.fields(config_class)} | base
    keys = {}
    for name, default in fields.items():
        if (family, name) in FOR_FAMILY:
            keys[name] = FOR_FAMILY[family, name]
        elif name in VALUES:
            keys[name] = VALUES[name]
        else:
            value = config.get(name, default)
            keys[name] = other(default if value is None else value)
    keys |= EVERYWHERE | MORE.get(family, {})
    keys["is_causal"] = family not in DECODERS
    return sorted(keys.items())


def numbers_of(folder, model_class, dtype=torch.float64):
    """The last rows of states and logits, or an error."""
    try:
        model, info = model_class.from_pretrained(folder, dtype=dtype, output_loading_info=True, attn_implementation="eager")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for what, names in info.items():
        if names and what in ("missing_keys", "mismatched_keys", "unexpected_keys", "error_msgs"):
            return f"{what}: {sorted(map(str, names))[:2]}"
    model = model.eval()
    model.config.return_dict = True  # which changes what a call returns, not what it computes
    try:
        with torch.no_grad():
            if model.config.model_type in ("bart", "m2m_100", "marian", "mbart", "mt5", "t5", "umt5"):
                start = model.config.decoder_start_token_id
                out = model(
                    input_ids=torch.tensor([SOURCE]),
                    decoder_input_ids=torch.tensor([[start] + TARGET]),
                    output_hidden_states=True,
                    return_dict=True,
                )
                states = out.decoder_hidden_states[-1]
            else:
                out = model(torch.tensor([TOKENS]), output_hidden_states=True, return_dict=True)
                states = model.base_model(torch.tensor([TOKENS]), return_dict=True).last_hidden_state
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return [float(f"{x:.7g}") for x in torch.cat([states[0, -1], out.logits[0, -1]]).tolist()]


def make_model(config_class, model_class, sizes):
    torch.manual_seed(11)
    config = config_class(**sizes)
    model = model_class(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gain = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_((1.0 if gain else 0.0) + 0.4 * torch.randn(parameter.shape))
            parameter.data = parameter.data.to(torch.bfloat16)
    return model


def close(a, b):
    most = max(map(abs, b))
    return len(a) == len(b) and max(abs(x - y) for x, y in zip(a, b)) < 3e-6 * most


def make(family, to, becomes):
    config_name, model_name, sizes = FAMILIES[family]
    config_class, model_class = getattr(transformers, config_name), getattr(transformers, model_name)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_model(config_class, model_class, sizes).save_pretrained(folder)
        tensors = load_file(folder / "model.safetensors")
        save_file(tensors, to / f"{family}.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        base = numbers_of(folder, model_class)
        assert not isinstance(base, str), base
        rows = []
        for key, value in keys_of(family, config_class, config):
            name = key.split(" (")[0]
            changed = {**config, name: value}
            (folder / "config.json").write_text(json.dumps(changed))
            # Scores that are computed in float32 whatever the weights are.
            dtype = torch.float32 if name == "reorder_and_upcast_attn" else torch.float64
            found = numbers_of(folder, model_class, dtype)
            row = {"key": key, "value": value}
            if isinstance(found, str):
                print(f"{family} {key}: {found[:150]}", file=sys.stderr)
                row["numbers"] = "not opened"
            elif close(found, base):
                row["numbers"] = "same"
            else:
                row["numbers"] = found
            row["becomes"] = becomes.get(key, "")
            rows.append(row)
    return {"config": config, "numbers": base, "keys": rows}


def dump(document):
    """JSON with a key a line."""
    rows = ",\n".join("  " + json.dumps(row) for row in document["keys"])
    return (
        '{"config": '
        + json.dumps(document["config"])
        + ',\n "numbers": '
        + json.dumps(document["numbers"])
        + ',\n "keys": [\n'
        + rows
        + "\n]}\n"
    )


def main():
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "config_keys"
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    to.mkdir(parents=True, exist_ok=True)
    for family in sys.argv[2:] or FAMILIES:
        before = here / f"{family}.json"
        rows = json.loads(before.read_text())["keys"] if before.exists() else []
        becomes = {row["key"]: row["becomes"] for row in rows}
        (to / f"{family}.json").write_text(dump(make(family, to, becomes)))


if __name__ == "__main__":
    main()
