"""Makes tests/goldens/sites: what transformers computes in double precision at every site (docs/sites.md) of some of
the models in tests/goldens, sequence by sequence, and what follows from other values there. For each site S:

    value.S      [rows, columns] the sequences end to end; scores and weights have as many columns as the longest
                 sequence has keys, 0 behind a sequence's own keys
    gradient.S   the gradient of the scalar sum(logits * direction)
    replaced.S   [N, d_model] the last states when the value is 0.5 * value + 0.1 * cos(3 i + j) in row i, column j

(Llama's norms, softmax and angles of rotary positions are float32 there.)

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/site_goldens.py [FOLDER]
"""

import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import (AttentionInterface, AttentionMaskInterface, BertForMaskedLM, BertForPreTraining,
                          GPT2LMHeadModel, LlamaForCausalLM, MarianMTModel)
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens"
MODELS = {
    "bert/masked": BertForMaskedLM,
    "bert/pretraining": BertForPreTraining,
    "gpt2/tied": GPT2LMHeadModel,
    "llama/tied_grouped": LlamaForCausalLM,
    "marian/gelu_f16": MarianMTModel,
}
LENGTHS, SOURCE_LENGTHS, TARGET_LENGTHS = [3, 1, 7], [5, 3, 2], [2, 7, 1]


class Sites:
    """The values of one pass, a tensor for each sequence; what to put in their place; whether they get gradients."""

    def __init__(self):
        self.begin()

    def begin(self, put=(), watching=False):
        self.values, self.put, self.watching = {}, dict(put), watching

    def at(self, site, value):
        seen = self.values.setdefault(site, [])
        if site in self.put:
            value = self.put[site][len(seen)]
        if self.watching:
            value = value.clone() if value.requires_grad else value.clone().requires_grad_()
            value.retain_grad()
        seen.append(value)
        return value

    def of(self, owner):
        """at() for [T, columns] and the sites whose names begin so."""
        return lambda part, value: self.at(f"{owner}.{part}", value)


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
    """An attention function of transformers: query [1, H, Tq, D], key and value [1, G, Tk, D]."""
    heads, groups = query.shape[1], key.shape[1]

    def seen(part, x):
        columns = module.at(part, x[0].transpose(0, 1).flatten(1))
        return columns.unflatten(1, (x.shape[1], -1)).transpose(0, 1)

    queries, keys, values = seen("queries", query), seen("keys", key), seen("values", value)
    gates = module.at("gates", torch.ones(1, heads, dtype=query.dtype))
    outputs = []
    for h in range(heads):
        g = h * groups // heads
        scores = module.at(f"scores.{h}", scaling * queries[h] @ keys[g].T)
        masked = scores if attention_mask is None else scores + attention_mask[0, 0]
        weights = masked.to(module.softmax_type).softmax(-1).to(query.dtype)
        weights = module.at(f"weights.{h}", weights)
        outputs.append(weights @ values[g] * gates[0, h])
    outputs = module.at("heads", torch.cat(outputs, 1))
    return outputs.unflatten(1, (heads, -1))[None], None


def before(module, change):
    """What the module reads becomes change(what it reads), both [T, columns]."""

    def hook(_, args, kwargs):
        if "hidden_states" in kwargs:
            return args, {**kwargs, "hidden_states": change(kwargs["hidden_states"][0])[None]}
        return (change(args[0][0])[None], *args[1:]), kwargs

    module.register_forward_pre_hook(hook, with_kwargs=True)


def after(module, change):
    """Likewise what it gives, of a tuple the first."""

    def hook(_, __, output):
        if isinstance(output, tuple):
            return (change(output[0][0])[None], *output[1:])
        return change(output[0])[None]

    module.register_forward_hook(hook)


def see(at, part):
    return lambda value: at(part, value)


