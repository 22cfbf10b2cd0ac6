"""Computes what `multihead heads attribution` says of a text once more, with transformers in float64, and compares.

    venv/bin/python tests/oracles/attribution_check.py TOOL FOLDER TEXT [SECOND]

FOLDER: an encoder of sentences (BERT; mean pooling) with a SECOND text, a causal model (Llama), or a Marian translator, whose
translation SECOND may be. Tokens are those of the tool; every number must agree to 1e-4 of the largest of its method, or of 1.
Integrated gradients that do not must be nearer than those of transformers in float32: the states of some models reach 20,000, and
float cannot hold the gradients on the way from their replacement.
"""

import json
import os
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import networkx
import numpy as np
import torch
import transformers

TOLERANCE = 1e-4
STEPS = 8


class Layer:
    """A layer, and the projections of its attentions: {"self": (values, output)}."""

    def __init__(self, module, attentions):
        self.module, self.attentions = module, attentions


class Explained:
    """F of a text, as a function of the embeddings of its source and its target, with every value that methods ask for."""

    def __init__(self, folder, found, dtype=torch.float64):
        config = transformers.AutoConfig.from_pretrained(folder)
        self.translates = bool(config.is_encoder_decoder)
        self.cosine = found["explained"] == "cosine"
        kind = transformers.AutoModelForSeq2SeqLM if self.translates else transformers.AutoModel if self.cosine else transformers.AutoModelForCausalLM
        self.model = kind.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.token = None if self.cosine else found["token_id"]
        self.ids = {side: [t["id"] for t in found["tokens"] if t["side"] == side] for side in ("source", "target")}
        self.sources = len(self.ids["source"])
        if self.translates:
            marian = lambda layer: Layer(layer, {name: (a.v_proj, a.out_proj) for name, a in
                                                 (("self", layer.self_attn), ("cross", getattr(layer, "encoder_attn", None))) if a is not None})
            self.stacks = {"source": [marian(l) for l in self.model.model.encoder.layers], "target": [marian(l) for l in self.model.model.decoder.layers]}
        elif self.cosine:
            self.stacks = {"source": [Layer(l, {"self": (l.attention.self.value, l.attention.output.dense)}) for l in self.model.encoder.layer]}
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            with torch.no_grad():
                self.second = self.model(**tokenizer(found["second"], return_tensors="pt")).last_hidden_state[0].mean(0)
        else:
            self.stacks = {"source": [Layer(l, {"self": (l.self_attn.v_proj, l.self_attn.o_proj)}) for l in self.model.model.layers]}
        self.heads = {"source": config.num_attention_heads, "target": getattr(config, "decoder_attention_heads", 0)}

    def last(self):
        return "target" if self.translates else "source"

    def rows(self):
        """How much each row of the last states counts."""
        n = len(self.ids[self.last()])
        return np.full(n, 1 / n) if self.cosine else np.eye(n)[-1]

    def run(self, ids=None, embeddings=None, hooks=()):
        """F, the output of transformers, and by layer what it reads and gives."""
        ids, seen, handles = ids or self.ids, {}, list(hooks)

        def replace_input(side):
            def hook(module, args, kwargs):
                x = embeddings[side] if embeddings else args[0].detach()
                seen[side, "embeddings"] = x = x.requires_grad_(True)
                return (x, *args[1:]), kwargs
            return hook

        def keep(side, number):
            return lambda module, args, out: seen.__setitem__((side, number), (out[0] if isinstance(out, tuple) else out)[0].detach().numpy())

        def keep_call(side, number):
            return lambda module, args, kwargs: seen.__setitem__((side, number, "call"), (args, kwargs))

        for side, layers in self.stacks.items():
            handles.append(layers[0].module.register_forward_pre_hook(replace_input(side), with_kwargs=True))
            handles += [layer.module.register_forward_pre_hook(keep_call(side, number), with_kwargs=True) for number, layer in enumerate(layers)]
            handles += [layer.module.register_forward_hook(keep(side, number)) for number, layer in enumerate(layers)]
        given = dict(input_ids=torch.tensor([ids["source"]]), output_attentions=True)
        if self.translates:
            given["decoder_input_ids"] = torch.tensor([ids["target"]])
        if not self.cosine:
            given["use_cache"] = False
        out = self.model(**given)
        for handle in handles:
            handle.remove()
        if self.cosine:
            f = torch.nn.functional.cosine_similarity(out.last_hidden_state[0].mean(0), self.second, dim=0)
        else:
            f = torch.log_softmax(out.logits[0, -1], 0)[self.token]
        if self.translates:
            weights = {("source", "self"): out.encoder_attentions, ("target", "self"): out.decoder_attentions, ("target", "cross"): out.cross_attentions}
        else:
            weights = {("source", "self"): out.attentions}
        return f, weights, seen

    def joint(self, by_token):
        """One list of the source's and the target's."""
        return np.concatenate([by_token[side] for side in self.stacks])


