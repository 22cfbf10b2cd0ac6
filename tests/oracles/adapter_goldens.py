"""Makes tests/goldens/adapters: tiny random models with an adapter beside their weights, as peft saves it, and the states
(and logits) that transformers computes when it loads such a folder, sequence by sequence.

    python -m venv venv && venv/bin/pip install torch transformers peft safetensors numpy
    venv/bin/python tests/oracles/adapter_goldens.py [FOLDER]
"""

import json
import os
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from causal import make_all, save_golden
from peft import LoraConfig, get_peft_model
from safetensors.numpy import save_file
from transformers import (AutoModel, AutoModelForCausalLM, BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM)

# Ranks, sizes and alphas are unequal. GPT-2's layers are [in, out], and attn.c_proj is square.
MODELS = {
    "bert": (
        BertModel,
        BertConfig(vocab_size=37, hidden_size=14, num_hidden_layers=3, num_attention_heads=2, intermediate_size=23,
                   max_position_embeddings=31),
        LoraConfig(r=3, lora_alpha=7, target_modules=["query", "output.dense", "word_embeddings"], layers_to_transform=None,
                   exclude_modules=["encoder.layer.1.output.dense"], rank_pattern={"layer.2.attention.self.query": 5},
                   alpha_pattern={r"layer\.[02]\.attention\.self\.query": 11}, modules_to_save=["pooler"]),
    ),
    "gpt2": (
        GPT2LMHeadModel,
        GPT2Config(vocab_size=41, n_positions=29, n_embd=15, n_layer=3, n_head=3, bos_token_id=0, eos_token_id=1,
                   attn_implementation="eager"),
        LoraConfig(r=2, lora_alpha=5, target_modules=["c_attn", "attn.c_proj", "mlp.c_fc"], layers_to_transform=[0, 2],
                   use_rslora=True, fan_in_fan_out=True),
    ),
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(vocab_size=43, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=1,
                    intermediate_size=31, max_position_embeddings=37, tie_word_embeddings=False),
        LoraConfig(r=4, lora_alpha=3, target_modules=r".*embed_tokens|.*layers\.\d+\.(self_attn\.[qkv]_proj|mlp\.(up|down)_proj)",
                   use_rslora=True, rank_pattern={"up_proj": 2, "^model.layers.1.mlp.down_proj": 3},
                   alpha_pattern={"down_proj": 9.5, "k_proj": 1}, modules_to_save=["lm_head"]),
    ),
}


def save_states(model, lengths, file):
    """As save_golden(), of an encoder."""
    random = np.random.default_rng(7)
    ids = [random.integers(0, model.config.vocab_size, n) for n in lengths]
    with torch.no_grad():
        outputs = [model(torch.tensor(sequence)[None]) for sequence in ids]
    save_file({"lengths": np.array(lengths, dtype=np.int64), "ids": np.concatenate(ids).astype(np.int64),
               "states": np.concatenate([out.last_hidden_state[0].numpy() for out in outputs]).astype(np.float32),
               "pooled": np.concatenate([out.pooler_output.numpy() for out in outputs]).astype(np.float32)}, file)


def make(folder, name, of):
    kind, config, lora = of
    torch.manual_seed(sum(map(ord, name)))
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    adapted = get_peft_model(model, lora)
    with torch.no_grad():
        for parameter_name, parameter in adapted.named_parameters():
            if "lora_" in parameter_name or "modules_to_save" in parameter_name:
                parameter.add_(0.4 * torch.randn_like(parameter))
    adapted.save_pretrained(folder / name)
    (folder / name / "README.md").unlink()
    config_file = folder / name / "adapter_config.json"
    saved = json.loads(config_file.read_text())
    saved["base_model_name_or_path"] = "base"
    for key in ("target_modules", "exclude_modules", "modules_to_save"):  # sets, in any order
        if isinstance(saved[key], list):
            saved[key].sort()
    config_file.write_text(json.dumps(saved, indent=2) + "\n")

    auto = AutoModel if kind is BertModel else AutoModelForCausalLM
    loaded = auto.from_pretrained(folder / name, attn_implementation="eager").double().eval()
    golden = folder / f"{name}.golden.safetensors"
    (save_states if kind is BertModel else save_golden)(loaded, [1, 2, 23], golden)


if __name__ == "__main__":
    make_all(MODELS, make, "adapters")
