"""Computes `multihead heads importance` once more with transformers, heads gated by hooks, in float64, and compares.

    venv/bin/python tests/oracles/importance_check.py TOOL FOLDER LINES [TARGET]

FOLDER: a folder of sentence-transformers without a head for words (mean pooling), a causal model, or a Marian translator, that
transformers opens. Every figure of gradients and of ablations (to zero, to the mean, all others) must agree to 1e-4 of the largest.
"""

import json
import os
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers

TOLERANCE = 1e-4


class Gated:
    """A model whose heads are multiplied by gates, or replaced, where W^O reads them: {attention: [heads]}."""

    def __init__(self, folder):
        config = transformers.AutoConfig.from_pretrained(folder)
        self.translates = bool(getattr(config, "is_encoder_decoder", False))
        self.causal = not self.translates and "CausalLM" in (config.architectures or [""])[0]
        kind = (transformers.AutoModelForSeq2SeqLM if self.translates else transformers.AutoModelForCausalLM if self.causal
                else transformers.AutoModel)
        self.model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).eval()
        self.model.requires_grad_(False)
        if self.translates:
            self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
        else:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.start, self.end = getattr(config, "decoder_start_token_id", None), config.eos_token_id
        self.gates, self.replaced, self.seen = {}, {}, {}
        self.heads = {}
        for name, module, heads in self.outputs(config):
            self.heads[name] = heads
            self.gates[name] = torch.ones(heads, dtype=torch.float64)
            module.register_forward_pre_hook(lambda _, inputs, name=name: self.gate(name, inputs))

    def outputs(self, config):
        if self.translates:
            model = self.model.model
            for i, layer in enumerate(model.encoder.layers):
                yield f"encoder.{i}.self_attention", layer.self_attn.out_proj, config.encoder_attention_heads
            for i, layer in enumerate(model.decoder.layers):
                yield f"decoder.{i}.self_attention", layer.self_attn.out_proj, config.decoder_attention_heads
                yield f"decoder.{i}.cross_attention", layer.encoder_attn.out_proj, config.decoder_attention_heads
        elif self.causal:
            for i, layer in enumerate(self.model.model.layers):
                yield f"decoder.{i}.self_attention", layer.self_attn.o_proj, config.num_attention_heads
        else:
            for i, layer in enumerate(self.model.encoder.layer):
                yield f"encoder.{i}.self_attention", layer.attention.output.dense, config.num_attention_heads

    def gate(self, name, inputs):
        z = inputs[0]
        z = z.reshape(*z.shape[:-1], self.heads[name], -1)
        self.seen[name] = z.detach().reshape(-1, *z.shape[-2:])
        if name in self.replaced:
            head, mean = self.replaced[name]
            z = torch.cat([z[..., :head, :], mean.expand(*z.shape[:-2], 1, -1), z[..., head + 1:, :]], -2)
        z = z * self.gates[name][:, None]
        return (z.reshape(*z.shape[:-2], -1), *inputs[1:])

    def ids(self, text):
        ids = self.tokenizer(text)["input_ids"]
        return ids + [self.end] if self.translates and ids[-1:] != [self.end] else ids

    def score(self, line, target, reference):
        ids = torch.tensor([self.ids(line)])
        if self.translates:
            out = self.ids(target)
            logits = self.model(input_ids=ids, decoder_input_ids=torch.tensor([[self.start, *out[:-1]]])).logits[0]
            return torch.log_softmax(logits, -1)[range(len(out)), out].sum()
        if self.causal:
            logits = self.model(input_ids=ids).logits[0, :-1]
            return torch.log_softmax(logits, -1)[range(len(logits)), ids[0, 1:]].sum()
        return torch.cosine_similarity(self.vector(line), reference, dim=0)

    def vector(self, line):
        states = self.model(input_ids=torch.tensor([self.ids(line)])).last_hidden_state[0].mean(0)
        return states / states.norm()


def importance(model, lines, targets):
    vectors = None
    if not model.translates and not model.causal:
        with torch.no_grad():
            vectors = [model.vector(line) for line in lines]
    count = len(lines)
    gradient = {name: np.zeros(heads) for name, heads in model.heads.items()}
    for i, line in enumerate(lines):
        for name, heads in model.heads.items():
            model.gates[name] = torch.ones(heads, dtype=torch.float64, requires_grad=True)
        model.score(line, targets[i], vectors[(i + 1) % count] if vectors else None).backward()
        for name in model.heads:
            gradient[name] += np.abs(model.gates[name].grad.numpy()) / count
    for name, heads in model.heads.items():
        model.gates[name] = torch.ones(heads, dtype=torch.float64)
    found = {"gradient": gradient}
    with torch.no_grad():
        before, sums, rows = [], {}, {}
        for i, line in enumerate(lines):
            before.append(model.score(line, targets[i], vectors[i] if vectors else None))
            for name, z in model.seen.items():
                sums[name] = sums.get(name, 0) + z.sum(0)
                rows[name] = rows.get(name, 0) + len(z)
        lost = lambda: sum(before[i] - model.score(line, targets[i], vectors[i] if vectors else None)
                           for i, line in enumerate(lines)).item() / count
        for how in ("zero", "mean", "alone"):
            found[how] = {}
            for name, heads in model.heads.items():
                losses = []
                for head in range(heads):
                    if how == "mean":
                        model.replaced[name] = (head, (sums[name] / rows[name])[head])
                    elif how == "zero":
                        model.gates[name][head] = 0
                    else:
                        model.gates[name] = torch.eye(heads, dtype=torch.float64)[head]
                    losses.append(lost())
                    model.replaced.clear()
                    model.gates[name] = torch.ones(heads, dtype=torch.float64)
                found[how][name] = np.array(losses)
    return found


def main():
    tool, folder, path = sys.argv[1:4]
    lines = [line for line in open(path, encoding="utf-8").read().splitlines() if line.strip()]
    targets = open(sys.argv[4], encoding="utf-8").read().splitlines() if len(sys.argv) > 4 else [None] * len(lines)
    model = Gated(folder)
    expected = importance(model, lines, targets)
    flags = {"gradient": [], "zero": ["--by", "ablation"], "mean": ["--by", "ablation", "--to", "mean"],
             "alone": ["--by", "alone"]}
    for how, more in flags.items():
        command = [tool, "heads", "importance", folder, "-i", path, "--json", *more]
        if len(sys.argv) > 4:
            command += ["--target", sys.argv[4]]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        largest = max(np.abs(values).max() for values in expected[how].values())
        worst = 0
        for head in report["heads"]:
            name, number = head["head"].rsplit(".", 1)
            difference = abs(head["importance"] - expected[how][name][int(number)]) / largest
            worst = max(worst, difference)
            if not difference <= TOLERANCE:
                sys.exit(f"importance_check: {how}: {head['head']}: the tool has {head['importance']:.8f}, "
                         f"transformers {expected[how][name][int(number)]:.8f}")
        print(f"{how}: {len(report['heads'])} heads agree to {worst:.1e} of the largest, {largest:.4g}")


if __name__ == "__main__":
    main()
