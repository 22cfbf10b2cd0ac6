"""Compares the circuits of heads that `multihead heads circuits --json` wrote with those of whole matrices in float64, made of
the weights as transformers reads them: BERT, GPT-2, Llama's kind and Qwen3.

    multihead heads circuits FOLDER --json -o FILE && venv/bin/python tests/oracles/circuits_check.py FILE FOLDER

Compositions come another way than the library's: |A B|^2 is the sum of the products of the numbers of A^T A and B B^T.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import transformers

TOLERANCE = 1e-4


def numbers(parameter):
    return parameter.detach().double().numpy()


def norm(gain, centred):
    """N, which stands for a norm: x becomes x N, but for its length."""
    d = len(gain)
    return (np.eye(d) - (1 / d if centred else 0)) @ np.diag(gain)


def bert(folder, config):
    """The name of each attention, its W_Q, W_K, W_V and W_O, and the widths of heads; W_E and W_U, or None."""
    predicts = bool({"BertForMaskedLM", "BertForPreTraining"} & set(config.architectures or []))
    model = (transformers.AutoModelForMaskedLM if predicts else transformers.AutoModel).from_pretrained(folder).eval()
    base = model.bert if predicts else model
    layers = []
    for layer in base.encoder.layer:
        own = layer.attention.self
        layers.append([numbers(w.weight).T for w in (own.query, own.key, own.value, layer.attention.output.dense)])
    words = None
    if predicts:
        table, head = numbers(base.embeddings.word_embeddings.weight), model.cls.predictions.transform
        words = (table @ norm(numbers(base.embeddings.LayerNorm.weight), True),
                 numbers(head.dense.weight).T @ norm(numbers(head.LayerNorm.weight), True) @ table.T)
    return "encoder", layers, config.hidden_size // config.num_attention_heads, words


def gpt2(folder, config):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    layers = []
    for layer in model.transformer.h:
        before = norm(numbers(layer.ln_1.weight), True)
        q, k, v = np.split(numbers(layer.attn.c_attn.weight), 3, axis=1)
        layers.append([before @ q, before @ k, before @ v, numbers(layer.attn.c_proj.weight)])
    words = (numbers(model.transformer.wte.weight),
             norm(numbers(model.transformer.ln_f.weight), True) @ numbers(model.lm_head.weight).T)
    return "decoder", layers, config.hidden_size // config.num_attention_heads, words


def llama(folder, config):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    layers = []
    for layer in model.model.layers:
        own, before = layer.self_attn, norm(numbers(layer.input_layernorm.weight), False)
        q, k, v = (before @ numbers(w.weight).T for w in (own.q_proj, own.k_proj, own.v_proj))
        if hasattr(own, "q_norm"):
            q *= np.tile(numbers(own.q_norm.weight), q.shape[1] // size)
            k *= np.tile(numbers(own.k_norm.weight), k.shape[1] // size)
        layers.append([q, k, v, numbers(own.o_proj.weight).T])
    words = (numbers(model.model.embed_tokens.weight),
             norm(numbers(model.model.norm.weight), False) @ numbers(model.lm_head.weight).T)
    return "decoder", layers, size, words


FAMILIES = {"bert": bert, "gpt2": gpt2, "llama": llama, "mistral": llama, "qwen2": llama, "qwen3": llama}


def heads_of(folder):
    """{name: (layer, W_QK, W_OV, copying score or None)}."""
    config = transformers.AutoConfig.from_pretrained(folder)
    stack, layers, size, words = FAMILIES[config.model_type](folder, config)
    heads = {}
    for number, (q, k, v, o) in enumerate(layers):
        count, groups = q.shape[1] // size, k.shape[1] // size
        for h in range(count):
            own, shared = slice(h * size, (h + 1) * size), slice(h * groups // count * size, (h * groups // count + 1) * size)
            ov = v[:, shared] @ o[own]
            copying = None
            if words is not None:
                # Of A B and B A the eigenvalues other than 0 are the same; in [d_model, d_model] here.
                values = np.linalg.eigvals(ov @ words[1] @ words[0])
                copying = values.real.sum() / np.abs(values).sum()
            heads[f"{stack}.{number}.self_attention.{h}"] = (number, q[:, own] @ k[:, shared].T, ov, copying)
    return heads


def main():
    written, folder = sys.argv[1:]
    with open(written, encoding="utf8") as file:
        found = json.load(file)
    heads = heads_of(folder)
    worst = {}

    def compare(what, name, a, b):
        worst[what] = max(worst.get(what, 0), abs(a - b) / max(1, abs(b)))
        if not worst[what] <= TOLERANCE:
            sys.exit(f"circuits_check: {what} of {name}: {a}, expected {b}")

    assert [head["head"] for head in found["circuits"]] == list(heads)
    for head in found["circuits"]:
        name = head["head"]
        _, qk, ov, copying = heads[name]
        for part, whole in (("query_key", qk), ("value_output", ov)):
            values = np.linalg.svd(whole, compute_uv=False)
            shares = values[values > 1e-12 * values[0]] / values.sum()
            for i, value in enumerate(head[part]["singular_values"]):
                compare(f"{part} singular values", name, value, values[i])
            compare(f"{part} effective rank", name, head[part]["effective_rank"], np.exp(-(shares * np.log(shares)).sum()))
            compare(f"{part} norm", name, head[part]["norm"], np.linalg.norm(whole))
        assert (head["copying"] is None) == (copying is None), name
        if copying is not None:
            compare("copying", name, head["copying"], copying)

    writes, reads = {}, {}
    for name, (_, qk, ov, _) in heads.items():
        writes[name] = ov.T @ ov / (ov * ov).sum()
        reads[name] = {"queries": qk @ qk.T / (qk * qk).sum(), "keys": qk.T @ qk / (qk * qk).sum(),
                       "values": ov @ ov.T / (ov * ov).sum()}
    pairs = sum(3 for a in heads.values() for b in heads.values() if a[0] < b[0])
    assert len(found["compositions"]) == pairs, "write all compositions"
    for one in found["compositions"]:
        assert heads[one["from"]][0] < heads[one["to"]][0], one
        expected = np.sqrt(max(0, (writes[one["from"]] * reads[one["to"]][one["part"]]).sum()))
        compare("composition", f"{one['from']} with {one['part']} of {one['to']}", one["strength"], expected)
    print(f"{len(heads)} heads, {pairs} compositions; greatest differences: "
          + ", ".join(f"{what} {difference:.1e}" for what, difference in worst.items()))


if __name__ == "__main__":
    main()
