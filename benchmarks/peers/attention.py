"""Attention beside torch's scaled_dot_product_attention and onnxruntime: same inputs, in turns in one run, medians.

    pip install torch numpy onnx onnxruntime matplotlib
    python benchmarks/peers/attention.py table  --build BUILD [--text FILE.gz]   the shapes that users have
    python benchmarks/peers/attention.py sweep  --build BUILD [--shapes 300]     random shapes: is any slower than torch?
    python benchmarks/peers/attention.py growth --build BUILD                    T = 128 ... 32768: time and memory
    python benchmarks/peers/attention.py show   [--out FILE.json]                a table's result file as Markdown

BUILD is a build folder with the benchmarks. Two threads on each side. `bound`: the time that the arithmetic alone takes
at this machine's float32 peak, in cycles per score element D / 16 + 0.4 forward and 5 D / 32 + 0.5 backward. The peak is
that of a loop of multiply-adds on both threads at once, before and after each shape; the higher counts. On a machine that
others use, too, `table --quietest` takes the quietest turn of each side, and `--before BUILD` lets another version take turns.
"""

import argparse
import gzip
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time

import numpy
import torch
import torch.nn.functional as F
from machine import processor
from program import Program

FLOPS_A_CYCLE = 64  # AVX-512: two multiply-adds of 16 lanes
SECONDS_OF_SPINNING = 0.06  # how long the peers' threads still spin after a call (onnxruntime 0.035, torch 0.01)


class Shape:
    """queries, keys: lengths; heads over key_heads; every head of size d."""

    def __init__(self, name, queries, keys, heads, d, key_heads=None, causal=False, rate=0.0, backward=False, asked=None):
        self.name, self.queries, self.keys, self.heads, self.d = name, queries, keys, heads, d
        self.key_heads, self.causal, self.rate = key_heads or heads, causal, rate
        self.backward, self.asked = backward, asked

    def scores(self):
        pairs = zip(self.queries, self.keys)
        if not self.causal:
            return self.heads * sum(q * k for q, k in pairs)
        return self.heads * sum(sum(max(0, min(k, i + 1 + k - q)) for i in range(q)) for q, k in pairs)

    def bound_seconds(self, peak_gflops):
        """peak_gflops: of all threads together."""
        cycles = self.scores() * (self.d / 16 + 0.4)
        if self.backward:
            cycles += self.scores() * (5 * self.d / 32 + 0.5)
        return cycles / (peak_gflops * 1e9 / FLOPS_A_CYCLE)

    def gflop(self):
        return self.scores() * self.d * (14 if self.backward else 4) / 1e9

    def mebibytes(self):
        q, k = sum(self.queries) * self.heads * self.d * 4, sum(self.keys) * self.key_heads * self.d * 4
        return (2 * q + 2 * k + (2 * q + 2 * k if self.backward else 0)) / 2**20


class Ours(Program):
    def __init__(self, build, folder):
        super().__init__(os.path.join(build, "benchmarks", "attention_speed"))
        self.folder = folder

    def prepare(self, shape, tensors):
        for name, tensor in tensors.items():
            tensor.numpy().tofile(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, "lengths"), "w") as file:
            file.write(" ".join(map(str, shape.queries)) + "\n" + " ".join(map(str, shape.keys)) + "\n")
        mask = "causal" if shape.causal else "none"
        self.ask(f"shape {self.folder} {shape.heads} {shape.key_heads} {shape.d} {shape.rate} {mask}")
        self.what = "both" if shape.backward else "forward"

    def time(self, calls):
        return self.ask(f"{self.what} {calls}")

    def results(self, names):
        self.ask("write")
        return {name: torch.from_numpy(numpy.fromfile(os.path.join(self.folder, name), numpy.float32)) for name in names}