def by_layer(explained, make):
    """{side: [{"self": [T, T], "cross": [T, S]}, ...]}"""
    return {side: [{kind: make(side, number, kind) for kind in layer.attentions} for number, layer in enumerate(layers)]
            for side, layers in explained.stacks.items()}


def last_layer(explained, mixes):
    layer, rows = mixes[explained.last()][-1], explained.rows()
    return np.concatenate([rows @ layer[kind] for kind in ("cross", "self") if kind in layer])


def rollout(explained, mixes, in_turn):
    half = (lambda a, x, own: (a @ x + own) / 2) if in_turn else (lambda a, x, own: a @ x)
    source = np.eye(explained.sources)
    for layer in mixes["source"]:
        source = half(layer["self"], source, source)
    if not explained.translates:
        return explained.rows() @ source
    targets = len(explained.ids["target"])
    x = np.concatenate([np.zeros((targets, explained.sources)), np.eye(targets)], 1)
    memory = np.concatenate([source, np.zeros((explained.sources, targets))], 1)
    for layer in mixes["target"]:
        if in_turn:
            x = half(layer["self"], x, x)
            x = half(layer["cross"], memory, x)
        else:
            x = layer["self"] @ x + layer["cross"] @ memory
    return explained.rows() @ x


def relevance(explained, mixes):
    normalised = lambda r: (lambda own: own / np.where(own.sum(1, keepdims=True) == 0, 1, own.sum(1, keepdims=True)) + np.eye(len(r)))(r - np.eye(len(r)))
    source = np.eye(explained.sources)
    for layer in mixes["source"]:
        source = source + layer["self"] @ source
    if not explained.translates:
        return explained.rows() @ source
    own, crossed = np.eye(len(explained.ids["target"])), np.zeros((len(explained.ids["target"]), explained.sources))
    for layer in mixes["target"]:
        own, crossed = own + layer["self"] @ own, crossed + layer["self"] @ crossed
        crossed = crossed + normalised(own).T @ layer["cross"] @ normalised(source)
    return np.concatenate([explained.rows() @ crossed, explained.rows() @ own])


def flow(explained, mixes):
    graph = networkx.DiGraph()

    def add(above, below, weights, own=None):
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                if weight > 0:
                    graph.add_edge((*above, i), (*below, j), capacity=weight / 2 + (0.5 if own == below and i == j else 0))
            if own is not None and own != below:
                graph.add_edge((*above, i), (*own, i), capacity=0.5)

    for number, layer in enumerate(mixes["source"]):
        add(("source", number + 1), ("source", number), layer["self"], ("source", number))
    top = ("source", len(mixes["source"]))
    if explained.translates:
        memory, top = top, ("target", 0)
        for number, layer in enumerate(mixes["target"]):
            add(("target", number + 0.5), ("target", number), layer["self"], ("target", number))
            add(("target", number + 1), memory, layer["cross"], ("target", number + 0.5))
            top = ("target", number + 1)
    for i, row in enumerate(explained.rows()):
        if row > 0:
            graph.add_edge("start", (*top, i), capacity=row)
    sinks = [(side, 0, j) for side in explained.stacks for j in range(len(explained.ids[side]))]
    return np.array([networkx.maximum_flow_value(graph, "start", sink) if sink in graph else 0.0 for sink in sinks])


