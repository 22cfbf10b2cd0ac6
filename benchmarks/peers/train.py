"""Training speed beside PyTorch's nn.Transformer: the same sentences an update, in turns in one run.

Multi30k en-de lower-cased, a joint vocabulary of 8,000, 4 + 4 layers of width 128 with 4 heads and 256 inside, dropout
0.3 at every site (residual, attention weights, activation, embeddings), label smoothing 0.1, Adam, two threads.

    pip install torch sentencepiece numpy
    python benchmarks/peers/train.py --build BUILD --data DIR_WITH_train.en.gz_AND_train.de.gz [--out FILE.json]

BUILD is a build folder with the benchmarks. Target tokens/s count the end token and no padding.
"""

import argparse
import gzip
import json
import math
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import sentencepiece
import torch
import torch.nn as nn
import torch.nn.functional as F
from machine import peak_gflops, processor

PAD, UNKNOWN, START, END = 0, 1, 2, 3
VOCABULARY, WIDTH, HEADS, INSIDE, LAYERS, DROPOUT = 8000, 128, 4, 256, 4, 0.3
WARMUP, PEAK = 2000, 5e-3


class Translator(nn.Module):
    """What a PyTorch user writes: nn.Transformer, padded batches, tied embeddings."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH, PAD)
        nn.init.normal_(self.embedding.weight, 0, WIDTH**-0.5)
        self.transformer = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, INSIDE, DROPOUT, batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)
        positions = torch.zeros(256, WIDTH)
        angles = torch.arange(256)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(1e4) / WIDTH))
        positions[:, 0::2], positions[:, 1::2] = torch.sin(angles), torch.cos(angles)
        self.register_buffer("positions", positions)

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(WIDTH) + self.positions[: ids.size(1)])

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        states = self.transformer(self.embed(source), self.embed(target), tgt_mask=causal, tgt_is_causal=True,
                                  src_key_padding_mask=source == PAD, memory_key_padding_mask=source == PAD,
                                  tgt_key_padding_mask=target == PAD)
        return states @ self.embedding.weight.T


class Torch:
    def __init__(self, batches):
        self.model = Translator()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=PEAK, betas=(0.9, 0.98), eps=1e-8, fused=True)
        pad = lambda sequences: nn.utils.rnn.pad_sequence([torch.tensor(s) for s in sequences], batch_first=True)
        self.batches = [(pad([s for s, _ in b]), pad([[START] + t for _, t in b])) for b in batches]
        self.updates = 0

    def train(self, first, count):
        start, tokens = time.perf_counter(), 0
        for i in range(first, first + count):
            source, target = self.batches[i % len(self.batches)]
            logits = self.model(source, target[:, :-1])
            wanted = target[:, 1:]
            loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), wanted.reshape(-1), ignore_index=PAD,
                                   label_smoothing=0.1)
            self.optimizer.zero_grad()
            loss.backward()
            self.updates += 1
            for group in self.optimizer.param_groups:
                group["lr"] = PEAK * min(self.updates / WARMUP, (WARMUP / self.updates) ** 0.5)
            self.optimizer.step()
            tokens += int((wanted != PAD).sum())
        return time.perf_counter() - start, tokens, loss.item()

    def mebibytes(self):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Multihead:
    def __init__(self, build, path, threads):
        command = [os.path.join(build, "benchmarks", "train_speed"), "tiny", str(VOCABULARY), str(DROPOUT), path]
        cores = ["taskset", "-c", f"0-{threads - 1}"] if threads < os.cpu_count() else []
        self.process = subprocess.Popen(cores + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def train(self, first, count):
        self.process.stdin.write(f"train {first} {count}\n")
        self.process.stdin.flush()
        seconds, tokens, loss, self.peak = self.process.stdout.readline().split()
        return float(seconds), int(tokens), float(loss)

    def mebibytes(self):
        return float(self.peak)


def make_batches(data, folder, padded_tokens=4096):
    """Sentences of like length together, sentences times the longest of them at most padded_tokens."""
    read = lambda name: [line.strip().lower() for line in gzip.open(f"{data}/{name}.gz", "rt", encoding="utf8")]
    pairs = list(zip(read("train.en"), read("train.de")))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([side for pair in pairs for side in pair]), model_prefix=f"{folder}/joint",
        vocab_size=VOCABULARY, model_type="bpe", pad_id=PAD, unk_id=UNKNOWN, bos_id=START, eos_id=END, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/joint.model")
    encoded = [(pieces.encode(s) + [END], pieces.encode(t) + [END]) for s, t in pairs]
    order = list(range(len(encoded)))
    random.shuffle(order)
    order.sort(key=lambda i: len(encoded[i][1]))
    batches, batch, longest = [], [], 0
    for i in order:
        length = max(len(encoded[i][0]), len(encoded[i][1]) + 1)
        if batch and max(longest, length) * (len(batch) + 1) > padded_tokens:
            batches.append(batch)
            batch, longest = [], 0
        batch.append(encoded[i])
        longest = max(longest, length)
    batches.append(batch)
    random.shuffle(batches)
    return batches


def arithmetic(batches):
    """Floating-point operations of one update's products (forward and twice that backward), attention included."""
    source = sum(len(s) for b in batches for s, _ in b) / len(batches)
    target = sum(len(t) for b in batches for _, t in b) / len(batches)
    d, ff = WIDTH, INSIDE
    flops = 2 * LAYERS * source * (4 * d * d + 2 * d * ff)  # encoder
    flops += 2 * LAYERS * (target * (6 * d * d + 2 * d * ff) + source * 2 * d * d)  # decoder
    flops += 2 * target * d * VOCABULARY
    squares = sum(2 * d * 2 * (len(s) ** 2 + len(t) ** 2 / 2 + len(s) * len(t)) for b in batches for s, t in b)
    return 3 * (flops + LAYERS * squares / len(batches)), source, target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=10, help="updates a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", default="benchmarks/results/train.json")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    random.seed(1)

    with tempfile.TemporaryDirectory() as folder:
        batches = make_batches(args.data, folder)
        path = os.path.join(folder, "batches.txt")
        with open(path, "w") as file:
            text = ("".join(" ".join(map(str, s)) + "\t" + " ".join(map(str, t)) + "\n" for s, t in b) for b in batches)
            file.write("\n".join(text))
        sides = {"torch": Torch(batches), "multihead": Multihead(args.build, path, args.threads)}
        speeds = {name: [] for name in sides}
        seconds = {name: [] for name in sides}
        for side in sides.values():  # to warm up
            side.train(0, 3)
        for number in range(args.rounds):
            for name, side in sides.items():
                took, tokens, loss = side.train(3 + number * args.updates, args.updates)
                speeds[name].append(tokens / took)
                seconds[name].append(took / args.updates)
                print(f"round {number + 1} {name}: {tokens / took:.0f} target tokens/s, {took / args.updates:.3f} s an "
                      f"update, loss {loss:.3f}", file=sys.stderr)
        memory = {name: round(side.mebibytes()) for name, side in sides.items()}

    flops, source, target = arithmetic(batches)
    median = {name: statistics.median(values) for name, values in speeds.items()}
    update = {name: statistics.median(values) for name, values in seconds.items()}
    gflops = {name: round(flops / 1e9 / value, 1) for name, value in update.items()}
    peak = peak_gflops(args.build)
    result = {
        "what": "training, tiny (4+4 layers, 128 wide, 4 heads, 256 inside), vocabulary 8000, dropout 0.3 everywhere",
        "command": f"python benchmarks/peers/train.py --build BUILD --data DATA --rounds {args.rounds}",
        "machine": {"processor": processor(), "threads": args.threads, "system": platform.platform()},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "batches": {"source_tokens": round(source), "target_tokens": round(target), "rounds": args.rounds,
                    "updates_a_round": args.updates},
        "target_tokens_per_second": {name: round(value) for name, value in median.items()},
        "seconds_an_update": {name: round(value, 4) for name, value in update.items()},
        "peak_mebibytes": memory,
        "ratio": round(median["multihead"] / median["torch"], 3),
        "gflop_an_update": round(flops / 1e9, 2),
        "gflops": gflops,
        "peak_gflops": round(peak, 1),
        "share_of_peak": {name: round(value / peak, 3) for name, value in gflops.items()},
    }
    text = json.dumps(result, indent=2)
    print(text)
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    with open(args.out, "w") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main()
