"""Makes tests/goldens/lens.json: what transformers says in double precision after each layer of some of the models in tests/goldens,
read by the model's own end (docs/heads/lens.md). The streams are what goes into the first layer and what each layer, or with
"sublayers" each attention's sum, gives; the end is called on them by its modules.

    scripts/python torch transformers safetensors numpy && .venv/bin/python tests/oracles/lens_goldens.py

Of words and labels each reading has the three largest log-probabilities, entropy, KL(p_end || p) and the ranks of the token that the
text has there and of what the model says in the end; of vectors the cosine with the text's own one. (Llama's norms, softmax and
angles of rotary positions are float32 there.)
"""

import json
import pathlib

import numpy as np
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BartForConditionalGeneration,
    BartForSequenceClassification,
    BertForMaskedLM,
    BertForSequenceClassification,
    LlamaForTokenClassification,
    MarianMTModel,
    T5ForConditionalGeneration,
)

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"


def first(out):
    return out[0] if isinstance(out, tuple) else out


class Streams:
    """The streams of one pass, by their sites."""

    def __init__(self):
        self.values, self.hooks = {}, []

    def of(self, site, module):
        self.hooks.append(module.register_forward_hook(lambda _, args, out: self.values.__setitem__(site, first(out)[0])))

    def into(self, site, module):
        self.hooks.append(module.register_forward_pre_hook(
            lambda _, args, kwargs: self.values.__setitem__(site, (args[0] if args else kwargs["hidden_states"])[0]),
            with_kwargs=True))  # fmt: skip


def llama_sublayers(streams, stack, i, layer):
    streams.into(f"{stack}.{i}.after_self_attention", layer.post_attention_layernorm)


def bert_sublayers(streams, stack, i, layer):
    streams.of(f"{stack}.{i}.after_self_attention", layer.attention.output)


def marian_sublayers(streams, stack, i, layer):
    streams.of(f"{stack}.{i}.after_self_attention", layer.self_attn_layer_norm)
    streams.of(f"{stack}.{i}.after_cross_attention", layer.encoder_attn_layer_norm)


def capped(logits, cap):
    return cap * torch.tanh(logits / cap)


# model: its class, stack, layers, end (of a row for each token), and what sees the sums after attentions
WORDS = {
    "llama/tied_grouped": (AutoModelForCausalLM, "decoder", lambda m: m.model.layers,
                           lambda m, x: m.lm_head(m.model.norm(x)), llama_sublayers),
    "gpt2/tied": (AutoModelForCausalLM, "decoder", lambda m: m.transformer.h,
                  lambda m, x: m.lm_head(m.transformer.ln_f(x)), None),
    "gemma2/logits_capped": (AutoModelForCausalLM, "decoder", lambda m: m.model.layers,
                             lambda m, x: capped(m.lm_head(m.model.norm(x)), m.config.final_logit_softcapping), None),
    "gpt_neox/parallel": (AutoModelForCausalLM, "decoder", lambda m: m.gpt_neox.layers,
                          lambda m, x: m.get_output_embeddings()(m.gpt_neox.final_layer_norm(x)), None),
    "bert/masked": (BertForMaskedLM, "encoder", lambda m: m.bert.encoder.layer, lambda m, x: m.cls(x), bert_sublayers),
    "marian/relu": (MarianMTModel, "decoder", lambda m: m.model.decoder.layers,
                    lambda m, x: m.lm_head(x) + m.final_logits_bias[0], marian_sublayers),
    "bart/plain": (BartForConditionalGeneration, "decoder", lambda m: m.model.decoder.layers,
                   lambda m, x: m.lm_head(x) + m.final_logits_bias[0], None),
    "t5/plain": (T5ForConditionalGeneration, "decoder", lambda m: m.decoder.block,
                 lambda m, x: m.lm_head(m.decoder.final_layer_norm(x)
                                        * (m.config.d_model ** -0.5 if m.config.tie_word_embeddings else 1)), None),
}  # fmt: skip
LABELS = {
    "labels/bert_pairs": (BertForSequenceClassification, "encoder", lambda m: m.bert.encoder.layer,
                          lambda m, x: m.classifier(m.bert.pooler(x[None])), bert_sublayers),
    "labels/llama_tokens": (LlamaForTokenClassification, "decoder", lambda m: m.model.layers,
                            lambda m, x: m.score(m.model.norm(x)), None),
    "labels/bart_pairs": (BartForSequenceClassification, "decoder", lambda m: m.model.decoder.layers,
                          lambda m, x: m.classification_head(x[-1:]), None),
}  # fmt: skip


