"""Makes tests/goldens/retrieval.json: what heads do with needles in a text (docs/heads/retrieval.md), by transformers' output_attentions and
masks of single heads in float64, of some of the models in tests/goldens. Tokens are words of their numbers (w5 is token 5).

    scripts/python torch transformers safetensors numpy && .venv/bin/python tests/oracles/retrieval_goldens.py

Of each model: its needles and filler, and of each head the mean score and weight, and, with the head limited to its first keys and a
window, the fall of log p of the answer (in the rows of the question and the answer, and in all) and the rise of the filler's loss.
(Llama's norms, softmax and angles of rotary positions are float32 there.)
"""

import json
import math
import pathlib

import numpy as np
import torch
from transformers import AutoModelForCausalLM

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
MODELS = ["llama/tied_grouped", "gemma2/logits_capped"]
LENGTHS, DEPTHS, SINKS, WINDOW, TEXT = [13, 23], [0, 0.3, 1], 2, 5, 29


def limit_of(rows, first):
    """[rows, rows]: minus infinity where a limited head may not look; rows before `first` see all."""
    i, j = torch.arange(rows)[:, None], torch.arange(rows)[None]
    beyond = (i >= first) & (j >= SINKS) & (j <= i - WINDOW)
    return torch.zeros(rows, rows, dtype=torch.float64).masked_fill(beyond, -math.inf)


def run(model, ids, head=None, first=0):
    """Logits, weights; head: (layer, number) of the one that is limited in rows from `first` on."""
    rows = len(ids)
    causal = torch.full((rows, rows), -math.inf, dtype=torch.float64).triu(1)

    def changed(module, args, kwargs):
        mask = kwargs["attention_mask"]
        mask = (causal[None, None] if mask is None else mask).expand(1, model.config.num_attention_heads, rows, rows).clone()
        mask[0, head[1]] += limit_of(rows, first)
        return args, {**kwargs, "attention_mask": mask}

    hook = None
    if head is not None:
        hook = model.model.layers[head[0]].self_attn.register_forward_pre_hook(changed, with_kwargs=True)
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
    if hook:
        hook.remove()
    return out.logits[0].log_softmax(-1), out.attentions


def log_p(found, first, tokens):
    return sum(found[first + i, token].item() for i, token in enumerate(tokens))


def trial(model, heads, needle, filler, length, depth):
    sentence, question, answer = needle
    room = length - len(sentence) - len(question)
    place = math.floor(depth * room + 0.5)
    text = filler[:place] + sentence + filler[place:room]
    ids = text + question + answer[:-1]
    found, attentions = run(model, ids)
    said, words = log_p(found, length - 1, answer), sorted(set(answer))
    scores, weights, falls, answer_falls = [], [], [], []
    for layer, number in heads:
        copied, weight = set(), 0
        for step, token in enumerate(answer):
            row = attentions[layer][0, number, length - 1 + step]
            at = int(row.argmax())
            if place <= at < place + len(sentence) and ids[at] == token:
                copied.add(token)
            weight += sum(row[place + i].item() for i, other in enumerate(sentence) if other == token)
        scores.append(len(copied) / len(words))
        weights.append(weight / len(answer))
        falls.append(said - log_p(run(model, ids, (layer, number))[0], length - 1, answer))
        answer_falls.append(said - log_p(run(model, ids, (layer, number), len(text))[0], length - 1, answer))
    return scores, weights, falls, answer_falls, said


def loss(model, filler, head=None):
    found, _ = run(model, filler[:TEXT], head)
    return -log_p(found, 0, filler[1 : TEXT + 1]) / TEXT


def make(name, random):
    model = AutoModelForCausalLM.from_pretrained(GOLDENS / name, dtype=torch.float64, attn_implementation="eager").eval()
    config = model.config
    heads = [(layer, head) for layer in range(config.num_hidden_layers) for head in range(config.num_attention_heads)]
    tokens = lambda count: random.integers(3, config.vocab_size, count).tolist()
    filler, needles = tokens(41), []
    for before, size in ((1, 4), (0, 5), (2, 3)):
        answer = tokens(size)
        needles.append((tokens(before) + answer, tokens(2), answer))
    trials = [trial(model, heads, needle, filler, length, depth) for length in LENGTHS for depth in DEPTHS for needle in needles]
    mean = lambda k: [round(float(x), 8) for x in np.mean([one[k] for one in trials], axis=0)]
    whole = loss(model, filler)
    case = {"model": name, "filler": filler, "needles": needles, "scores": mean(0), "weights": mean(1), "falls": mean(2),
            "answer_falls": mean(3), "log_probabilities": [round(one[4], 8) for one in trials], "text_loss": round(whole, 8),
            "loss_rises": [round(loss(model, filler, head) - whole, 8) for head in heads]}  # fmt: skip
    print(name, case["scores"], case["falls"], case["loss_rises"])
    return case


def main():
    random = np.random.default_rng(61)
    found = {"lengths": LENGTHS, "depths": DEPTHS, "sinks": SINKS, "window": WINDOW, "text_tokens": TEXT,
             "models": [make(name, random) for name in MODELS]}  # fmt: skip
    (GOLDENS / "retrieval.json").write_text(json.dumps(found, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()
