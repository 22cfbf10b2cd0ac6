"""Sentence vectors with small weights beside OpenVINO and onnxruntime: the same model, sentences and threads, in turns in one run.

    pip install torch transformers onnx onnxscript onnxruntime openvino nncf
    python benchmarks/peers/embed_small.py --build BUILD --model MODEL --data DATA [--out FILE.json]

Arguments as of embed.py; DATA has multi30k/train.en.gz, too. OpenVINO computes in bfloat16, and in int8 with static scales: weights
by channel, activations with scales found on 300 sentences of the training text. onnxruntime computes in int8 with dynamic scales.
Lengths are padded to multiples of 8, so that few shapes are met. Each peer has its best batch size of 8, 32 and 128, sentences
sorted by length. Cosines, and whether a sentence's nearest other one is the same, are those to our vectors of float32 arithmetic.
"""

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from embed import BATCHES, INPUTS, LONGEST, Exported, Ours, export, seconds, texts, write_lines  # noqa: E402
from machine import processor, write_results  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from vectors import nearness  # noqa: E402

PRECISIONS = ("same", "near", "fast")
CALIBRATION = 300


def padded(tokenizer, sentences):
    inputs = tokenizer(sentences, padding=True, pad_to_multiple_of=8, truncation=True, max_length=LONGEST, return_tensors="np")
    return {key: inputs[key].astype(np.int64) for key in INPUTS}


class Bucketed(Exported):
    def __init__(self, name, model, states):
        super().__init__(name, model, states)
        exact = self.tokenizer
        self.tokenizer = lambda sentences, **_: padded(exact, sentences)


def openvino_peers(model, path, data, threads):
    import nncf
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads})

    def compiled(network, precision):
        made = core.compile_model(network, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision})
        return lambda inputs: made(inputs)[made.output(0)]

    with gzip.open(os.path.join(data, "multi30k/train.en.gz"), "rt", encoding="utf8") as file:
        sentences = [next(file).strip() for _ in range(CALIBRATION)]
    tokenizer = AutoTokenizer.from_pretrained(model)
    network = core.read_model(path)
    rounded = nncf.quantize(network, nncf.Dataset(sentences, lambda sentence: padded(tokenizer, [sentence])),
                            model_type=nncf.ModelType.TRANSFORMER, subset_size=CALIBRATION)
    return [Bucketed("OpenVINO bfloat16", model, compiled(core.read_model(path), "bf16")),
            Bucketed("OpenVINO int8", model, compiled(rounded, "f32")),
            Bucketed("OpenVINO int8, else bfloat16", model, compiled(rounded, "bf16"))]


def onnxruntime_peer(model, path, threads):
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    rounded = path.replace(".onnx", ".int8.onnx")
    quantize_dynamic(path, rounded, weight_type=QuantType.QInt8, per_channel=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(rounded, options)
    return Bucketed("onnxruntime int8", model, lambda inputs: session.run(None, inputs)[0])


def measure(name, sentences, ours, peers, rounds, folder):
    file = write_lines(sentences, folder)
    batches = {peer.name: min(BATCHES, key=lambda batch: seconds(lambda: peer.embed(sentences, batch))) for peer in peers}
    rows = {}
    for precision, program in ours.items():
        program.ask("lines " + file)
        program.ask("all")
        program.ask("write " + file + ".rows")
        vectors = np.fromfile(file + ".rows", np.float32).reshape(len(sentences), -1).astype(np.float64)
        rows[f"multihead {precision}"] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for peer in peers:
        rows[peer.name] = peer.embed(sentences, batches[peer.name])
    times = {side: [] for side in rows}
    for _ in range(rounds):
        for precision, program in ours.items():
            times[f"multihead {precision}"].append(program.ask("all"))
        for peer in peers:
            times[peer.name].append(seconds(lambda: peer.embed(sentences, batches[peer.name])))
    exact = rows["multihead same"]
    found = {}
    for side, vectors in rows.items():
        found[side] = {"sentences_per_second": round(len(sentences) / statistics.median(times[side]), 1),
                       **{key: round(value, 6) for key, value in nearness(vectors, exact).items()}}
        if side in batches:
            found[side]["batch_size"] = batches[side]
    print(json.dumps({name: found}, indent=1), file=sys.stderr, flush=True)
    return {"text": name, "sentences": len(sentences), "sides": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = export(args.model, folder)
        peers = [*openvino_peers(args.model, path, args.data, args.threads), onnxruntime_peer(args.model, path, args.threads)]
        ours = {precision: Ours(args.build, args.model) for precision in PRECISIONS}
        for precision, program in ours.items():
            program.ask(f"precision {precision}")
        rows = [measure(name, sentences, ours, peers, args.rounds, folder) for name, sentences in texts(args.data).items()]
    if args.out:
        write_results(args.out, {"what": "sentence vectors in fewer bits, two threads",
                       "command": "python benchmarks/peers/embed_small.py --build BUILD --model MODEL --data DATA",
                       "machine": processor(), "rows": rows})


if __name__ == "__main__":
    main()