def see_attention(at, module, heads, projection, queries=None, keys=None, softmax_type=torch.float64):
    """projection: W^O. queries, keys: the modules that project them; none: GPT-2's one of all three."""
    module.at, module.softmax_type = at, softmax_type
    before(module, see(at, "input"))
    if queries is not None:
        after(queries, see(at, "projected_queries"))
        after(keys, see(at, "projected_keys"))
    else:

        def split(value):
            q, k, v = value.chunk(3, dim=1)
            return torch.cat([at("projected_queries", q), at("projected_keys", k), v], 1)

        after(module.c_attn, split)

    def project(_, args, __):
        weight = projection.weight if isinstance(projection, Conv1D) else projection.weight.T
        parts = zip(args[0][0].chunk(heads, dim=1), weight.chunk(heads, dim=0))
        total = sum(at(f"contributions.{h}", z @ w) for h, (z, w) in enumerate(parts))
        return at("output", total if projection.bias is None else total + projection.bias)[None]

    projection.register_forward_hook(project)


def see_layers(sites, stack, layers, see_inside, last):
    """see_inside(at of the layer, owner, layer). last: the module that gives the states; it may be the last layer."""
    before(layers[0], see(sites.of(stack), "embeddings"))
    for n, layer in enumerate(layers):
        owner = f"{stack}.{n}"
        before(layer, see(sites.of(owner), "input"))
        see_inside(sites.of(owner), owner, layer)
        after(layer, see(sites.of(owner), "output"))
    after(last, see(sites.of(stack), "states"))


def see_feed_forward(at, second):
    """second: the module that reads the hidden units."""
    before(second, see(at, "feed_forward.hidden"))
    after(second, see(at, "feed_forward.output"))


def see_bert(sites, model):
    def inside(at, owner, layer):
        own, output = layer.attention.self, layer.attention.output
        see_attention(sites.of(f"{owner}.self_attention"), own, model.config.num_attention_heads, output.dense,
                      own.query, own.key)
        after(output.LayerNorm, see(at, "after_self_attention"))
        see_feed_forward(at, layer.output.dense)

    layers = model.bert.encoder.layer
    see_layers(sites, "encoder", layers, inside, layers[-1])
    if model.bert.pooler is not None:
        model.bert.pooler.register_forward_hook(lambda _, __, pooled: sites.at("encoder.pooled", pooled))


def see_sum(at, layer, own):
    """The sum after self-attention has no module: the attention gives what is lacking to it."""
    kept = {}

    def keep(value):
        kept["input"] = value
        return value

    before(layer, keep)
    after(own, lambda value: at("after_self_attention", kept["input"] + value) - kept["input"])


def see_gpt2(sites, model):
    def inside(at, owner, layer):
        see_attention(sites.of(f"{owner}.self_attention"), layer.attn, model.config.n_head, layer.attn.c_proj)
        see_sum(at, layer, layer.attn)
        see_feed_forward(at, layer.mlp.c_proj)

    see_layers(sites, "decoder", model.transformer.h, inside, model.transformer.ln_f)


def see_llama(sites, model):
    def inside(at, owner, layer):
        own = layer.self_attn
        see_attention(sites.of(f"{owner}.self_attention"), own, model.config.num_attention_heads, own.o_proj,
                      own.q_proj, own.k_proj, softmax_type=torch.float32)
        see_sum(at, layer, own)
        see_feed_forward(at, layer.mlp.down_proj)

    see_layers(sites, "decoder", model.model.layers, inside, model.model.norm)


def see_marian(sites, model):
    def inside(at, owner, layer):
        attentions = [("self_attention", layer.self_attn, layer.self_attn_layer_norm)]
        if owner.startswith("decoder"):
            attentions.append(("cross_attention", layer.encoder_attn, layer.encoder_attn_layer_norm))
        for name, own, norm in attentions:
            see_attention(sites.of(f"{owner}.{name}"), own, own.num_heads, own.out_proj, own.q_proj, own.k_proj)
            after(norm, see(at, f"after_{name}"))
        see_feed_forward(at, layer.fc2)

    for stack, module in (("encoder", model.model.encoder), ("decoder", model.model.decoder)):
        see_layers(sites, stack, module.layers, inside, module.layers[-1])


SEE = {"bert": see_bert, "gpt2": see_gpt2, "llama": see_llama, "marian": see_marian}


def joined(parts):
    """End to end, with columns of zeros behind narrow ones."""
    widest = max(part.shape[1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, widest - part.shape[1])) for part in parts]).detach()


