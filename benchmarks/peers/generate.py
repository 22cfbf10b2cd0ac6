"""Text from a causal model beside transformers (float32) and, with --gguf, llama.cpp on its quantised file: a model of
SmolLM2-135M's shape with random weights, the same tokens and threads, in turns in one run.

    pip install torch transformers [llama-cpp-python]
    python benchmarks/peers/generate.py --build BUILD [--gguf FILE.gguf] [--out FILE.json]

BUILD is a build folder with the benchmarks. llama.cpp's weights stay quantised, so that it reads an eighth of the bytes.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time

import torch
from machine import processor, write_results
from program import Program
from transformers import LlamaConfig, LlamaForCausalLM

SHAPE = dict(vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
             intermediate_size=1536, max_position_embeddings=2048, tie_word_embeddings=True, rope_theta=100000.0,
             bos_token_id=1, eos_token_id=None, pad_token_id=None)
PROMPT, NEW, STREAMS = 512, 48, 8


class Ours(Program):
    def __init__(self, build, model):
        super().__init__(os.path.join(build, "benchmarks", "generate_speed"), model)

    def prompt(self):
        return self.ask(f"prompt {PROMPT}")

    def streams(self, count):
        return self.ask(f"streams {count} {NEW}")


class Transformers:
    def __init__(self, model):
        self.model = model
        self.ids = torch.randint(0, SHAPE["vocab_size"], (STREAMS, PROMPT))

    def prompt(self):
        with torch.no_grad():
            start = time.perf_counter()
            self.model(self.ids[:1], logits_to_keep=1)
            return time.perf_counter() - start

    def generate(self, count, new):
        ids = self.ids[:count, :16]
        start = time.perf_counter()
        self.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, do_sample=False)
        return time.perf_counter() - start

    def streams(self, count):
        return self.generate(count, 1 + NEW) - self.generate(count, 1)


class LlamaCpp:
    def __init__(self, file, threads):
        from llama_cpp import Llama

        self.model = Llama(file, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
        text = b"The history of machine translation begins in the seventeenth century. " * 60
        self.ids = self.model.tokenize(text)[:PROMPT]

    def prompt(self):
        self.model.reset()
        start = time.perf_counter()
        self.model.eval(self.ids)
        return time.perf_counter() - start

    def streams(self, count):
        if count > 1:
            return None
        self.model.reset()
        self.model.eval(self.ids[:16])
        start = time.perf_counter()
        for _ in range(NEW):
            self.model.eval([self.model.sample(temp=0.0)])
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--gguf")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
    numbers = sum(p.numel() for p in model.parameters())
    # Every product with a matrix, twice its size in operations; the embedding only for the last token of a prompt.
    embedding = SHAPE["vocab_size"] * SHAPE["hidden_size"]
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        ours = Ours(args.build, folder)
        sides = {"multihead": ours, "transformers": Transformers(model)}
        if args.gguf:
            try:
                sides["llama.cpp"] = LlamaCpp(args.gguf, args.threads)
            except ImportError:
                print("llama-cpp-python is not installed: left out", file=sys.stderr)
        rows = []
        for what, tokens, run in (("prompt", PROMPT, lambda side: side.prompt()),
                                  ("one stream", NEW, lambda side: side.streams(1)),
                                  (f"{STREAMS} streams", STREAMS * NEW, lambda side: side.streams(STREAMS))):
            times, peaks, widths = {name: [] for name in sides}, [], []
            for _ in range(args.rounds + 1):  # the first one warms up
                peaks.append(ours.ask("peak"))
                widths.append(ours.ask("bandwidth"))
                for name, side in sides.items():
                    times[name].append(run(side))
            median = {name: statistics.median(t[1:]) for name, t in times.items() if t[0] is not None}
            row = {"work": what, "tokens_per_second": {name: round(tokens / t, 1) for name, t in median.items()},
                   "ratio": {name: round(t / median["multihead"], 2) for name, t in median.items() if name != "multihead"},
                   "peak_gflops": round(statistics.median(peaks), 1), "gigabytes_per_second": round(statistics.median(widths), 2)}
            if what == "prompt":
                row["share_of_peak"] = round(2e-9 * (numbers - embedding) * PROMPT / median["multihead"] / row["peak_gflops"], 3)
            else:
                steps = NEW / median["multihead"]
                row["share_of_bandwidth"] = round(4e-9 * numbers * steps / row["gigabytes_per_second"], 3)
            rows.append(row)
            print(json.dumps(row), file=sys.stderr)
        result = {"what": "a model of SmolLM2-135M's shape, float32: reading a prompt and writing tokens",
                  "command": "python benchmarks/peers/generate.py --build BUILD" + (" --gguf FILE.gguf" if args.gguf else ""),
                  "machine": {"processor": processor(), "threads": args.threads, "system": f"{platform.system()} {platform.machine()}"},
                  "peak_mebibytes": round(ours.ask("memory"), 1), "rows": rows}
    if args.out:
        write_results(args.out, result)


if __name__ == "__main__":
    main()
