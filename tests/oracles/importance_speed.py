"""Time and peak memory of `multihead heads importance` beside gates on transformers' eager attention, differentiated by torch.

    venv/bin/python tests/oracles/importance_speed.py TOOL FOLDER LINES [TURNS]

FOLDER: a folder of sentence-transformers with mean pooling, or a causal model. Both use two threads and read LINES in turns. Ours is
timed as a whole process less the same process on one line or two (opening the model); theirs without imports and opening, on batches of
32 sentences of like length, with a gate for each sentence and head. Extra memory: the peak beyond the same program's plain pass.
"""

import os
import statistics
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import torch

from heads_speed import peak_of, run_tool
from importance_check import Gated


class Peer(Gated):
    def __init__(self, folder, lines):
        super().__init__(folder)
        self.model.float()
        self.tokenizer.pad_token = self.tokenizer.pad_token or self.tokenizer.eos_token
        self.batches = [sorted(lines, key=len)[at : at + 32] for at in range(0, len(lines), 32)]

    def gate(self, name, inputs):
        z = inputs[0]
        z = z.reshape(*z.shape[:-1], self.heads[name], -1) * self.gates[name][:, None, :, None]
        return (z.reshape(*z.shape[:-2], -1), *inputs[1:])

    def run(self, gradients):
        begun = time.time()
        totals = {name: 0 for name in self.heads}
        for lines in self.batches:
            batch = self.tokenizer(lines, padding=True, truncation=True, return_tensors="pt")
            for name, heads in self.heads.items():
                self.gates[name] = torch.ones(len(lines), heads, requires_grad=gradients)
            with torch.set_grad_enabled(gradients):
                mask = batch["attention_mask"]
                if self.causal:
                    logits = self.model(**batch).logits[:, :-1]
                    log_p = torch.log_softmax(logits, -1).gather(2, batch["input_ids"][:, 1:, None])[..., 0]
                    score = (log_p * mask[:, 1:]).sum()
                else:
                    states = self.model(**batch).last_hidden_state * mask[..., None]
                    vectors = states.sum(1) / mask.sum(1, keepdim=True)
                    score = torch.cosine_similarity(vectors, vectors.detach().roll(-1, 0)).sum()
            if gradients:
                score.backward()
                for name in self.heads:
                    totals[name] = totals[name] + self.gates[name].grad.abs().sum(0)
        return time.time() - begun


def main(program, folder, path, turns="3"):
    torch.set_num_threads(2)
    lines = [line for line in open(path, encoding="utf8").read().splitlines() if line.strip()]
    peer = Peer(folder, lines)
    plain_verb = ["score"] if peer.causal else ["embed"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as few:
        few.write("\n".join(lines[:2]) + "\n")
        few.flush()
        tool = lambda file, *verb: run_tool(program, "--threads", "2", "--quiet", *verb, folder, "-i", file)
        peer.run(gradients=False)
        plain_peak = peak_of("self")
        figures, peaks = {"plain": [], "importance": [], "torch plain": [], "torch importance": []}, {}
        for _ in range(int(turns)):
            for name, verb in (("plain", plain_verb), ("importance", ["heads", "importance"])):
                opened = tool(few.name, *verb)[0]
                seconds, peaks[name] = tool(path, *verb)
                figures[name].append(seconds - opened)
            figures["torch plain"].append(peer.run(gradients=False))
            figures["torch importance"].append(peer.run(gradients=True))
    medians = {name: statistics.median(seconds) for name, seconds in figures.items()}
    for name, seconds in medians.items():
        print(f"{name}: {seconds:.2f} s")
    print(f"importance / plain pass: {medians['importance'] / medians['plain']:.2f}; torch / ours: "
          f"{medians['torch importance'] / medians['importance']:.2f}")
    print(f"extra memory: {peaks['importance'] - peaks['plain']:.0f} MiB, torch {peak_of('self') - plain_peak:.0f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
