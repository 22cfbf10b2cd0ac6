"""The three models of docs/heads/results ("What answers rest on in real models") on their texts: scores of the whole and of a changed
model, the attentions in the order in which they run, and copies of a model's folder with other numbers. scripts/answers_models runs it."""

import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import multihead as mh
import numpy as np
from importance_orders import sentences_of
from safetensors.numpy import load_file, save_file

ALL_SENTENCES = 10**9  # more than any corpus has


FAMILIES = {  # where the matrices of an attention are in model.safetensors, and how they are called
    "minilm": ({"self_attention": "encoder.layer.{layer}.attention."},
               {"q": "self.query", "k": "self.key", "v": "self.value", "o": "output.dense"}),
    "smollm2": ({"self_attention": "model.layers.{layer}.self_attn."}, {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj"}),
    "demo": ({"self_attention": "model.{stack}.layers.{layer}.self_attn.",
              "cross_attention": "model.{stack}.layers.{layer}.encoder_attn."},
             {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}),
}


@dataclass(frozen=True)
class Attention:
    name: str  # "encoder.3.self_attention"
    heads: int
    key_heads: int
    d_key: int

    @property
    def causal(self):
        return self.name.startswith("decoder") and self.name.endswith("self_attention")

    @property
    def order(self):
        """Of the forward pass: the encoder first, then layer by layer self-attention and cross-attention."""
        stack, layer, kind = self.name.split(".")
        return stack != "encoder", int(layer), kind != "self_attention"

    def visible(self, scores):
        """[queries, keys]: which keys each query sees, of a text without padding."""
        return np.tri(*scores.shape, dtype=bool) if self.causal else np.ones(scores.shape, dtype=bool)

    def queries(self, seen, site="queries"):
        """[queries, heads, d_key]."""
        return seen[f"{self.name}.{site}"].reshape(-1, self.heads, self.d_key).astype(np.float64)

    def keys(self, seen):
        """[keys, heads, d_key], those that heads share repeated."""
        keys = seen[f"{self.name}.keys"].reshape(-1, self.key_heads, self.d_key).astype(np.float64)
        return keys.repeat(self.heads // self.key_heads, axis=1)


def attentions(model):
    found = {}
    for head in model.heads:
        found.setdefault(head.attention, []).append(head)
    all_of_them = [Attention(name, len(heads), 1 + max(h.key_head for h in heads), heads[0].d_key) for name, heads in found.items()]
    return sorted(all_of_them, key=lambda attention: attention.order)


class Case:
    """A model, its folder, and the texts that are scored: pairs of a text and, for the translator, its reference translation."""

    def __init__(self, name, folder, texts, other_texts):
        self.name, self.folder, self.texts, self.other_texts = name, Path(folder), texts, other_texts
        self.model = mh.load(folder)
        self.attentions = attentions(self.model)
        # Of the whole model, so made before any edit.
        self.vectors = self.model.embed([text for text, _ in texts]) if name == "minilm" else None

    def scores(self, model=None, numbers=None, targets=None):
        """[texts, 2]: a sum and what it is divided by. Of MiniLM cosines to the whole model's vectors and 1, of the others losses in
        nats and tokens. numbers: which texts, by default all; targets: translations in place of the references."""
        model = self.model if model is None else model
        numbers = range(len(self.texts)) if numbers is None else numbers
        texts = [self.texts[n][0] for n in numbers]
        if self.name == "minilm":
            whole, changed = self.vectors[list(numbers)].astype(np.float64), model.embed(texts).astype(np.float64)
            cosines = (whole * changed).sum(1) / np.linalg.norm(whole, axis=1) / np.linalg.norm(changed, axis=1)
            return [[cosine, 1] for cosine in cosines.tolist()]
        if self.name == "demo":
            scored = model.score(texts, targets or [self.texts[n][1] for n in numbers], per_token=True)
        else:
            scored = model.score(texts, per_token=True)
        return [[-float(one.sum(dtype=np.float64)), len(one)] for one in scored]

    @cached_property
    def tensors(self):
        return load_file(self.folder / "model.safetensors")

    def tensor_name(self, attention, matrix, part="weight"):
        """matrix: "q", "k", "v" or "o"."""
        places, names = FAMILIES[self.name]
        stack, layer, kind = attention.name.split(".")
        return f"{places[kind].format(stack=stack, layer=layer)}{names[matrix]}.{part}"

    def by_head(self, attention, matrix):
        """W_i^Q, W_i^K or W_i^V transposed [heads, d_key, d_model], those that heads share repeated; or W_i^O transposed
        [heads, d_model, d_value]."""
        whole = self.tensors[self.tensor_name(attention, matrix)].astype(np.float64)
        if matrix == "o":
            return whole.reshape(whole.shape[0], attention.heads, -1).transpose(1, 0, 2)
        parts = attention.heads if matrix == "q" else attention.key_heads
        return whole.reshape(parts, -1, whole.shape[1]).repeat(attention.heads // parts, axis=0)

    def observe(self, text, sites):
        source, target = text
        return self.model.observe(source, sites=sites, **({"target": target} if target else {}))

    @contextmanager
    def copy(self, tensors=None, config=None):
        """The model of a copy of the folder, with tensors and fields of config.json in place of those there."""
        with tempfile.TemporaryDirectory() as parent:
            to = Path(parent) / "model"
            shutil.copytree(self.folder, to, ignore=shutil.ignore_patterns("model.safetensors"))
            save_file({**self.tensors, **(tensors or {})}, to / "model.safetensors", {"format": "pt"})
            fields = json.loads((to / "config.json").read_text())
            (to / "config.json").write_text(json.dumps({**fields, **(config or {})}))
            yield mh.load(to)


def case(name, models, demo, conllu, grammar, out, short=0):
    """The texts are those of docs/heads/results/README.md; short: so many of each alone, for a trial."""
    counts = {"minilm": (200, 100), "smollm2": (40, 40), "demo": (200, 100)}[name]
    first, other = (short or count for count in counts)
    if name == "demo":
        lines = {f: Path(grammar, f).read_text(encoding="utf-8").splitlines() for f in ("test.en", "test.de", "valid.en", "valid.de")}
        return Case(name, demo, list(zip(lines["test.en"][:first], lines["test.de"][:first])),
                    list(zip(lines["valid.en"][:other], lines["valid.de"][:other])))
    folder = Path(models, "minilm")
    if name == "smollm2":
        folder = Path(out, "smollm2")
        if not folder.exists():
            mh.convert(Path(models, "smollm2.gguf"), folder)
    scored = list(sentences_of(conllu, 1001, ALL_SENTENCES, 5, 30))
    weighing = list(sentences_of(conllu, 601, 1000, 5, 30))
    return Case(name, folder, [(text, "") for text in scored[:first]], [(text, "") for text in weighing[:other]])
