"""Sentence vectors beside sentence-transformers, onnxruntime and OpenVINO (all float32): the same model, sentences and threads,
in turns in one run. Each peer has its best batch size of 8, 32 and 128, its sentences sorted by length.

    pip install sentence-transformers onnx onnxscript onnxruntime openvino
    python benchmarks/peers/embed.py --build BUILD --model MODEL --data DATA [--out FILE.json]

BUILD has the tool and the benchmarks, MODEL is a folder of a BERT that sentence-transformers opens, DATA has
multi30k/val.en.gz and ud-ewt/en_ewt-ud-dev.conllu.gz.
"""

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from machine import processor, write_results  # noqa: E402
from program import Program  # noqa: E402
from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: E402

BATCHES = (8, 32, 128)
LONGEST = 256
ALONE = 200
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def texts(data):
    with gzip.open(os.path.join(data, "multi30k/val.en.gz"), "rt", encoding="utf8") as file:
        multi30k = [line.strip() for line in file]
    with gzip.open(os.path.join(data, "ud-ewt/en_ewt-ud-dev.conllu.gz"), "rt", encoding="utf8") as file:
        ewt = [line[len("# text = "):].strip() for line in file if line.startswith("# text = ")]
    return {"Multi30k val": multi30k, "EWT dev": ewt}


class Ours(Program):
    name = "multihead"

    def __init__(self, build, model):
        super().__init__(os.path.join(build, "benchmarks", "embed_speed"), model)


class SentenceTransformers:
    name = "sentence-transformers"

    def __init__(self, model):
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(model, device="cpu")
        self.model.max_seq_length = LONGEST

    def embed(self, sentences, batch):
        return self.model.encode(sentences, batch_size=batch, normalize_embeddings=True)


class Exported:
    """A model that takes padded ids and gives states: the mean and the norm are taken here."""

    def __init__(self, name, model, states):
        self.name, self.states = name, states
        self.tokenizer = AutoTokenizer.from_pretrained(model)

    def embed(self, sentences, batch):
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        rows = [None] * len(sentences)
        for start in range(0, len(order), batch):
            some = order[start:start + batch]
            inputs = self.tokenizer([sentences[i] for i in some], padding=True, truncation=True, max_length=LONGEST,
                                    return_tensors="np")
            states = self.states({key: inputs[key].astype(np.int64) for key in INPUTS})
            mask = inputs["attention_mask"][..., None]
            vectors = (states * mask).sum(1) / mask.sum(1)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            for i, vector in zip(some, vectors):
                rows[i] = vector
        return np.stack(rows)


