"""Time and peak memory of `multihead heads stats` beside the same figures by transformers (output_attentions=True) and numpy.

    venv/bin/python tests/oracles/heads_speed.py TOOL FOLDER LINES [TURNS]

FOLDER: an encoder. Both use two threads and read LINES in turns. Ours is timed as a whole process, with opening the model; theirs
without imports and opening, on batches of 32 sentences of like length. Beyond: what the figures need more than the same program's own
plain forward pass.
"""

import collections
import os
import statistics
import subprocess
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers

from heads_check import OFFSETS, words_in, words_of_tokens


def peak_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), 0)


def run_tool(*arguments):
    """Seconds and peak MiB. The peak is asked of the process itself: rusage of a child counts its parent's memory."""
    begun, peak = time.time(), 0
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, peak_of(process.pid))
        time.sleep(0.005)
    if process.returncode:
        sys.exit(f"heads_speed: {' '.join(arguments)} failed")
    return time.time() - begun, peak


class Peer:
    def __init__(self, folder, lines):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        self.lines = sorted(lines, key=len)

    @torch.no_grad()
    def run(self, figures):
        begun = time.time()
        counts = collections.Counter(word for line in self.lines for word in words_in(line)) if figures else None
        sums = collections.defaultdict(float)
        for at in range(0, len(self.lines), 32):
            lines = self.lines[at : at + 32]
            batch = self.tokenizer(lines, padding=True, truncation=True, return_tensors="pt", return_offsets_mapping=True,
                                   return_special_tokens_mask=True)
            offsets, special = batch.pop("offset_mapping"), batch.pop("special_tokens_mask").numpy().astype(bool)
            out = self.model(**batch, output_attentions=figures)
            if figures:
                self.add(sums, out.attentions, batch["attention_mask"].numpy().astype(bool), special,
                         *self.rarest(lines, offsets.tolist(), counts))
        return time.time() - begun

    @staticmethod
    def rarest(lines, offsets, counts):
        """Which tokens are words and which belong to the sentence's rarest: [sentences, tokens] each."""
        is_word, is_rarest = [], []
        for line, of_tokens in zip(lines, offsets):
            words = words_in(line)
            of = words_of_tokens(of_tokens, line, words, len(of_tokens))
            fewest = min(counts[words[w]] for w in of if w >= 0)
            is_word.append([w >= 0 for w in of])
            is_rarest.append([w >= 0 and counts[words[w]] == fewest for w in of])
        return np.array(is_word), np.array(is_rarest)

    @staticmethod
    def add(sums, attentions, real, special, is_word, is_rarest):
        """`special` holds padding too, which has no weight."""
        tokens = real.shape[1]
        seen = real.sum(1)
        i = np.arange(tokens)
        distance = abs(i[:, None] - i[None]).astype(np.float32)
        queries = real[:, None, :]  # beside [sentences, heads, queries]
        sentences = np.arange(len(real))[:, None, None]
        for layer, a in enumerate(attentions):
            a = a.numpy()
            entropy = -(a * np.log(np.maximum(a, 1e-30))).sum(3)
            sums[layer, "entropy"] += (entropy * queries).sum((0, 2))
            sums[layer, "entropy_share"] += (entropy / np.log(seen)[:, None, None] * queries).sum((0, 2))
            sums[layer, "distance"] += (np.einsum("bhij,ij->bhi", a, distance) * queries).sum((0, 2))
            sums[layer, "on_first"] += (a[..., 0] * queries).sum((0, 2))
            on_special = np.einsum("bhij,bj->bhi", a, special.astype(np.float32))
            sums[layer, "on_separators"] += ((on_special - a[..., 0]) * queries).sum((0, 2))
            most = a.argmax(3)
            neighbours = 0
            for offset in OFFSETS:
                at_offset = np.diagonal(a, offset, 2, 3)
                valid = real[:, max(0, -offset) : tokens - max(0, offset)][:, None]
                sums[layer, "at", offset] += (at_offset * valid).sum((0, 2))
                sums[layer, "most", offset] += ((most - i == offset) * queries).sum((0, 2))
                if abs(offset) == 1:
                    neighbours = neighbours + (at_offset * valid).sum(2) / seen[:, None]
            words = is_word[:, None, :]
            sums[layer, "on_rarest"] += (is_rarest[sentences, most] * words).sum((0, 2))
            vertical = (on_special * queries).sum(2) / seen[:, None]
            for name, found in (("vertical", vertical >= 0.5), ("diagonal", (vertical < 0.5) & (neighbours >= 0.5))):
                sums[layer, name] += (found & (seen >= 10)[:, None]).sum(0)


def main(program, folder, path, turns="3"):
    torch.set_num_threads(2)
    peer = Peer(folder, open(path, encoding="utf8").read().splitlines())
    peer.run(figures=False)  # warm
    ours, plain, theirs, peaks = [], [], [], {}
    tool = lambda *verb: run_tool(program, "--threads", "2", "--quiet", *verb, folder, "-i", path)
    plain_peak = peak_of("self")
    for _ in range(int(turns)):
        seconds, peaks["embed"] = tool("embed")
        plain.append((seconds, peer.run(figures=False)))
        plain_peak = max(plain_peak, peak_of("self")) if not theirs else plain_peak
        seconds, peaks["stats"] = tool("heads", "stats")
        ours.append(seconds)
        theirs.append(peer.run(figures=True))
    median = statistics.median
    print(f"plain forward: embed {median(p[0] for p in plain):.2f} s, transformers {median(p[1] for p in plain):.2f} s")
    print(f"with figures: heads stats {median(ours):.2f} s, transformers and numpy {median(theirs):.2f} s; "
          f"ratio {median(t / o for t, o in zip(theirs, ours)):.2f}")
    print(f"memory beyond the plain pass: heads stats {peaks['stats'] - peaks['embed']:.0f} MiB ({peaks['stats']:.0f}), "
          f"transformers and numpy {peak_of('self') - plain_peak:.0f} MiB ({peak_of('self'):.0f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
