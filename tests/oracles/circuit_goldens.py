"""Makes tests/goldens/circuits.safetensors: what single edges between heads and layers of some models in tests/goldens do for the
difference of two logits, in double precision, with transformers' modules and hooks. A target, such as the queries of one head, reads a
stream that is made anew for it, sublayer by sublayer, with what one source writes taken from the corrupt text's run: the effect. The score
of an edge is the derivative of the same along what the source writes, the mean of runs whose embeddings lie between both texts. Of each
model:

    MODEL.clean, MODEL.corrupt  [n] what it reads; of a translator MODEL.target, too: what its decoder reads
    MODEL.answers  [3] the row that predicts, and the two tokens
    MODEL.edges    [edges, 7] source: stack, sublayer (-1: the embeddings), head (-1: none); target: stack, sublayer (-1: the last states),
                   part (0 queries, 1 keys, 2 values, 3 feed-forward layer, 4 states), head
    MODEL.effects, MODEL.scores  [edges] in logits
    MODEL.ends     [2] the difference of the clean and of the corrupt text

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/circuit_goldens.py
"""

import pathlib
import random
from dataclasses import dataclass

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

GOLDENS = pathlib.Path(__file__).parent.parent / "goldens"
CLEAN, CORRUPT = [5, 3, 7, 11, 2, 13, 6], [5, 8, 7, 4, 2, 13, 6]
TARGET = [1, 9, 4, 8]
ROW, ANSWER, WRONG = 2, 10, 4
STEPS, EDGES = 3, 60


@dataclass
class Sublayer:
    adds: torch.nn.Module  # whose output is what it adds: W_O, or the feed-forward layer's last matrix
    reads: list  # of attention the modules of queries, keys and values; else the one whose input is the feed-forward layer's
    heads: int = 0  # 0: a feed-forward layer
    key_heads: int = 0
    before: torch.nn.Module = None
    output_norm: torch.nn.Module = None
    after: torch.nn.Module = None
    transposed: bool = False  # W_O, and queries, keys and values are one matrix, as in GPT-2
    crosses: bool = False
    place: int = None  # before which sublayer it reads the stream; None: itself


@dataclass
class Stack:
    first: torch.nn.Module  # whose input is the embeddings
    sublayers: list
    end: torch.nn.Module = None  # the norm at its end
    states: torch.nn.Module = None  # of the last stack: whose input is the stream at its end, before the norm


def llama(model, c):
    layers = model.model.layers
    sublayers = []
    for layer in layers:
        a = layer.self_attn
        sublayers += [Sublayer(a.o_proj, [a.q_proj, a.k_proj, a.v_proj], c.num_attention_heads, c.num_key_value_heads,
                               layer.input_layernorm),
                      Sublayer(layer.mlp, [layer.mlp], before=layer.post_attention_layernorm)]
    return [Stack(layers[0], sublayers, model.model.norm, model.model.norm)]


def gemma2(model, c):
    stacks = llama(model, c)
    for i, layer in enumerate(model.model.layers):
        attention, feed_forward = stacks[0].sublayers[2 * i:2 * i + 2]
        attention.output_norm = layer.post_attention_layernorm
        feed_forward.before, feed_forward.output_norm = layer.pre_feedforward_layernorm, layer.post_feedforward_layernorm
    return stacks


def gpt2(model, c):
    body = model.transformer
    sublayers = []
    for layer in body.h:
        a = layer.attn
        sublayers += [Sublayer(a.c_proj, [a.c_attn] * 3, c.n_head, c.n_head, layer.ln_1, transposed=True),
                      Sublayer(layer.mlp, [layer.mlp], before=layer.ln_2)]
    return [Stack(body.h[0], sublayers, body.ln_f, body.ln_f)]


def bert(model, c):
    sublayers = []
    for layer in model.bert.encoder.layer:
        a = layer.attention
        sublayers += [Sublayer(a.output.dense, [a.self.query, a.self.key, a.self.value], c.num_attention_heads, c.num_attention_heads,
                               after=a.output.LayerNorm),
                      Sublayer(layer.output.dense, [layer.intermediate], after=layer.output.LayerNorm)]
    return [Stack(model.bert.encoder.layer[0], sublayers, None, model.cls)]


def marian(model, c):
    def attention(a, norm, heads, crosses=False):
        return Sublayer(a.out_proj, [a.q_proj, a.k_proj, a.v_proj], heads, heads, after=norm, crosses=crosses)

    def stack(side, heads):
        sublayers = []
        for layer in side.layers:
            sublayers.append(attention(layer.self_attn, layer.self_attn_layer_norm, heads))
            if hasattr(layer, "encoder_attn"):
                sublayers.append(attention(layer.encoder_attn, layer.encoder_attn_layer_norm, heads, True))
            sublayers.append(Sublayer(layer.fc2, [layer.fc1], after=layer.final_layer_norm))
        return Stack(side.layers[0], sublayers)

    body = model.model
    stacks = [stack(body.encoder, c.encoder_attention_heads), stack(body.decoder, c.decoder_attention_heads)]
    stacks[1].states = model.lm_head
    return stacks