def read(log_p, end, actual):
    """One row of log-probabilities as the golden file has it."""
    p, p_end = log_p.exp(), end.exp()
    largest = log_p.topk(3)
    rank = lambda token: 1 + int((log_p > log_p[token]).sum())
    return {
        "best": largest.indices.tolist(),
        "log_p": [round(x, 8) for x in largest.values.tolist()],
        "entropy": round(-(p * log_p).sum().item(), 8),
        "divergence": round((p_end * (end - log_p)).sum().item(), 8),
        "predicted": rank(int(end.argmax())),
        "actual": None if actual is None else rank(actual),
    }


def model_of(name, kind):
    return kind.from_pretrained(GOLDENS / name, dtype=torch.float64, attn_implementation="eager").eval()


def words(name, random, masked=False):
    kind, stack, layers, end, sublayers = WORDS.get(name) or LABELS[name]
    model, labels = model_of(name, kind), name in LABELS
    config = model.config
    ids = random.permutation(np.arange(5, config.vocab_size))[:6].tolist()
    case = {"model": name, "sublayers": sublayers is not None}
    inputs, actual = {}, [None] * len(ids)
    if getattr(config, "is_encoder_decoder", False) and not labels:
        size = getattr(config, "decoder_vocab_size", None) or config.vocab_size
        case["target"] = random.permutation(np.arange(5, size))[:3].tolist()
        inputs["decoder_input_ids"] = torch.tensor([[config.decoder_start_token_id, *case["target"]]])
        actual = [*case["target"], config.eos_token_id]
        ids.append(config.eos_token_id)
    elif labels:
        if getattr(config, "is_encoder_decoder", False):  # reads its end token
            ids.append(config.eos_token_id)
    elif stack == "decoder":
        actual = [*ids[1:], None]
    else:
        actual = list(ids)
        if masked:
            case["mask"] = ids[2]
    case["ids"] = ids
    streams = Streams()
    for i, layer in enumerate(layers(model)):
        if i == 0:
            streams.into(f"{stack}.embeddings", layer)
        if sublayers is not None:
            sublayers(streams, stack, i, layer)
        streams.of(f"{stack}.{i}.output", layer)
    if stack == "decoder":
        inputs["use_cache"] = False
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), **inputs).logits
        rows = {site: end(model, x).log_softmax(-1) for site, x in streams.values.items()}
    sites = sorted(rows, key=lambda site: site_order(site))
    last = rows[sites[-1]]
    assert (last - logits.reshape(last.shape).log_softmax(-1)).abs().max() < 1e-9, name
    positions = [2] if masked else range(len(last))
    if masked:
        actual[2] = None
    case["places"] = [{"site": site, "readings": [read(rows[site][i], last[i], None if labels else actual[i]) for i in positions]}
                      for site in sites]  # fmt: skip
    return case


def site_order(site):
    parts = site.split(".")
    if parts[1] == "embeddings":
        return (-1, 0)
    return int(parts[1]), ["after_self_attention", "after_cross_attention", "output"].index(parts[2])


def vectors(name):
    """Means of states, whose length no cosine knows."""
    from transformers import AutoTokenizer

    model, tokenizer = model_of(name, AutoModel), AutoTokenizer.from_pretrained(GOLDENS / name)
    streams, text, second = Streams(), "the cat sees two dogs", "a small house"
    streams.into("encoder.embeddings", model.encoder.layer[0])
    for i, layer in enumerate(model.encoder.layer):
        streams.of(f"encoder.{i}.output", layer)
    with torch.no_grad():
        other = model(**tokenizer(second, return_tensors="pt")).last_hidden_state[0].mean(0)
        own = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
    cosine = lambda x, y: round(torch.cosine_similarity(x, y, 0).item(), 8)
    return {"model": name, "text": text, "second": second,
            "places": [{"site": site, "own": cosine(x.mean(0), own), "second": cosine(x.mean(0), other)}
                       for site, x in streams.values.items()]}  # fmt: skip


def main():
    random = np.random.default_rng(19)
    cases = [words(name, random) for name in [*WORDS, *LABELS]]
    cases.append(words("bert/masked", random, masked=True))
    found = {"words": cases, "vectors": [vectors("sentences/plain")]}
    text = json.dumps(found, separators=(",", ":")).replace('{"site"', '\n{"site"').replace('{"model"', '\n{"model"')
    (GOLDENS / "lens.json").write_text(text + "\n")
    print(f"{len(cases)} models, {len(text)} characters")


if __name__ == "__main__":
    main()
