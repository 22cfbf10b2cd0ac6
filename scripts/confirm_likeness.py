"""Finds without any code of ours why two captions are alike for all-MiniLM-L6-v2: python scripts/confirm_likeness.py MODEL CAPTIONS prints JSON.
transformers in float64 gives vectors and values; what each head and each layer adds is carried forwards through the norms behind it, with the
norms' scales of the run held. Claims 61 and 63 of docs/heads/results/README.md rest on these figures."""

import gzip
import json
import sys

import torch
import transformers

PAIRS, LEAST_COSINE, MOST_TOKENS, FEW = 100, 0.55, 40, 5


class Encoder:
    def __init__(self, path):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self.bert = transformers.AutoModel.from_pretrained(path, attn_implementation="eager").double().eval()
        self.heads = self.bert.config.num_attention_heads
        self.width = self.bert.config.hidden_size // self.heads

    def states(self, text):
        return self.bert(**self.tokenizer(text, return_tensors="pt")).last_hidden_state[0]

    def vector(self, text):
        mean = self.states(text).mean(dim=0)
        return mean / mean.norm()

    def without(self, muted, text):
        """The vector of a text with heads (layer, head) muted: what they give to W^O is 0."""
        hooks = []
        for layer, head in muted:
            def mute(_module, given, head=head):
                changed = given[0].clone()
                changed[..., head * self.width : (head + 1) * self.width] = 0
                return (changed, *given[1:])

            hooks.append(self.bert.encoder.layer[layer].attention.output.dense.register_forward_pre_hook(mute))
        try:
            return self.vector(text)
        finally:
            for hook in hooks:
                hook.remove()

    def parts(self, text, against):
        """By name what each part of a text's pooled state adds to its cosine with the vector `against`."""
        seen = {}
        hooks = []
        for number, layer in enumerate(self.bert.encoder.layer):
            for name, module in (("context", layer.attention.output.dense), ("inner", layer.output.dense)):
                hooks.append(module.register_forward_pre_hook(lambda _m, given, key=(number, name): seen.update({key: given[0][0]})))
            for name, module in (("first norm", layer.attention.output.LayerNorm), ("second norm", layer.output.LayerNorm)):
                hooks.append(module.register_forward_pre_hook(lambda _m, given, key=(number, name): seen.update({key: given[0][0]})))
        hooks.append(self.bert.embeddings.register_forward_hook(lambda _m, _given, out: seen.update({"embeddings": out[0]})))
        last = self.states(text)
        for hook in hooks:
            hook.remove()

        streams = {"embeddings": seen["embeddings"], "biases": torch.zeros_like(seen["embeddings"])}

        def through(norm, total):
            """All streams behind a norm that read `total`, its scale held."""
            if not torch.allclose(sum(streams.values()), total, atol=1e-10):
                raise SystemExit("the parts are not the state")
            scale = 1 / torch.sqrt(total.var(dim=-1, keepdim=True, unbiased=False) + norm.eps)
            for name, stream in streams.items():
                streams[name] = (stream - stream.mean(dim=-1, keepdim=True)) * scale * norm.weight
            streams["biases"] = streams["biases"] + norm.bias

        for number, layer in enumerate(self.bert.encoder.layer):
            output = layer.attention.output.dense
            for head in range(self.heads):
                inside = slice(head * self.width, (head + 1) * self.width)
                streams[f"encoder.{number}.self_attention.{head}"] = seen[number, "context"][:, inside] @ output.weight[:, inside].T
            streams["biases"] = streams["biases"] + output.bias
            through(layer.attention.output.LayerNorm, seen[number, "first norm"])
            streams[f"encoder.{number}.feed_forward"] = layer.output.dense(seen[number, "inner"])
            through(layer.output.LayerNorm, seen[number, "second norm"])
        length = last.mean(dim=0).norm()
        return {name: float(stream.mean(dim=0) @ against / length) for name, stream in streams.items()}


def pairs_of(encoder, captions):
    vectors = torch.stack([encoder.vector(caption) for caption in captions])
    cosines = vectors @ vectors.T
    cosines.fill_diagonal_(-2)
    nearest = cosines.argmax(dim=1).tolist()
    found = [[i, j] for i, j in enumerate(nearest)
             if i < j and nearest[j] == i and captions[i] != captions[j] and cosines[i, j] >= LEAST_COSINE
             and len(encoder.tokenizer(captions[i])["input_ids"]) <= MOST_TOKENS]
    return found[:PAIRS], vectors


@torch.no_grad()
def main(model, captions_path):
    opened = gzip.open if captions_path.endswith(".gz") else open
    with opened(captions_path, "rt", encoding="utf-8") as file:
        captions = file.read().splitlines()
    encoder = Encoder(model)
    pairs, vectors = pairs_of(encoder, captions)
    parts = [encoder.parts(captions[first], vectors[second]) for first, second in pairs]

    def mean(name, rows):
        return sum(row[name] for row in rows) / len(rows)

    heads = [name for name in parts[0] if ".self_attention." in name]
    layers = [name for name in parts[0] if name.endswith(".feed_forward")]
    means = {name: mean(name, parts) for name in sorted(heads, key=lambda name: -mean(name, parts))}
    means |= {
        "cosine": sum(float(vectors[first] @ vectors[second]) for first, second in pairs) / len(pairs),
        "heads": sum(means.values()),
        "feed-forward layers": sum(mean(name, parts) for name in layers),
        "embeddings": mean("embeddings", parts),
        "biases": mean("biases", parts),
    }
    chosen = sorted(heads, key=lambda name: -mean(name, parts[::2]))[:FEW]
    muted = [(int(name.split(".")[1]), int(name.split(".")[3])) for name in chosen]
    falls = [float((vectors[first] - encoder.without(muted, captions[first])) @ vectors[second]) for first, second in pairs[1::2]]
    means["fall without the chosen heads"] = sum(falls) / len(falls)
    print(json.dumps({"pairs": pairs, "chosen": chosen, "means": means}))


if __name__ == "__main__":
    main(*sys.argv[1:])