def t5(model, c):
    def stack(side):
        sublayers = []
        for block in side.block:
            for part in block.layer:
                crosses = hasattr(part, "EncDecAttention")
                if hasattr(part, "DenseReluDense"):
                    sublayers.append(Sublayer(part.DenseReluDense, [part.DenseReluDense], before=part.layer_norm))
                    continue
                a = part.EncDecAttention if crosses else part.SelfAttention
                sublayers.append(Sublayer(a.o, [a.q, a.k, a.v], c.num_heads, c.num_heads, part.layer_norm, crosses=crosses))
        return Stack(side.block[0], sublayers, side.final_layer_norm)

    stacks = [stack(model.encoder), stack(model.decoder)]
    stacks[1].states = model.decoder.final_layer_norm
    return stacks


def rows_of(x):
    return x[0] if x.dim() == 3 else x


class Patcher:
    """Runs a model; keeps what its sources give; makes one target read another stream."""

    def __init__(self, model, stacks):
        self.model, self.stacks = model, stacks
        self.run = None  # of this pass: embeddings by stack, outputs and heads' values by stack and sublayer
        self.embeddings = None  # to be put in, by stack
        self.edge = self.change = None  # and what is added to what the source writes
        for s, stack in enumerate(stacks):
            stack.first.register_forward_pre_hook(lambda m, a, k, s=s: self.begin(s, a, k), with_kwargs=True)
            for i, sublayer in enumerate(stack.sublayers):
                sublayer.adds.register_forward_hook(lambda m, a, o, s=s, i=i: self.keep(s, i, a, o))
                if not sublayer.heads:
                    sublayer.reads[0].register_forward_pre_hook(lambda m, a, s=s, i=i: self.whole((s, i, 3, 0), a))
                for part in range(3 if sublayer.heads else 0):
                    sublayer.reads[part].register_forward_hook(lambda m, a, o, s=s, i=i, p=part: self.one_head(s, i, p, m, o))
            if stack.states is not None:
                stack.states.register_forward_pre_hook(lambda m, a: self.whole((len(stacks) - 1, -1, 4, 0), a))

    def begin(self, s, args, kwargs):
        x = args[0] if args else kwargs["hidden_states"]
        if self.embeddings is not None:
            x = self.embeddings[s][None]
        self.run[s] = {"embeddings": rows_of(x), "outputs": {}, "heads": {}}
        return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": x})

    def keep(self, s, i, args, out):
        self.run[s]["outputs"][i] = rows_of(out[0] if isinstance(out, tuple) else out)
        if self.stacks[s].sublayers[i].heads:
            self.run[s]["heads"][i] = rows_of(args[0])

    def written(self, run, source):
        s, i, head = source
        if i < 0:
            return run[s]["embeddings"]
        sublayer = self.stacks[s].sublayers[i]
        if not sublayer.heads:
            return run[s]["outputs"][i]
        z = run[s]["heads"][i]
        w = sublayer.adds.weight if sublayer.transposed else sublayer.adds.weight.T
        size = z.shape[-1] // sublayer.heads
        return z[:, head * size:(head + 1) * size] @ w[head * size:(head + 1) * size]

    def stream(self, s, place):
        """What the edge's target reads before that sublayer of a stack, or at its end."""
        source = self.edge[:3]
        change = self.change(self.run)
        x = self.run[s]["embeddings"]
        if source[1] < 0:
            x = x + change
        for i in range(place):
            sublayer = self.stacks[s].sublayers[i]
            out = self.run[s]["outputs"][i]
            if source[1] == i:
                out = out + change
            x = x + (sublayer.output_norm(out) if sublayer.output_norm else out)
            x = sublayer.after(x) if sublayer.after else x
        return x

    def whole(self, target, args):
        if self.edge is None or self.edge[3:] != target:
            return None
        s, i = target[:2]
        if i < 0:
            return (self.stream(s, len(self.stacks[s].sublayers))[None], *args[1:])
        x = self.stream(s, i)
        sublayer = self.stacks[s].sublayers[i]
        return ((sublayer.before(x) if sublayer.before else x)[None], *args[1:])

    def one_head(self, s, i, part, module, out):
        if self.edge is None or self.edge[3:6] != (s, i, part):
            return None
        sublayer, head = self.stacks[s].sublayers[i], self.edge[6]
        memory = sublayer.crosses and part > 0
        x = self.stream(0 if memory else s, len(self.stacks[0].sublayers) if memory else i)
        norm = self.stacks[0].end if memory else sublayer.before
        x = norm(x) if norm else x
        weight = module.weight if sublayer.transposed else module.weight.T
        bias = getattr(module, "bias", None)
        made = x @ weight + (bias if bias is not None else 0)
        if sublayer.transposed:  # queries, keys and values side by side
            width = made.shape[-1] // 3 // sublayer.heads
            begin = (part * sublayer.heads + head) * width
        else:
            width = made.shape[-1] // (sublayer.heads if part == 0 else sublayer.key_heads)
            begin = head * width
        shaped = made.reshape(out.shape)
        return torch.cat([out[..., :begin], shaped[..., begin:begin + width], out[..., begin + width:]], -1)

    def difference(self, ids):
        self.run = {}
        given = {"input_ids": torch.tensor([ids])}
        if self.model.config.is_encoder_decoder:
            given["decoder_input_ids"] = torch.tensor([TARGET])
        logits = self.model(**given).logits[0, ROW]
        return logits[ANSWER] - logits[WRONG], self.run


