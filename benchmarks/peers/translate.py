"""Translation speed beside CTranslate2: the same sizes, sentences, beams and threads, in turns in one run.

Both models have random weights and write exactly 15 tokens for each sentence, so that speed is compared and nothing else.

    pip install ctranslate2 numpy
    python benchmarks/peers/translate.py --build BUILD --text test.en[.gz] --train train.en[.gz] [--out FILE.json]

BUILD is a build folder with the tool and the benchmarks. --train is the text that the 8,000 tokens are learned from.
--precision fast --compute-type int8 compares small weights; CTranslate2 multiplies them with the library that CT2_USE_MKL=0
or 1 in the environment chooses, so measure both.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec
from machine import processor
from program import Program

VOCABULARY = 8000
LENGTH = 15
#        name: d_model, heads, d_ff, layers, sentences
SIZES = {"tiny": (128, 4, 256, 4, 1000), "base": (512, 8, 2048, 6, 300)}


def build_peer(folder, d_model, heads, d_ff, layers):
    rng = np.random.default_rng(0)
    spec = transformer_spec.TransformerSpec.from_config(
        (layers, layers), heads, pre_norm=False, activation=common_spec.Activation.RELU)

    def normal(*shape):
        return (rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)

    def linear(layer, out, inn):
        layer.weight, layer.bias = normal(out, inn), np.zeros(out, np.float32)

    def norm(layer):
        layer.gamma, layer.beta = np.ones(d_model, np.float32), np.zeros(d_model, np.float32)

    for side in (spec.encoder, spec.decoder):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = normal(VOCABULARY, d_model)
        for layer in side.layer:
            linear(layer.self_attention.linear[0], 3 * d_model, d_model)
            linear(layer.self_attention.linear[1], d_model, d_model)
            norm(layer.self_attention.layer_norm)
            if hasattr(layer, "attention"):
                linear(layer.attention.linear[0], d_model, d_model)
                linear(layer.attention.linear[1], 2 * d_model, d_model)
                linear(layer.attention.linear[2], d_model, d_model)
                norm(layer.attention.layer_norm)
            linear(layer.ffn.linear_0, d_ff, d_model)
            linear(layer.ffn.linear_1, d_model, d_ff)
            norm(layer.ffn.layer_norm)
    linear(spec.decoder.projection, VOCABULARY, d_model)
    tokens = ["</s>", "<unk>", "<s>"] + [f"t{i}" for i in range(3, VOCABULARY)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize()
    os.makedirs(folder)
    spec.save(folder)
    return tokens


class Peer:
    def __init__(self, folder, inter, intra, sentences, compute_type):
        self.translator = ctranslate2.Translator(
            folder, device="cpu", inter_threads=inter, intra_threads=intra, compute_type=compute_type)
        self.sentences = sentences

    def options(self, beam):
        return dict(beam_size=beam, max_batch_size=2048, batch_type="tokens",
                    min_decoding_length=LENGTH, max_decoding_length=LENGTH)

    def all(self, beam, count):
        start = time.perf_counter()
        self.translator.translate_batch(self.sentences[:count], **self.options(beam))
        return time.perf_counter() - start

    def single(self, beam, count):
        times = []
        for sentence in self.sentences[:count]:
            start = time.perf_counter()
            self.translator.translate_batch([sentence], **self.options(beam))
            times.append(time.perf_counter() - start)
        return statistics.median(times)


class Multihead(Program):
    def __init__(self, program, size, ids_file, batch_tokens, precision):
        super().__init__(program, size, str(VOCABULARY), str(LENGTH), str(batch_tokens), ids_file)
        self.ask(f"precision {precision}")

    def all(self, beam, count):
        return self.ask(f"all {beam} {count}")

    def single(self, beam, count):
        return self.ask(f"single {beam} {count}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--precision", default="same", help="of multihead's products: same, near or fast")
    parser.add_argument("--compute-type", default="float32", help="of CTranslate2: float32 or int8")
    parser.add_argument("--batch-tokens", type=int, default=2048, help="multihead's batches; CTranslate2 has 2048")
    parser.add_argument("--out")
    flags = parser.parse_args()

    work = tempfile.mkdtemp()
    tool, tokenizer, ids_file = os.path.join(flags.build, "multihead"), f"{work}/tokenizer.json", f"{work}/ids"
    subprocess.run([tool, "tokenize", "--train", flags.train, "--vocabulary-size", str(VOCABULARY), "--lowercase",
                    "--output-tokenizer", tokenizer], check=True)
    subprocess.run([tool, "tokenize", "--tokenizer", tokenizer, "--ids", "--special-tokens", "-i", flags.text,
                    "-o", ids_file], check=True)
    with open(ids_file) as lines:
        ids = [[int(word) for word in line.split()] for line in lines]

    threads = 2
    results = {
        "what": f"sentences per second, {threads} threads, exactly {LENGTH} tokens written for each sentence, random weights",
        "command": f"python benchmarks/peers/translate.py --build BUILD --text {os.path.basename(flags.text)} --train "
                   f"{os.path.basename(flags.train)} --sizes {' '.join(flags.sizes)} --rounds {flags.rounds} "
                   f"--precision {flags.precision} --compute-type {flags.compute_type}",
        "precision": flags.precision,
        "ctranslate2_computes": {"type": flags.compute_type, "CT2_USE_MKL": os.environ.get("CT2_USE_MKL", "not set")},
        "machine": f"{processor()}, {os.cpu_count()} processors",
        "versions": {"ctranslate2": ctranslate2.__version__, "python": platform.python_version()},
        "sentences": os.path.basename(flags.text),
        "rounds": flags.rounds,
        "runs": [],
    }
    for size in flags.sizes:
        *shape, count = SIZES[size]
        count = min(count, len(ids))
        tokens = build_peer(f"{work}/{size}", *shape)
        sentences = [[tokens[i] for i in line] for line in ids]
        peers = {f"{inter} x {intra}": Peer(f"{work}/{size}", inter, intra, sentences, flags.compute_type)
                 for inter, intra in ((1, 2), (2, 1))}
        program = os.path.join(flags.build, "benchmarks", "translate_speed")
        if not os.path.exists(program):
            program = os.path.join(flags.build, "translate_speed")
        ours = Multihead(program, size, ids_file, flags.batch_tokens, flags.precision)
        for beam in (1, 5):
            runners = {"multihead": ours, **peers}
            for runner in runners.values():
                runner.all(beam, 50)
            times = {name: [] for name in runners}
            for _ in range(flags.rounds):
                for name, runner in runners.items():
                    times[name].append(runner.all(beam, count))
            speed = {name: count / statistics.median(each) for name, each in times.items()}
            peer = max(speed[name] for name in peers)  # the better way to use its threads
            run = {"model": size, "beam": beam, "sentences": count,
                   "multihead": round(speed["multihead"], 1), "ctranslate2": round(peer, 1),
                   "ctranslate2_workers_x_threads": {name: round(speed[name], 1) for name in peers},
                   "ratio": round(speed["multihead"] / peer, 3)}
            print(run, flush=True)
            results["runs"].append(run)
        singles = {"multihead": ours, "ctranslate2": peers["1 x 2"]}
        for runner in singles.values():
            runner.single(5, 20)
        times = {name: [] for name in singles}
        for _ in range(3):
            for name, runner in singles.items():
                times[name].append(runner.single(5, 60) * 1e3)
        run = {"model": size, "beam": 5, "one_sentence_alone_ms":
               {name: round(statistics.median(each), 3) for name, each in times.items()}}
        print(run, flush=True)
        results["runs"].append(run)
    if flags.out:
        with open(flags.out, "w") as file:
            json.dump(results, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
