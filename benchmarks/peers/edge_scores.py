"""The scores of all edges of a circuit (EAP-IG) beside torch's autograd with hooks on transformers' eager attention: a model of
SmolLM2-135M's shape with random weights, the same tokens, in turns in one run, two threads, float32.

    pip install torch transformers
    python benchmarks/peers/edge_scores.py --build BUILD [--out FILE.json] [--pairs 100] [--tokens 16] [--steps 5] [--together 4]

BUILD is a build folder with the benchmarks. In torch so many pairs go together, each with all its steps.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
import transformers
from generate import SHAPE
from machine import processor, write_results


class Hooks:
    """What modules read and give, with the gradients of some."""

    def __init__(self, model):
        self.seen, self.embeddings = {}, None
        body = model.model
        body.embed_tokens.register_forward_hook(self.embed)
        for layer in body.layers:
            a = layer.self_attn
            layer.register_forward_pre_hook(lambda m, args: self.keep((m, "in"), args[0]))
            layer.post_attention_layernorm.register_forward_pre_hook(lambda m, args: self.keep((m, "in"), args[0]))
            for module in (a.q_proj, a.k_proj, a.v_proj, layer.post_attention_layernorm, layer.mlp):
                module.register_forward_hook(lambda m, args, out: self.keep(m, out))
            a.o_proj.register_forward_pre_hook(lambda m, args: self.keep(m, args[0]))
        body.norm.register_forward_pre_hook(lambda m, args: self.keep((m, "in"), args[0]))
        body.norm.register_forward_hook(lambda m, args, out: self.keep(m, out))

    def embed(self, module, args, out):
        if self.embeddings is not None:
            out = self.embeddings
        self.keep(module, out)
        return out

    def keep(self, key, value):
        self.seen[key] = value
        if value.requires_grad:
            value.retain_grad()


def through_norm(norm, x, gradients):
    """The gradients of an RMS norm become those of what it reads: [..., n, d]."""
    scale = (x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt()
    g = gradients * norm.weight
    normed = x * scale
    return scale * (g - normed * (g * normed).mean(-1, keepdim=True))


class Scores:
    def __init__(self, model, steps):
        self.model, self.steps, self.hooks = model, steps, Hooks(model)
        c = model.config
        self.heads, self.key_heads, self.size = c.num_attention_heads, c.num_key_value_heads, c.hidden_size // c.num_attention_heads
        self.layers = list(model.model.layers)
        self.sources = 1 + len(self.layers) * (self.heads + 1)
        self.totals = []

    def ends(self, ids):
        """What every source writes: [sources, texts, n, d]; and the embeddings."""
        with torch.no_grad():
            self.model.model(input_ids=ids)
        seen = self.hooks.seen
        written = [seen[self.model.model.embed_tokens]]
        for layer in self.layers:
            o = layer.self_attn.o_proj
            z = seen[o].unflatten(-1, (self.heads, self.size))
            w = o.weight.T.unflatten(0, (self.heads, self.size))
            written += list(torch.einsum("bnhs,hsd->hbnd", z, w)) + [seen[layer.mlp]]
        return torch.stack(written), written[0]

    def add(self, clean, corrupt, answers, wrong):
        self.hooks.embeddings = None
        of_clean, a = self.ends(clean)
        of_corrupt, b = self.ends(corrupt)
        differences = of_clean - of_corrupt
        shares = ((torch.arange(self.steps) + 0.5) / self.steps)[:, None, None, None]
        between = (b + shares * (a - b)).flatten(0, 1).requires_grad_()  # [steps * pairs, n, d]
        self.hooks.embeddings = between
        states = self.model.model(input_ids=clean.repeat(self.steps, 1)).last_hidden_state[:, -1]
        w = self.model.lm_head.weight
        rows = (w[answers] - w[wrong]).repeat(self.steps, 1)
        (states * rows).sum().backward()
        seen = self.hooks.seen
        at = 1
        for layer in self.layers:
            attention = layer.self_attn
            for module, heads in ((attention.q_proj, self.heads), (attention.k_proj, self.key_heads), (attention.v_proj, self.key_heads)):
                g = seen[module].grad.unflatten(-1, (heads, self.size))
                per_head = torch.einsum("bnhs,hsd->hbnd", g, module.weight.unflatten(0, (heads, self.size)))
                self.count(differences[:at], through_norm(layer.input_layernorm, seen[(layer, "in")], per_head))
            at += self.heads
            norm = layer.post_attention_layernorm
            self.count(differences[:at], through_norm(norm, seen[(norm, "in")], seen[norm].grad[None]))
            at += 1
        norm = self.model.model.norm
        self.count(differences, through_norm(norm, seen[(norm, "in")], seen[norm].grad[None]))

    @torch.no_grad()
    def count(self, differences, gradients):
        mean = gradients.unflatten(1, (self.steps, -1)).mean(1)  # [targets, pairs, n, d]
        self.totals.append(differences.flatten(1) @ mean.flatten(1).T)


def torch_run(scores, given):
    p, i = torch.arange(given.pairs)[:, None], torch.arange(given.tokens)[None]
    clean = 100 + (7 * p + 13 * i) % 40000
    corrupt = clean + 1000 * ((i == 3) | (i == 11))
    numbers = torch.arange(given.pairs)
    first = torch.zeros(4)
    begin = time.perf_counter()
    for at in range(0, given.pairs, given.together):
        some = slice(at, at + given.together)
        scores.totals = []
        scores.add(clean[some], corrupt[some], 200 + numbers[some], 400 + numbers[some])
        first += scores.totals[-1][:4, 0]
    return {"seconds": time.perf_counter() - begin, "scores": first.tolist()}


def our_run(folder, given):
    program = Path(given.build) / "benchmarks" / "edge_speed"
    arguments = [str(number) for number in (given.pairs, given.tokens, given.steps, 1)]
    return json.loads(subprocess.run([program, folder, *arguments], check=True, capture_output=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--out")
    for name, default in (("pairs", 100), ("tokens", 16), ("steps", 5), ("together", 4), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE, attn_implementation="eager")).eval()
    model.requires_grad_(False)
    scores = Scores(model, given.steps)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for _ in range(given.rounds):
            ours.append(our_run(folder, given))
            theirs.append(torch_run(scores, given))
    largest = max(abs(number) for number in theirs[0]["scores"])
    off = max(abs(a - b) for a, b in zip(ours[0]["scores"], theirs[0]["scores"], strict=True)) / largest
    if off > 1e-3:
        raise SystemExit(f"the scores differ by {off:.1e} of the largest: {ours[0]['scores']}, {theirs[0]['scores']}")
    mine, torchs = (statistics.median(run["seconds"] for run in runs) for runs in (ours, theirs))
    found = {"pairs": given.pairs, "tokens": given.tokens, "steps": given.steps, "edges": ours[0]["edges"],
             "seconds": round(mine, 2), "torch_seconds": round(torchs, 2), "ratio": round(torchs / mine, 2),
             "scores_off": float(f"{off:.1e}"), "processor": processor()}
    print(json.dumps(found))
    if given.out:
        write_results(given.out, found)


if __name__ == "__main__":
    main()
