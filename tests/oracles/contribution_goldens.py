"""Makes tests/goldens/contributions.safetensors: what each part of some models in tests/goldens adds to the difference of two logits,
in double precision, with transformers' modules and hooks. Each part, a head's output times its rows of W_O or what a feed-forward
layer adds, is carried forward through the norms behind it, whose scales are those of the run, and through the output layer: no
gradient is taken. Of each model:

    MODEL.ids      [n] what it reads; of a translator MODEL.target, too: what its decoder reads
    MODEL.answers  [3] the row that predicts, and the two tokens
    MODEL.parts    [parts] embeddings, then layer by layer the heads of self-attention, of cross-attention, and the feed-forward layer
    MODEL.score    [1]

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/contribution_goldens.py
"""

import pathlib

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

GOLDENS = pathlib.Path(__file__).parent.parent / "goldens"
IDS = [5, 3, 7, 11, 2, 13, 6]
TARGET = [1, 9, 4, 8]
ANSWERS = [10, 4]


class Run:
    """A pass, in which the inputs and outputs of modules are kept."""

    def __init__(self, model):
        self.model, self.seen = model, {}
        for module in model.modules():
            module.register_forward_hook(self.keep)

    def keep(self, module, args, out):
        first = out[0] if isinstance(out, tuple) else out
        self.seen[module] = (self.rows(args[0]) if args else None, self.rows(first))

    @staticmethod
    def rows(x):
        """Of the one text of a batch."""
        return None if not isinstance(x, torch.Tensor) else x[0] if x.dim() == 3 else x

    def into(self, module):
        return self.seen[module][0]

    def out_of(self, module):
        return self.seen[module][1]

    def held(self, norm, v):
        """The norm as a linear map of v, with its scale and without its bias."""
        x = self.into(norm)
        gain = norm.weight
        epsilon = getattr(norm, "variance_epsilon", getattr(norm, "eps", 1e-6))
        if isinstance(norm, torch.nn.LayerNorm):
            scale = (x.var(-1, unbiased=False, keepdim=True) + epsilon).rsqrt()
            return (v - v.mean(-1, keepdim=True)) * scale * gain
        if "Gemma" in type(norm).__name__:
            gain = 1 + gain
        return v * (x.pow(2).mean(-1, keepdim=True) + epsilon).rsqrt() * gain


def by_head(run, output, heads, transposed=False):
    """What each head adds: its columns of W_O's input times its part of W_O. [heads][rows, d]"""
    z = run.into(output)
    w = output.weight if transposed else output.weight.T
    size = z.shape[-1] // heads
    return [z[:, h * size:(h + 1) * size] @ w[h * size:(h + 1) * size] for h in range(heads)]


def pre_norm(run, layers, final, embeddings, parts_of, logits_of):
    """parts_of(layer): pairs of what is added and the norms between it and the stream."""
    def end(v):
        return logits_of(run.held(final, v))

    found = [end(embeddings)]
    for layer in layers:
        for v, norms in parts_of(layer):
            for norm in norms:
                v = run.held(norm, v)
            found.append(end(v))
    return found


def post_norm(run, layers, embeddings, sublayers_of, logits_of):
    """sublayers_of(layer): of each sublayer in order, what its parts add, and the norm behind it."""
    chain = [(parts, norm) for layer in layers for parts, norm in sublayers_of(layer)]

    def end(v, first):
        for _, norm in chain[first:]:
            v = run.held(norm, v)
        return logits_of(v)

    found = [end(embeddings, 0)]
    for i, (parts, _) in enumerate(chain):
        found += [end(v, i) for v in parts]
    return found


def llama(run, model, config):
    heads = config.num_attention_heads
    return pre_norm(run, model.model.layers, model.model.norm, run.out_of(model.model.embed_tokens),
                    lambda layer: [(v, []) for v in by_head(run, layer.self_attn.o_proj, heads)] + [(run.out_of(layer.mlp), [])],
                    lambda v: v @ model.lm_head.weight.T)


def gemma2(run, model, config):
    heads = config.num_attention_heads
    capped = run.out_of(model.lm_head)
    cap = config.final_logit_softcapping
    factor = torch.tanh(capped / cap) * cap / capped
    return pre_norm(run, model.model.layers, model.model.norm, run.into(model.model.layers[0].input_layernorm),
                    lambda layer: [(v, [layer.post_attention_layernorm]) for v in by_head(run, layer.self_attn.o_proj, heads)]
                    + [(run.out_of(layer.mlp), [layer.post_feedforward_layernorm])],
                    lambda v: v @ model.lm_head.weight.T * factor)