def other(parts):
    """What is put in place of a value."""
    row, put = 0, []
    for part in parts:
        i = torch.arange(row, row + part.shape[0], dtype=torch.float64)[:, None]
        put.append(0.5 * part.detach() + 0.1 * torch.cos(3 * i + torch.arange(part.shape[1])))
        row += part.shape[0]
    return put


def make(name, kind, file):
    family = name.split("/")[0]
    load = lambda how: kind.from_pretrained(GOLDENS / name, dtype=torch.float64, attn_implementation=how).eval()
    model, plain, sites = load("sites"), load("eager"), Sites()
    config = model.config
    SEE[family](sites, model)
    random = np.random.default_rng(13)
    draw = lambda vocabulary, lengths: [random.integers(3, vocabulary, n).tolist() for n in lengths]
    tensors = {}

    def save(what, lists, lengths):
        tensors[what] = np.concatenate(lists).astype(np.int64)
        tensors[lengths] = np.array([len(ids) for ids in lists], dtype=np.int64)

    if family == "marian":
        stack = "decoder"
        sources, targets = draw(config.vocab_size, SOURCE_LENGTHS), draw(config.decoder_vocab_size, TARGET_LENGTHS)
        for target in targets:
            target[0] = config.decoder_start_token_id
        save("source", sources, "source_lengths")
        save("target_in", targets, "target_in_lengths")
        inputs = [dict(input_ids=torch.tensor([s]), decoder_input_ids=torch.tensor([t]), use_cache=False)
                  for s, t in zip(sources, targets)]
    else:
        stack = "encoder" if family == "bert" else "decoder"
        ids = draw(config.vocab_size, LENGTHS)
        save("ids", ids, "lengths")
        more = {} if family == "bert" else {"use_cache": False}
        inputs = [dict(input_ids=torch.tensor([i]), **more) for i in ids]

    def logits_of(which, sequence):
        out = which(**inputs[sequence])
        return (out.prediction_logits if "prediction_logits" in out else out.logits)[0]

    def run(put=(), watching=False):
        """Returns sum(logits * direction)."""
        sites.begin(put, watching)
        seen = [sites.at(f"{stack}.logits", logits_of(model, s)) for s in range(len(inputs))]
        return (torch.cat(seen) * direction).sum()

    with torch.no_grad():
        expected = torch.cat([logits_of(plain, s) for s in range(len(inputs))])
        direction = torch.tensor(0.1 * random.standard_normal(expected.shape)).float().double()
        tensors["direction"] = direction.float().numpy()
        run()
    values = sites.values
    difference = (torch.cat(values[f"{stack}.logits"]) - expected).abs().max().item()
    assert difference < 1e-9, difference

    run(watching=True).backward()
    watched = sites.values
    assert watched.keys() == values.keys()
    worst = 0
    step, tolerance = (1e-3, 3e-3) if family == "llama" else (3e-5, 1e-6)
    for site, parts in values.items():
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in watched[site]]
        tensors[f"value.{site}"] = joined(parts).float().numpy()
        tensors[f"gradient.{site}"] = joined(gradients).float().numpy()
        along = [torch.tensor(random.standard_normal(p.shape)) for p in parts]
        with torch.no_grad():
            ends = [run({site: [p + s * a for p, a in zip(parts, along)]}) for s in (step, -step)]
            slope = ((ends[0] - ends[1]) / (2 * step)).item()
            wanted = sum((g * a).sum().item() for g, a in zip(gradients, along))
            worst = max(worst, abs(slope - wanted) / (1 + abs(slope)))
            assert abs(slope - wanted) < tolerance * (1 + abs(slope)), (site, slope, wanted)
            if not site.endswith((".logits", ".pooled")):
                run({site: other(parts)})
                tensors[f"replaced.{site}"] = joined(sites.values[f"{stack}.states"]).float().numpy()
    save_file(tensors, file)
    print(f"{name}: {len(values)} sites, {file.stat().st_size} bytes; logits as without sites within "
          f"{difference:.1e}, slopes within {worst:.1e}")


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "sites"
    folder.mkdir(parents=True, exist_ok=True)
    AttentionInterface.register("sites", attention)
    AttentionMaskInterface.register("sites", eager_mask)
    for name, kind in MODELS.items():
        make(name, kind, folder / f"{name.replace('/', '_')}.safetensors")


if __name__ == "__main__":
    main()
