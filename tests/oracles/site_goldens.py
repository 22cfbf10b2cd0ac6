"""Makes tests/goldens/sites: what transformers computes in double precision at every site (docs/sites.md) of some of
the models in tests/goldens, sequence by sequence, and what follows from other values there. For each site S:

    value.S      [rows, columns] the sequences end to end; scores and weights have as many columns as the longest
                 sequence has keys, 0 behind a sequence's own keys
    gradient.S   the gradient of the scalar sum(logits * direction)
    replaced.S   [N, d_model] the last states when the value is 0.5 * value + 0.1 * cos(3 i + j) in row i, column j

(Llama's norms, softmax and angles of rotary positions are float32 there.)

decoder_gradients.safetensors has, of each model in GRADIENTS and one sequence, MODEL.gradient.S: the gradient at three sites of
the difference of two logits of the last row, the first token's and the second's.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/site_goldens.py build/multihead [FOLDER]

Values are seen as `multihead check` sees them (share/check/site_oracle.py).
"""

import pathlib
import sys

import numpy as np
import torch
from check_goldens import GOLDENS, request_of, site_oracle
from safetensors.numpy import save_file
from transformers import (
    AutoModelForCausalLM,
    BertForMaskedLM,
    BertForPreTraining,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    MarianMTModel,
)

MODELS = {
    "bert/masked": BertForMaskedLM,
    "bert/pretraining": BertForPreTraining,
    "gpt2/tied": GPT2LMHeadModel,
    "llama/tied_grouped": LlamaForCausalLM,
    "marian/gelu_f16": MarianMTModel,
}
GRADIENTS = [
    "gemma2/capped",
    "gemma2/scores_capped_bf16",
    "gemma3_text/plain",
    "gpt_neo/windows",
    "gpt_neox/parallel",
    "gpt_neox/sequential_bf16",
    "olmo2/plain",
    "olmo2/grouped_yarn_bf16",
    "opt/before",
    "opt/after_bf16",
    "phi/plain",
    "phi/grouped_bf16",
    "phi3/grouped",
    "phi3/longrope_bf16",
    "smollm3/some_turn",
    "smollm3/windows_bf16",
]
LENGTH = 23  # longer than all windows
LENGTHS, SOURCE_LENGTHS, TARGET_LENGTHS = [3, 1, 7], [5, 3, 2], [2, 7, 1]


class Sites(site_oracle.Sites):
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


joined = site_oracle.joined


def other(parts):
    """What is put in place of a value."""
    row, put = 0, []
    for part in parts:
        i = torch.arange(row, row + part.shape[0], dtype=torch.float64)[:, None]
        put.append(0.5 * part.detach() + 0.1 * torch.cos(3 * i + torch.arange(part.shape[1])))
        row += part.shape[0]
    return put


def make(tool, name, kind, file):
    family = name.split("/")[0]
    load = lambda how: kind.from_pretrained(GOLDENS / name, dtype=torch.float64, attn_implementation=how).eval()
    model, plain, sites = load("sites"), load("eager"), Sites()
    config = model.config
    site_oracle.see_model(sites, model, request_of(tool, GOLDENS / name)["modules"])
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


def gradients_of(tool, name):
    """The tensors of one model, by their names."""
    load = lambda: AutoModelForCausalLM.from_pretrained(
        GOLDENS / name, dtype=torch.float64, attn_implementation="eager").eval()
    model, plain, sites = load(), load(), Sites()
    if not name.startswith("gpt_neo/"):  # whose own method site_oracle replaces
        model.set_attn_implementation("sites")
    site_oracle.see_model(sites, model, request_of(tool, GOLDENS / name)["modules"])
    random = np.random.default_rng(17)
    ids = torch.tensor(random.integers(3, model.config.vocab_size, (1, LENGTH)))

    def logits_of(which, put=(), watching=False):
        sites.begin(put, watching)
        return which(input_ids=ids, use_cache=False).logits[0]

    with torch.no_grad():
        expected, found = logits_of(plain), logits_of(model)
    assert (found - expected).abs().max().item() < 1e-5 * expected.abs().max().item(), name
    tokens = expected[-1].topk(2).indices.tolist()
    difference = lambda logits: logits[-1, tokens[0]] - logits[-1, tokens[1]]
    difference(logits_of(model, watching=True)).backward()
    last = model.config.num_hidden_layers - 1
    tensors = {f"{name}.ids": ids[0].numpy(), f"{name}.tokens": np.array(tokens)}
    watched, worst = sites.values, 0
    for site in "decoder.0.self_attention.heads", "decoder.1.input", f"decoder.{last}.feed_forward.output":
        [value], step = watched[site], 1e-3
        tensors[f"{name}.gradient.{site}"] = value.grad.float().numpy()
        along = torch.tensor(random.standard_normal(value.shape))
        with torch.no_grad():
            ends = [difference(logits_of(model, {site: [value + s * along]})) for s in (step, -step)]
        slope, wanted = ((ends[0] - ends[1]) / (2 * step)).item(), (value.grad * along).sum().item()
        worst = max(worst, abs(slope - wanted) / (1 + abs(slope)))
    assert worst < 3e-3, (name, worst)
    print(f"{name}: slopes within {worst:.1e}")
    return tensors


def main():
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else GOLDENS / "sites"
    folder.mkdir(parents=True, exist_ok=True)
    site_oracle.register()
    for name, kind in MODELS.items():
        make(sys.argv[1], name, kind, folder / f"{name.replace('/', '_')}.safetensors")
    gradients = [gradients_of(sys.argv[1], name) for name in GRADIENTS]
    save_file({key: tensor for of_one in gradients for key, tensor in of_one.items()},
              folder / "decoder_gradients.safetensors")


if __name__ == "__main__":
    main()