def gpt2(run, model, config):
    body = model.transformer
    return pre_norm(run, body.h, body.ln_f, run.into(body.h[0].ln_1),
                    lambda layer: [(v, []) for v in by_head(run, layer.attn.c_proj, config.n_head, True)] + [(run.out_of(layer.mlp), [])],
                    lambda v: v @ model.lm_head.weight.T)


def gpt_neox(run, model, config):
    body = model.gpt_neox
    return pre_norm(run, body.layers, body.final_layer_norm, run.into(body.layers[0].input_layernorm),
                    lambda layer: [(v, []) for v in by_head(run, layer.attention.dense, config.num_attention_heads)]
                    + [(run.out_of(layer.mlp), [])],
                    lambda v: v @ model.get_output_embeddings().weight.T)


def bert(run, model, config):
    head = model.cls.predictions
    dense, norm = head.transform.dense, head.transform.LayerNorm
    z = run.out_of(dense)
    factor = head.transform.transform_act_fn(z) / z

    def logits_of(v):
        return run.held(norm, (v @ dense.weight.T) * factor) @ head.decoder.weight.T

    def sublayers_of(layer):
        attention, out = layer.attention.output, layer.output
        return [(by_head(run, attention.dense, config.num_attention_heads), attention.LayerNorm), ([run.out_of(out.dense)], out.LayerNorm)]

    return post_norm(run, model.bert.encoder.layer, run.out_of(model.bert.embeddings), sublayers_of, logits_of)


def marian(run, model, config):
    def sublayers_of(layer):
        heads = config.decoder_attention_heads
        return [(by_head(run, layer.self_attn.out_proj, heads), layer.self_attn_layer_norm),
                (by_head(run, layer.encoder_attn.out_proj, heads), layer.encoder_attn_layer_norm),
                ([run.out_of(layer.fc2)], layer.final_layer_norm)]

    decoder = model.model.decoder
    embeddings = run.out_of(decoder.embed_tokens) * decoder.embed_scale + run.out_of(decoder.embed_positions)
    return post_norm(run, decoder.layers, embeddings, sublayers_of, lambda v: v @ model.lm_head.weight.T)


def t5(run, model, config):
    decoder = model.decoder

    def parts_of(block):
        own, cross, ff = block.layer
        return ([(v, []) for v in by_head(run, own.SelfAttention.o, config.num_heads)]
                + [(v, []) for v in by_head(run, cross.EncDecAttention.o, config.num_heads)]
                + [(run.out_of(ff.DenseReluDense), [])])

    scale = config.d_model**-0.5
    return pre_norm(run, decoder.block, decoder.final_layer_norm, run.into(decoder.block[0].layer[0].layer_norm), parts_of,
                    lambda v: (v * scale) @ model.get_output_embeddings().weight.T)


MODELS = {
    "bert/masked": (transformers.BertForMaskedLM, bert),
    "gemma2/logits_capped": (transformers.Gemma2ForCausalLM, gemma2),
    "gpt2/tied": (transformers.GPT2LMHeadModel, gpt2),
    "gpt_neox/parallel": (transformers.GPTNeoXForCausalLM, gpt_neox),
    "llama/tied_grouped": (transformers.LlamaForCausalLM, llama),
    "marian/gelu_f16": (transformers.MarianMTModel, marian),
    "t5/plain": (transformers.T5ForConditionalGeneration, t5),
}


def main():
    found = {}
    for name, (kind, parts_of) in MODELS.items():
        model = kind.from_pretrained(GOLDENS / name, attn_implementation="eager", dtype=torch.float64).double().eval()
        run = Run(model)
        translates = model.config.is_encoder_decoder
        given = {"input_ids": torch.tensor([IDS])}
        if translates:
            given["decoder_input_ids"] = torch.tensor([TARGET])
        row = 2
        with torch.no_grad():
            logits = model(**given).logits[0, row]
            parts = [part.reshape(-1, part.shape[-1])[row] for part in parts_of(run, model, model.config)]
        answer, wrong = ANSWERS
        found[f"{name}.ids"] = np.array(IDS, np.int32)
        if translates:
            found[f"{name}.target"] = np.array(TARGET, np.int32)
        found[f"{name}.answers"] = np.array([row, answer, wrong], np.int32)
        found[f"{name}.parts"] = np.array([float(part[answer] - part[wrong]) for part in parts])
        found[f"{name}.score"] = np.array([float(logits[answer] - logits[wrong])])
        print(name, found[f"{name}.score"], found[f"{name}.parts"].round(3))
    save_file(found, GOLDENS / "contributions.safetensors")


if __name__ == "__main__":
    main()