def norm_weighted(explained, weights):
    values, handles = {}, []
    for side, layers in explained.stacks.items():
        for number, layer in enumerate(layers):
            for kind, (value, _) in layer.attentions.items():
                handles.append(value.register_forward_hook(lambda m, a, out, at=(side, number, kind): values.__setitem__(at, out[0].detach())))
    explained.run(hooks=handles)

    def make(side, number, kind):
        a, v = weights[side, kind][number][0].detach(), values[side, number, kind]
        heads, w = a.shape[0], explained.stacks[side][number].attentions[kind][1].weight  # [d_model, heads * d_value]
        size = w.shape[1] // heads
        group = heads // (v.shape[1] // size)
        f = torch.stack([v[:, h // group * size:][:, :size] @ w[:, h * size:(h + 1) * size].T for h in range(heads)])
        norms = torch.einsum("hij,hjd->ijd", a, f).norm(dim=2).numpy()
        return norms / norms.sum(1, keepdims=True)

    return by_layer(explained, make)


def value_zeroing(explained):
    _, _, whole = explained.run()

    def turned(side, number, kind, j):
        def hook(module, args, out):
            out = out.clone()
            out[0, j] = 0
            return out
        layer = explained.stacks[side][number]
        args, kwargs = whole[side, number, "call"]
        handle = layer.attentions[kind][0].register_forward_hook(hook)
        with torch.no_grad():
            out = layer.module(*args, **kwargs)
        handle.remove()
        a, b = whole[side, number], (out[0] if isinstance(out, tuple) else out)[0].numpy()
        return 1 - (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)

    def make(side, number, kind):
        keys = len(explained.ids["source" if kind == "cross" else side])
        return np.stack([turned(side, number, kind, j) for j in range(keys)], 1)

    mixes = by_layer(explained, make)
    for layers in mixes.values():
        for layer in layers:
            total = sum(c.sum(1, keepdims=True) for c in layer.values())
            for kind in layer:
                layer[kind] = layer[kind] / total
    return mixes


def integrated_gradients(explained, replaced):
    _, _, seen = explained.run()
    _, _, base = explained.run(ids=replaced)
    x, b = ({side: s[side, "embeddings"].detach() for side in explained.stacks} for s in (seen, base))
    sums = {side: 0 for side in explained.stacks}
    for k in range(STEPS):
        between = {side: b[side] + (k + 0.5) / STEPS * (x[side] - b[side]) for side in x}
        f, _, at = explained.run(embeddings=between)
        f.backward()
        for side in sums:
            sums[side] = sums[side] + at[side, "embeddings"].grad[0] / STEPS
    return explained.joint({side: (sums[side] * (x[side] - b[side])[0]).sum(1).numpy() for side in sums})


def main():
    program, folder, text, *second = sys.argv[1:]
    translates = bool(transformers.AutoConfig.from_pretrained(folder).is_encoder_decoder)
    flags = ["--target-text" if translates else "--second", second[0]] if second else []
    said = subprocess.run([program, "heads", "attribution", folder, "--text", text, *flags, "--steps", str(STEPS), "--json"],
                          check=True, capture_output=True, text=True).stdout
    found = json.loads(said)
    explained = Explained(folder, found)
    f, weights, seen = explained.run()
    for layers in weights.values():
        for a in layers:
            a.retain_grad()
    f.backward()
    means = by_layer(explained, lambda side, number, kind: weights[side, kind][number][0].detach().mean(0).numpy())
    positive = by_layer(explained, lambda side, number, kind: (lambda a: (a * a.grad).clamp(min=0)[0].mean(0).detach().numpy())(weights[side, kind][number]))
    replaced = {side: list(ids) for side, ids in explained.ids.items()}
    vocabulary = json.load(open(f"{folder}/tokenizer.json", encoding="utf8"))
    ids = {t["content"]: t["id"] for t in vocabulary["added_tokens"]}
    tokens = vocabulary["model"]["vocab"]
    ids |= tokens if isinstance(tokens, dict) else {token: number for number, (token, _) in enumerate(tokens)}
    for number, token in enumerate(found["tokens"]):
        side = token["side"]
        if not token["kept"]:
            replaced[side][number - (explained.sources if side == "target" else 0)] = ids[found["replacement" if side == "source" else "target_replacement"]]
    expected = {
        "attention": last_layer(explained, means),
        "norm-weighted": last_layer(explained, norm_weighted(explained, weights)),
        "rollout": rollout(explained, means, True),
        "relevance": relevance(explained, positive),
        "flow": flow(explained, means),
        "gradient-x-input": explained.joint({side: (x := seen[side, "embeddings"]).grad[0].mul(x[0]).sum(1).detach().numpy() for side in explained.stacks}),
        "integrated-gradients": integrated_gradients(explained, replaced),
        "value-zeroing": rollout(explained, value_zeroing(explained), False),
    }
    worst = {"score": abs(found["score"] - f.item()), "replaced_score": abs(found["replaced_score"] - explained.run(ids=replaced)[0].item())}
    for method, numbers in expected.items():
        tool = np.array([token["scores"][method] for token in found["tokens"]])
        worst[method] = float(abs(tool - numbers).max() / max(1, abs(numbers).max()))
    for what, difference in worst.items():
        print(f"{what}: largest difference {difference:.1e}")
    limits = dict.fromkeys(worst, TOLERANCE)
    if worst["integrated-gradients"] > TOLERANCE:
        in_float = integrated_gradients(Explained(folder, found, torch.float32), replaced)
        exact = expected["integrated-gradients"]
        limits["integrated-gradients"] = float(abs(in_float - exact).max() / max(1, abs(exact).max()))
        print(f"integrated-gradients of transformers in float32: largest difference {limits['integrated-gradients']:.1e}")
    wrong = [what for what, difference in worst.items() if not difference <= limits[what]]
    if wrong:
        sys.exit(f"attribution_check: {', '.join(wrong)}: more than {', '.join(f'{limits[what]:.1e}' for what in wrong)}")


if __name__ == "__main__":
    main()
