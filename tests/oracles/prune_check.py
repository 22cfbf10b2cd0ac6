"""Compares folders that `multihead heads prune` wrote with Hugging Face Transformers, where hooks mute the heads, in float64.

    venv/bin/python tests/oracles/prune_check.py TOOL FOLDER OUT HEAD ...

TOOL prunes HEADs (encoder.0.self_attention.3, no patterns) of FOLDER, a BERT or Llama, into OUT. Here the given model runs with the
columns of these heads 0 before W^O, and the pruned folder's tensors run in modules of their shapes; Transformers 4 also opens a
folder with pruned_heads by itself. Prints the largest differences, and fails when one is more than 1e-5 of the largest number.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import load_file

TOLERANCE = 1e-5


def opened(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, (config.architectures or [""])[0], transformers.AutoModel)
    return kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()


def attentions(model):
    """Of each layer: its attention, its W^O, and the names of its other projections there."""
    base = model.base_model
    if hasattr(base, "encoder"):
        for layer in base.encoder.layer:
            yield layer.attention.self, layer.attention.output.dense, ("query", "key", "value")
    else:
        for layer in base.layers:
            yield layer.self_attn, layer.self_attn.o_proj, ("q_proj", "k_proj", "v_proj")


def head_size(model):
    config = model.config
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def outputs(model):
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, model.config.vocab_size, (3, 23), generator=generator)
    with torch.no_grad():
        return model(ids)[0]


def muted(folder, heads):
    model = opened(folder)
    size = head_size(model)
    for number, (_, output, _) in enumerate(attentions(model)):
        gone = [int(name.rsplit(".", 1)[1]) for name in heads if name.split(".")[1] == str(number)]

        def mute(_, inputs, gone=gone):
            kept = inputs[0].clone()
            for head in gone:
                kept[..., head * size : (head + 1) * size] = 0
            return (kept,)

        output.register_forward_pre_hook(mute)
    return outputs(model)


def by_shapes(given, folder):
    """The pruned folder's tensors in the given model's modules, made narrower."""
    model = opened(given)
    size = head_size(model)
    tensors = {}
    for file in sorted(Path(folder).glob("*.safetensors")):
        tensors.update(load_file(file))
    names_of = {id(module): name for name, module in model.named_modules()}
    prefix = model.base_model_prefix + "."

    def tensor(name):
        for candidate in (name, prefix + name, name.removeprefix(prefix)):
            if candidate in tensors:
                return tensors[candidate].double()
        return None

    for own, output, names in attentions(model):
        for module in [getattr(own, name) for name in names] + [output]:
            name = names_of[id(module)]
            weight, bias = tensor(name + ".weight"), tensor(name + ".bias")
            module.weight = torch.nn.Parameter(weight)
            module.bias = None if bias is None else torch.nn.Parameter(bias)
            module.out_features, module.in_features = weight.shape
        heads = getattr(own, names[0]).out_features // size
        keys = getattr(own, names[1]).out_features // size
        for field in ("num_attention_heads", "num_heads"):
            if hasattr(own, field):
                setattr(own, field, heads)
        if hasattr(own, "all_head_size"):
            own.all_head_size = heads * size
        if hasattr(own, "num_key_value_groups"):
            own.num_key_value_groups = heads // keys
    return outputs(model)


def check(what, found, expected):
    difference, largest = (found - expected).abs().max().item(), expected.abs().max().item()
    print(f"{what}: largest difference {difference:.3g} of numbers up to {largest:.3g}")
    if not difference <= TOLERANCE * largest:
        sys.exit(f"prune_check: {what} differs")


def main():
    tool, folder, out, *heads = sys.argv[1:]
    arguments = [word for head in heads for word in ("--heads", head)]
    report = json.loads(subprocess.run([tool, "heads", "prune", folder, "--out", out, "--json", *arguments],
                                       check=True, stdout=subprocess.PIPE).stdout)
    assert report["heads"]["before"] - report["heads"]["after"] + report["silent"] == len(set(heads)), report
    expected = muted(folder, heads)
    check("tensors of the pruned folder", by_shapes(folder, out), expected)
    major = int(transformers.__version__.split(".")[0])
    if report["format"] == "family" or (report["format"] == "pruned_heads" and major < 5):
        check(f"the folder, opened by Transformers {transformers.__version__}", outputs(opened(out)), expected)
    given = outputs(opened(folder))
    assert (given - expected).abs().max() > 1e-3 * given.abs().max(), "these heads do nothing"


main()