def all_edges(stacks):
    sources = [(s, i, h) for s, stack in enumerate(stacks) for i in range(-1, len(stack.sublayers))
               for h in (range(stack.sublayers[i].heads) if i >= 0 and stack.sublayers[i].heads else [-1])]
    edges = []
    for s, stack in enumerate(stacks):
        for i, sublayer in enumerate(stack.sublayers):
            parts = [(0, sublayer.heads), (1, sublayer.key_heads), (2, sublayer.key_heads)] if sublayer.heads else [(3, 1)]
            for part, heads in parts:
                memory = sublayer.crosses and part in (1, 2)
                for source in sources:
                    if source[0] == (0 if memory else s) and (memory or source[1] < i):
                        edges += [(*source, s, i, part, head) for head in range(heads)]
    last = len(stacks) - 1
    return edges + [(*source, last, -1, 4, 0) for source in sources if source[0] == last]


MODELS = {
    "bert/masked": (transformers.BertForMaskedLM, bert),
    "gemma2/logits_capped": (transformers.Gemma2ForCausalLM, gemma2),
    "gpt2/tied": (transformers.GPT2LMHeadModel, gpt2),
    "llama/tied_grouped": (transformers.LlamaForCausalLM, llama),
    "marian/gelu_f16": (transformers.MarianMTModel, marian),
    "t5/plain": (transformers.T5ForConditionalGeneration, t5),
}


def main():
    found = {}
    for name, (kind, stacks_of) in MODELS.items():
        model = kind.from_pretrained(GOLDENS / name, attn_implementation="eager", dtype=torch.float64).double().eval()
        model.requires_grad_(False)
        patcher = Patcher(model, stacks_of(model, model.config))
        clean, of_clean = patcher.difference(CLEAN)
        corrupt, of_corrupt = patcher.difference(CORRUPT)
        edges = all_edges(patcher.stacks)
        random.Random(7).shuffle(edges)
        edges = sorted(edges[:EDGES])
        effects, scores = [], []
        for edge in edges:
            patcher.edge, patcher.embeddings = edge, None
            patcher.change = lambda run: patcher.written(of_corrupt, edge[:3]) - patcher.written(run, edge[:3])
            effects.append(float(clean - patcher.difference(CLEAN)[0]))
            along = patcher.written(of_clean, edge[:3]) - patcher.written(of_corrupt, edge[:3])
            derivatives = []
            for step in range(STEPS):
                share = (step + 0.5) / STEPS
                patcher.embeddings = [of_corrupt[s]["embeddings"] + share * (of_clean[s]["embeddings"] - of_corrupt[s]["embeddings"])
                                      for s in range(len(patcher.stacks))]
                strength = torch.zeros((), dtype=torch.float64, requires_grad=True)
                patcher.change = lambda run: strength * along
                value = patcher.difference(CLEAN)[0]
                derivatives.append(float(torch.autograd.grad(value, strength, allow_unused=True)[0] or 0.0))
            scores.append(sum(derivatives) / STEPS)
        patcher.edge = patcher.embeddings = None
        for what, numbers in [("clean", CLEAN), ("corrupt", CORRUPT), ("answers", [ROW, ANSWER, WRONG]), ("edges", edges)]:
            found[f"{name}.{what}"] = np.array(numbers, np.int32)
        if model.config.is_encoder_decoder:
            found[f"{name}.target"] = np.array(TARGET, np.int32)
        found[f"{name}.effects"] = np.array(effects)
        found[f"{name}.scores"] = np.array(scores)
        found[f"{name}.ends"] = np.array([float(clean), float(corrupt)])
        print(name, found[f"{name}.ends"], np.abs(found[f"{name}.effects"]).max().round(4), np.corrcoef(effects, scores)[0, 1].round(3))
    save_file(found, GOLDENS / "circuits.safetensors")


if __name__ == "__main__":
    main()