class States(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state


def export(model, folder):
    path = os.path.join(folder, "model.onnx")
    example = AutoTokenizer.from_pretrained(model)(["two dogs run .", "a dog", "a", "the dogs of two"], padding=True,
                                                   return_tensors="pt")
    axes = {key: {0: "batch", 1: "length"} for key in (*INPUTS, "states")}
    torch.onnx.export(States(model), tuple(example[key] for key in INPUTS), path, input_names=list(INPUTS),
                      output_names=["states"], dynamic_axes=axes, opset_version=18, dynamo=True)
    return path


def peers(model, folder, threads):
    torch.set_num_threads(threads)
    found = [SentenceTransformers(model)]
    try:
        path = export(model, folder)
    except Exception as error:  # every version of the exporter fails in its own way
        print(f"the model cannot be exported, so onnxruntime and OpenVINO are left out: {error}", file=sys.stderr)
        return found
    try:
        import onnxruntime
        from onnxruntime.transformers import optimizer

        config = AutoConfig.from_pretrained(model)
        fast = os.path.join(folder, "fast.onnx")
        optimizer.optimize_model(path, model_type="bert", num_heads=config.num_attention_heads,
                                 hidden_size=config.hidden_size).save_model_to_file(fast)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(fast, options)
        found.append(Exported("onnxruntime", model, lambda inputs: session.run(None, inputs)[0]))
    except ImportError:
        print("onnxruntime is not installed: left out", file=sys.stderr)
    try:
        import openvino

        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads})
        compiled = core.compile_model(core.read_model(path), "CPU",
                                      {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        found.append(Exported("OpenVINO", model, lambda inputs: compiled(inputs)[compiled.output(0)]))
    except ImportError:
        print("OpenVINO is not installed: left out", file=sys.stderr)
    return found


def write_lines(sentences, folder):
    """Writes a sentence a line; returns the file's name."""
    file = os.path.join(folder, "lines")
    with open(file, "w", encoding="utf8") as out:
        out.write("".join(sentence + "\n" for sentence in sentences))
    return file


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def operations(config, lengths):
    """Floating-point operations of the encoder: products with weights, and of queries, keys and values."""
    d, ff = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * sum(n * 2 * (4 * d * d + 2 * d * ff) + 4 * n * n * d for n in lengths)


def measure(name, sentences, ours, others, args, folder):
    file = write_lines(sentences, folder)
    tokens = ours.ask("lines " + file)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    lengths = [min(LONGEST, len(ids)) for ids in tokenizer(sentences, truncation=True, max_length=LONGEST)["input_ids"]]
    assert sum(lengths) == tokens, (sum(lengths), tokens)
    ours.ask("all")
    best = {peer.name: min(BATCHES, key=lambda batch: seconds(lambda: peer.embed(sentences, batch))) for peer in others}
    times = {side.name: [] for side in (ours, *others)}
    alone = {side.name: [] for side in (ours, *others)}
    peaks = []
    for _ in range(args.rounds):
        peaks.append(ours.ask("peak"))
        times[ours.name].append(ours.ask("all"))
        alone[ours.name].append(ours.ask(f"alone {ALONE}"))
        for peer in others:
            times[peer.name].append(seconds(lambda: peer.embed(sentences, best[peer.name])))
            alone[peer.name].append(statistics.median(seconds(lambda: peer.embed([s], 1)) for s in sentences[:ALONE]))
    ours.ask("write " + file)
    vectors = np.fromfile(file, np.float32).reshape(len(sentences), -1)
    cosines = {}
    for peer in others:
        rows = peer.embed(sentences, best[peer.name])
        cosines[peer.name] = float((vectors.astype(np.float64) * rows).sum(1).min())
    median = {side: statistics.median(t) for side, t in times.items()}
    one = {side: statistics.median(t) for side, t in alone.items()}
    fastest = min((peer.name for peer in others), key=median.get)
    peak = statistics.median(peaks)
    gflops = operations(AutoConfig.from_pretrained(args.model), lengths) / median[ours.name] / 1e9
    row = {"text": name, "sentences": len(sentences), "tokens": int(tokens),
           "sentences_per_second": {side: round(len(sentences) / t, 1) for side, t in median.items()},
           "batch_size": best, "milliseconds_alone": {side: round(1e3 * t, 3) for side, t in one.items()},
           "ratio_to_fastest": {fastest: round(median[fastest] / median[ours.name], 3)},
           "ratio_alone": {side: round(t / one[ours.name], 3) for side, t in one.items() if side != ours.name},
           "gflops": round(gflops, 1), "peak_gflops": round(peak, 1), "share_of_peak": round(gflops / peak, 3),
           "least_cosine": cosines}
    print(json.dumps(row, indent=1), file=sys.stderr)
    return row


def start_to_first_vector(args, folder):
    file = os.path.join(folder, "one")
    with open(file, "w", encoding="utf8") as out:
        out.write("two dogs run .\n")
    command = [os.path.join(args.build, "multihead"), "embed", "--model", args.model, "-i", file, "-o", file + ".npy",
               "--format", "npy", "--quiet"]
    return statistics.median(seconds(lambda: subprocess.run(command, check=True)) for _ in range(11))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours, others = Ours(args.build, args.model), peers(args.model, folder, args.threads)
        rows = [measure(name, sentences, ours, others, args, folder) for name, sentences in texts(args.data).items()]
        result = {"what": "sentence vectors, float32, beside " + ", ".join(peer.name for peer in others),
                  "command": "python benchmarks/peers/embed.py --build BUILD --model MODEL --data DATA",
                  "machine": {"processor": processor(), "threads": args.threads, "system": f"{platform.system()} {platform.machine()}"},
                  "peak_mebibytes": round(ours.ask("memory"), 1),
                  "milliseconds_start_to_first_vector": round(1e3 * start_to_first_vector(args, folder), 1), "rows": rows}
    if args.out:
        write_results(args.out, result)


if __name__ == "__main__":
    main()
