"""Makes tests/goldens/steering.safetensors: what transformers' generate() answers greedily, in float64, while a
forward hook adds strength * vector to what a layer gives, of some of the models in tests/goldens. Of each case:

    CASE.prompt, CASE.vector                  token ids (of a translator those of the source), [d_model]
    CASE.tokens, CASE.log_probabilities       what came, and log p of each; no case ends with an end token
    CASE.plain_tokens                         without the hook

The cases, with their sites and strengths, stand in the file's metadata.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/steer_goldens.py [FILE]
"""

import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens"
CASES = {  # model, site, the layer's name in transformers, strength
    "gpt2": ("gpt2/tied", "decoder.0.output", "transformer.h.0", 7),
    "llama": ("llama/tied_grouped", "decoder.1.output", "model.layers.1", -3),
    "t5_decoder": ("t5/plain", "decoder.1.output", "decoder.block.1", -5),
    "t5_encoder": ("t5/plain", "encoder.0.output", "encoder.block.0", -11),
    "marian": ("marian/gelu_f16", "decoder.0.output", "model.decoder.layers.0", -4),
}
LENGTH = 11


def answer(model, prompt):
    """The tokens that come, and log p of each."""
    found = model.generate(
        torch.tensor([prompt]), do_sample=False, num_beams=1, max_new_tokens=LENGTH, forced_eos_token_id=None,
        output_logits=True, return_dict_in_generate=True, 
        use_cache=model.config.model_type != "t5",  # whose cache wants stacks of equally many layers
    )  # fmt: skip
    rows = torch.cat(found.logits).log_softmax(-1)
    tokens = found.sequences[0, -len(rows) :]
    return tokens.numpy(), rows.gather(1, tokens[:, None])[:, 0].numpy()


def make(name, folder, layer, strength, seed):
    config = json.loads((GOLDENS / folder / "config.json").read_text())
    kind = AutoModelForSeq2SeqLM if config.get("is_encoder_decoder") else AutoModelForCausalLM
    model = kind.from_pretrained(GOLDENS / folder, dtype=torch.float64).eval()
    random = np.random.default_rng(seed)
    prompt = random.integers(3, model.config.vocab_size, 5).tolist()
    vector = random.standard_normal(getattr(model.config, "d_model", None) or model.config.hidden_size).astype(np.float32)
    added = strength * torch.tensor(vector).double()

    def hook(module, inputs, output):
        return (output[0] + added, *output[1:]) if isinstance(output, tuple) else output + added

    with torch.no_grad():
        plain, _ = answer(model, prompt)
        handle = model.get_submodule(layer).register_forward_hook(hook)
        tokens, log_probabilities = answer(model, prompt)
        handle.remove()
    print(f"{name}: {plain.tolist()} becomes {tokens.tolist()}, {log_probabilities.sum():.4f}")
    assert plain.tolist() != tokens.tolist() and len(plain) == len(tokens) == LENGTH, name
    return {
        f"{name}.prompt": np.array(prompt), f"{name}.vector": vector, f"{name}.tokens": tokens,
        f"{name}.log_probabilities": log_probabilities.astype(np.float32), f"{name}.plain_tokens": plain,
    }  # fmt: skip


def main():
    tensors, cases = {}, []
    for seed, (name, (folder, site, layer, strength)) in enumerate(CASES.items()):
        tensors.update(make(name, folder, layer, strength, seed + 41))
        cases.append({"name": name, "folder": folder, "site": site, "strength": strength})
    save_file(tensors, sys.argv[1] if len(sys.argv) > 1 else GOLDENS / "steering.safetensors", {"cases": json.dumps(cases)})


if __name__ == "__main__":
    main()