class Torch:
    """What a torch user runs: [B, H, T, D] tensors, padded and masked when lengths differ."""

    def prepare(self, shape, tensors):
        self.shape = shape
        self.ragged = len(set(shape.queries)) > 1 or len(set(shape.keys)) > 1
        of = {"q": (shape.queries, shape.heads), "k": (shape.keys, shape.key_heads), "v": (shape.keys, shape.key_heads),
              "d_output": (shape.queries, shape.heads)}
        pad = lambda name: torch.nn.utils.rnn.pad_sequence(
            list(tensors[name].view(-1, of[name][1], shape.d).split(of[name][0])), batch_first=True)
        padded = {name: pad(name).transpose(1, 2).contiguous() for name in tensors}
        self.q, self.k, self.v = (padded[name].requires_grad_(shape.backward) for name in "qkv")
        self.d_output = padded["d_output"]
        mask = None
        if self.ragged:
            longest = max(shape.keys)
            mask = torch.arange(longest)[None, :] < torch.tensor(shape.keys)[:, None]
            mask = mask[:, None, None, :]
            if shape.causal:
                mask = mask & torch.ones(max(shape.queries), longest, dtype=torch.bool).tril()
        self.arguments = dict(attn_mask=mask, dropout_p=shape.rate, is_causal=shape.causal and mask is None,
                              enable_gqa=shape.heads != shape.key_heads)

    def call(self):
        if not self.shape.backward:
            with torch.inference_mode():
                return F.scaled_dot_product_attention(self.q, self.k, self.v, **self.arguments)
        for tensor in (self.q, self.k, self.v):
            tensor.grad = None
        output = F.scaled_dot_product_attention(self.q, self.k, self.v, **self.arguments)
        output.backward(self.d_output)
        return output

    def time(self, calls):
        seconds = []
        for _ in range(calls):
            start = time.perf_counter()
            self.call()
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds)

    def rows(self, tensor, lengths):
        return torch.cat([tensor[i, :, :n].transpose(0, 1).reshape(n, -1) for i, n in enumerate(lengths)]).reshape(-1)

    def results(self):
        named = {"output": self.rows(self.call().detach(), self.shape.queries)}
        if self.shape.backward:
            named["d_q"] = self.rows(self.q.grad, self.shape.queries)
            named["d_k"] = self.rows(self.k.grad, self.shape.keys)
            named["d_v"] = self.rows(self.v.grad, self.shape.keys)
        return named


class OnnxRuntime:
    """The same product as a graph of MatMul, Softmax, MatMul, with the runtime's own fusions; forward, equal lengths."""

    def prepare(self, shape, tensors):
        import onnx
        import onnxruntime
        from onnx import TensorProto, helper

        self.session = None
        if shape.backward or shape.rate or shape.causal or shape.heads != shape.key_heads or len(set(shape.queries)) > 1:
            return
        batch, t, tk, width = len(shape.queries), shape.queries[0], shape.keys[0], shape.heads * shape.d
        node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["output"], domain="com.microsoft",
                                num_heads=shape.heads)
        value = lambda name, length: helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, length, width])
        graph = helper.make_graph([node], "attention", [value("q", t), value("k", tk), value("v", tk)],
                                  [value("output", t)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                        helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        self.inputs = {name: tensors[name].view(batch, -1, width).numpy() for name in "qkv"}

    def time(self, calls):
        if not self.session:
            return None
        seconds = []
        for _ in range(calls):
            start = time.perf_counter()
            self.session.run(None, self.inputs)
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds)


def random_inputs(shape):
    generator = torch.Generator().manual_seed(1)
    size = lambda lengths, heads: (sum(lengths), heads * shape.d)
    make = lambda lengths, heads: torch.randn(size(lengths, heads), generator=generator)
    return {"q": make(shape.queries, shape.heads), "k": make(shape.keys, shape.key_heads),
            "v": make(shape.keys, shape.key_heads), "d_output": make(shape.queries, shape.heads)}


def compare(shape, ours, peer):
    """The largest difference from torch, over the largest number of all results (a gradient may be 0)."""
    if shape.rate:
        return None  # other random numbers
    wanted = peer.results()
    ours.time(1)
    found = ours.results(wanted)
    largest = max(float(wanted[name].abs().max()) for name in wanted)
    return max(float((found[name] - wanted[name]).abs().max()) for name in wanted) / largest


def measure(shape, sides, rounds, seconds, of_turns=statistics.median):
    """The median (or another number of_turns) of `rounds` medians a side, the sides in turn of about `seconds`."""
    tensors = random_inputs(shape)
    for side in sides.values():
        side.prepare(shape, tensors)
    difference = compare(shape, sides["multihead"], sides["torch"])
    times, calls = {}, {}
    for name, side in sides.items():
        side.time(1)
        once = side.time(2)
        if once is not None:
            calls[name] = max(1, min(2000, int(seconds / once)))
            times[name] = []
    for _ in range(rounds):
        for name in times:
            time.sleep(SECONDS_OF_SPINNING)
            times[name].append(sides[name].time(calls[name]))
    return {name: of_turns(values) for name, values in times.items()}, difference


def equal(name, batch, heads, t, d, **rest):
    return Shape(name, [t] * batch, [t] * batch, heads, d, **rest)


def sentence_lengths(path, count=256):
    """Words and marks of Multi30k sentences, about what its tokenizer makes."""
    import re

    with gzip.open(path, "rt", encoding="utf8") as lines:
        lengths = [len(re.findall(r"\w+|[^\w\s]", line)) + 1 for line in lines]
    random.Random(1).shuffle(lengths)
    return [min(n, 42) for n in lengths[:count]]


def table_shapes(text):
    both = dict(backward=True)
    shapes = [
        equal("fwd B32 H8 T32 D64", 32, 8, 32, 64, asked=2),
        equal("fwd B8 H12 T128 D64 full", 8, 12, 128, 64, asked=1.6),
        equal("fwd B8 H12 T128 D64 causal", 8, 12, 128, 64, causal=True, asked=2.4),
        equal("fwd B8 H12 T512 D64 full", 8, 12, 512, 64, asked=1.42),
        equal("fwd B8 H12 T512 D64 causal", 8, 12, 512, 64, causal=True, asked=2.7),
        equal("fwd B1 H16 T4096 D64 full", 1, 16, 4096, 64, asked=1.28),
        equal("fwd B1 H16 T4096 D64 causal", 1, 16, 4096, 64, causal=True, asked=1.42),
        equal("fwd B1 H16 T4096 D128 full", 1, 16, 4096, 128, asked=1.14),
        equal("fwd B1 H16 T4096 D128 causal", 1, 16, 4096, 128, causal=True, asked=1.32),
        equal("fwd+bwd B32 H8 T32 D64", 32, 8, 32, 64, asked=2.2, **both),
        equal("fwd+bwd B8 H12 T128 D64 full", 8, 12, 128, 64, asked=1.8, **both),
        equal("fwd+bwd B8 H12 T512 D64 full", 8, 12, 512, 64, asked=1.3, **both),
        equal("fwd+bwd B8 H12 T512 D64 causal", 8, 12, 512, 64, causal=True, asked=2.5, **both),
        equal("fwd+bwd B1 H16 T4096 D64 full", 1, 16, 4096, 64, asked=1.3, **both),
        equal("fwd+bwd B1 H16 T4096 D128 full", 1, 16, 4096, 128, asked=1.0, **both),
        equal("fwd+bwd dropout 0.1 B8 H12 T512 D64", 8, 12, 512, 64, rate=0.1, asked=3, **both),
        Shape("decode H32 over 8 D128 KV4096", [1], [4096], 32, 128, key_heads=8, asked=2.6),
        Shape("decode H32 over 8 D128 KV16384", [1], [16384], 32, 128, key_heads=8, asked=2.3),
        Shape("decode H16 D64 KV4096", [1], [4096], 16, 64, asked=1.0),
        equal("fwd B8 H12 T512 D32", 8, 12, 512, 32), equal("fwd B8 H12 T512 D128", 8, 12, 512, 128),
        equal("fwd B8 H12 T512 D256", 8, 12, 512, 256), equal("fwd B2 H8 T2048 D32", 2, 8, 2048, 32),
        equal("fwd B2 H8 T2048 D64", 2, 8, 2048, 64), equal("fwd B2 H8 T2048 D128", 2, 8, 2048, 128),
        equal("fwd+bwd B8 H12 T512 D32", 8, 12, 512, 32, **both),
        equal("fwd+bwd B8 H12 T512 D128", 8, 12, 512, 128, **both),
        equal("fwd+bwd B8 H12 T512 D256", 8, 12, 512, 256, **both),
    ]
    if text:
        lengths = sentence_lengths(text)
        name = f"256 Multi30k sentences (mean {sum(lengths) / len(lengths):.1f}, max {max(lengths)}) H4 D32"
        shapes.append(Shape("fwd " + name, lengths, lengths, 4, 32, asked=10))
        shapes.append(Shape("fwd+bwd " + name, lengths, lengths, 4, 32, asked=6, **both))
    return shapes


def random_shape(r):
    while True:
        d = r.choice([8, 16, 24, 32, 40, 64, 64, 80, 96, 128, 128, 256])
        t = int(2 ** r.uniform(0, 11.5))
        batch, heads = int(2 ** r.uniform(0, 6)), r.choice([1, 2, 3, 4, 6, 8, 12, 16])
        causal, backward, ragged = r.random() < 0.4, r.random() < 0.5, r.random() < 0.3
        lengths = [r.randint(max(1, t // 4), t) for _ in range(batch)] if ragged else [t] * batch
        shape = Shape("", lengths, lengths, heads, d, causal=causal, backward=backward)
        if shape.gflop() < 20 and shape.mebibytes() < 400:
            kind = ("ragged " if ragged else "") + ("causal" if causal else "full")
            shape.name = f"{'fwd+bwd' if backward else 'fwd'} B{batch} H{heads} T{t} D{d} {kind}"
            return shape


def about(args, ours):
    command = f"python benchmarks/peers/attention.py {args.what} --build BUILD" + (" --text TEXT" if args.text else "")
    if args.what == "table" and (args.quietest or args.before):
        command += " --quietest" * args.quietest + " --before BEFORE" * bool(args.before)
        command += f" --rounds {args.rounds} --seconds {args.seconds:g}"
    return {"command": command,
            "machine": {"processor": processor(), "threads": args.threads, "system": platform.platform(),
                        "peak_gflops": round(args.peak, 1)},
            "versions": {"torch": torch.__version__, "python": platform.python_version()}}


def quiet_peak(ours):
    time.sleep(SECONDS_OF_SPINNING)
    return ours.ask("peak")


def table(args, ours):
    sides = {"multihead": ours, "torch": Torch()}
    try:
        import onnxruntime

        sides["onnxruntime"] = OnnxRuntime()
    except ImportError:
        print("onnxruntime is not installed: left out", file=sys.stderr)
    if args.before:
        sides["before"] = Ours(args.before, ours.folder)
    rows = []
    for shape in table_shapes(args.text):
        if args.only and args.only not in shape.name:
            continue
        peak_before = quiet_peak(ours)
        times, difference = measure(shape, sides, args.rounds, args.seconds, min if args.quietest else statistics.median)
        peak = max(peak_before, quiet_peak(ours))
        bound = shape.bound_seconds(peak)
        row = {"shape": shape.name, "milliseconds": {name: round(t * 1e3, 4) for name, t in times.items()},
               "ratio_to_torch": round(times["torch"] / times["multihead"], 3), "asked": shape.asked,
               "share_of_bound": round(bound / times["multihead"], 3), "peak_gflops": round(peak, 1),
               "gflops": round(shape.gflop() / times["multihead"], 1),
               "gigabytes_per_second": round(shape.mebibytes() / 1024 / times["multihead"], 2),
               "largest_relative_difference": difference}
        if "onnxruntime" in times:
            row["ratio_to_onnxruntime"] = round(times["onnxruntime"] / times["multihead"], 3)
        if "before" in times:
            row["ratio_to_before"] = round(times["before"] / times["multihead"], 3)
        before = f" before x {row['ratio_to_before']:.2f}" if "before" in times else ""
        rows.append(row)
        mark = "" if not shape.asked else " ok" if row["ratio_to_torch"] >= shape.asked else " SHORT"
        print(f"{shape.name:64} {times['multihead'] * 1e3:9.3f} ms  torch x {row['ratio_to_torch']:6.2f} "
              f"(asked {shape.asked}) bound {row['share_of_bound']:.0%}{mark}{before}", file=sys.stderr)
    return {"what": "attention beside torch and onnxruntime", **about(args, ours), "rows": rows}


def sweep(args, ours):
    r, sides, rows = random.Random(args.seed), {"multihead": ours, "torch": Torch()}, []
    for number in range(args.shapes):
        shape = random_shape(r)
        times, difference = measure(shape, sides, 3, args.seconds / 10)
        again = times["torch"] < times["multihead"]
        if again:
            times, _ = measure(shape, sides, 5, args.seconds / 3)
        ratio = times["torch"] / times["multihead"]
        rows.append({"shape": shape.name, "milliseconds": round(times["multihead"] * 1e3, 4), "ratio": round(ratio, 3),
                     "measured_again": again, "largest_relative_difference": difference})
        if ratio < 1.1:
            print(f"{number:3} {shape.name:48} {times['multihead'] * 1e3:9.3f} ms  torch x {ratio:.2f}", file=sys.stderr)
    ratios = sorted(row["ratio"] for row in rows)
    return {"what": f"{args.shapes} random shapes, seed {args.seed}", **about(args, ours), "slower_than_torch":
            sum(x < 1 for x in ratios), "least": ratios[0], "median": ratios[len(ratios) // 2],
            "rows": rows}


def growth(args, ours):
    """One head of 64, self-attention; each T in a process of its own, so that its peak of memory counts alone."""
    rows = []
    for exponent in range(7, 16):
        t = 2**exponent
        row = {"T": t}
        for backward in (False, True):
            fresh = Ours(args.build, ours.folder)
            shape = equal("", 1, 2, t, 64, backward=backward)
            fresh.prepare(shape, random_inputs(shape))
            before = fresh.ask("memory")
            once = fresh.time(1)
            seconds = fresh.time(max(1, min(1000, int(args.seconds / once))))
            name = "both" if backward else "forward"
            row[name] = {"microseconds_a_token": round(seconds / t * 1e6, 4),
                         "extra_mebibytes": round(fresh.ask("memory") - before, 2),
                         "inputs_mebibytes": round(shape.mebibytes(), 2)}
            fresh.process.stdin.close()
            fresh.process.wait()
        rows.append(row)
        print(row, file=sys.stderr)
    plot(rows, os.path.splitext(args.out)[0] + ".svg")
    return {"what": "B1 H2 D64 self-attention, T = 128 ... 32768", **about(args, ours), "rows": rows}


def plot(rows, path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6))
    t = [row["T"] for row in rows]
    for name, label in (("forward", "forward"), ("both", "forward + backward")):
        axes[0].loglog(t, [row[name]["microseconds_a_token"] for row in rows], marker="o", base=2, label=label)
        axes[1].loglog(t, [max(0.01, row[name]["extra_mebibytes"]) for row in rows], marker="o", base=2, label=label)
    axes[1].loglog(t, [row["both"]["inputs_mebibytes"] for row in rows], "--", base=2, color="grey", label="inputs and gradients")
    axes[0].set(xlabel="T", ylabel="µs a token", title="time a token grows with T")
    axes[1].set(xlabel="T", ylabel="MiB", title="extra memory: no T × T matrix")
    for axis in axes:
        axis.legend(frameon=False)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def show(path):
    with open(path) as file:
        result = json.load(file)
    print("| shape | ms | speed-up over torch (goal) | onnxruntime takes | share of the bound | GFLOP/s | GB/s |\n" + "|---" * 7 + "|")
    for row in result["rows"]:
        asked = f" ({row['asked']:g})" if row["asked"] else ""
        other = f"{row['ratio_to_onnxruntime']:.2f} x" if "ratio_to_onnxruntime" in row else ""
        print(f"| {row['shape']} | {row['milliseconds']['multihead']:.3g} | {row['ratio_to_torch']:.2f} x{asked} | {other} "
              f"| {row['share_of_bound']:.0%} | {row['gflops']:.0f} | {row['gigabytes_per_second']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "sweep", "growth", "show"])
    parser.add_argument("--build", help="a build folder with the benchmarks")
    parser.add_argument("--text", help="gzipped sentences for the ragged row, e.g. Multi30k's train.en.gz")
    parser.add_argument("--before", help="a build folder of another version, which takes turns, too (table)")
    parser.add_argument("--quietest", action="store_true",
                        help="the quietest turn of a side, not the median turn: for machines that others use, too (table)")
    parser.add_argument("--only", help="only rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="a turn takes about this long")
    parser.add_argument("--shapes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", help="default: benchmarks/results/attention_WHAT.json")
    args = parser.parse_args()
    args.out = args.out or f"benchmarks/results/attention_{'table' if args.what == 'show' else args.what}.json"
    if args.what == "show":
        return show(args.out)
    if not args.build:
        parser.error("--build is missing")
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(args.build, folder)
        args.peak = ours.ask("peak")
        result = {"table": table, "sweep": sweep, "growth": growth}[args.what](args, ours)
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    rows = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in result.pop("rows"))
    head = json.dumps(result, indent=2, ensure_ascii=False)[:-2]
    with open(args.out, "w") as file:
        file.write(f'{head},\n  "rows": [\n    {rows}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
