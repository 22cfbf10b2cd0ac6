"""The Python package beside the tool and the kernel on the same work, in turns, and `observe` beside transformers' attentions.

    python benchmarks/python_speed.py MODELS DATA TRANSLATOR [ROUNDS]

MODELS: what `scripts/models build` made. DATA: with multi30k and ud-ewt. TRANSLATOR: a trained folder. Needs the package, and for
the last row torch and transformers. Prints a row for each: seconds of both sides (medians), their ratio, and the difference.

Of the tool and of Python a row measures a whole process, from its start to its end, less what the same process takes that only
starts: `multihead --version`, or Python that imports the package. So loading the model and writing the result are in both.
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

TOOL = [sys.executable, "-c", "import multihead.__main__ as tool; tool.main()"]


def seconds_of(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def in_turns(rounds: int, *sides: list[str]) -> list[float]:
    """Medians of the commands, one after the other in every round, each second round backwards."""
    seconds: list[list[float]] = [[] for _ in sides]
    for round_number in range(rounds + 1):
        order = list(enumerate(sides))
        for side, command in order if round_number % 2 == 0 else reversed(order):
            found = seconds_of(command)
            if round_number > 0:  # the first warms the files up
                seconds[side].append(found)
    return [statistics.median(side) for side in seconds]


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *words]


def row(name: str, ours: float, other: float, what: str) -> None:
    print(f"{name:34}{ours:9.3f}{other:9.3f}{ours / other:8.3f}{1000 * (ours - other):+9.1f} ms  {what}", flush=True)


def attention(rounds: int) -> None:
    """mh.attention on [8, 512, 12, 64] against itself into memory that is there already: what the arrays of Python cost."""
    import numpy as np

    import multihead as mh

    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((8, 512, 12, 64), dtype=np.float32) for _ in range(3))
    out = np.empty_like(q)
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(20 * rounds):
        for side, options in enumerate(({}, {"out": out})):
            begun = time.perf_counter()
            mh.attention(q, k, v, **options)
            seconds[side].append(time.perf_counter() - begun)
    row("attention B8 T512 H12 D64", statistics.median(seconds[0]), statistics.median(seconds[1]), "new array, given array")


OBSERVE = """
    import resource, sys, time
    def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = open(sys.argv[2], encoding="utf-8").read().splitlines()
    import multihead as mh
    mh.set_threads(2)
    model = mh.load(sys.argv[1])
    model.embed(lines[:50])
    before, begun = peak(), time.perf_counter()
    total = 0.0
    for seen in model.observe(lines):
        for site in seen:
            total += float(seen[site][0, 0])
    print(time.perf_counter() - begun, peak() - before, total)
"""
TRANSFORMERS = """
    import resource, sys, time
    def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = open(sys.argv[2], encoding="utf-8").read().splitlines()
    import torch
    from transformers import AutoModel, AutoTokenizer
    torch.set_num_threads(2)
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    model = AutoModel.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
    with torch.inference_mode():
        for line in sorted(lines, key=len)[-50:]:
            model(**tokenizer(line, return_tensors="pt", truncation=True))
        before, begun = peak(), time.perf_counter()
        total = 0.0
        for line in lines:
            found = model(**tokenizer(line, return_tensors="pt", truncation=True), output_attentions=True)
            for layer in found.attentions:
                for head in range(layer.shape[1]):
                    total += float(layer[0, head, 0, 0])
        print(time.perf_counter() - begun, peak() - before, total)
"""


def observe(minilm: Path, text: Path, rounds: int) -> None:
    sides: list[list[tuple[float, float]]] = [[], []]
    for _ in range(rounds):
        for side, code in enumerate((OBSERVE, TRANSFORMERS)):
            done = subprocess.run(python(code, str(minilm), str(text)), check=True, capture_output=True, text=True)
            seconds, megabytes, _ = done.stdout.split()
            sides[side].append((float(seconds), float(megabytes)))
    ours, theirs = (tuple(statistics.median(values) for values in zip(*side, strict=True)) for side in sides)
    row("observe all weights, MiniLM", ours[0], theirs[0], "transformers, output_attentions=True")
    print(f"  memory beyond a plain pass: {ours[1]:.0f} MiB, transformers {theirs[1]:.0f} MiB")


def main() -> None:
    models, data, translator = (Path(word) for word in sys.argv[1:4])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    print(f"{'':34}{'ours':>9}{'other':>9}{'ratio':>8}{'more':>9}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ewt, source = Path(folder) / "ewt.txt", Path(folder) / "source.en"
        with gzip.open(data / "ud-ewt" / "en_ewt-ud-dev.conllu.gz", "rt", encoding="utf-8") as trees:
            ewt.write_text("".join(line[9:] for line in trees if line.startswith("# text = ")), encoding="utf-8")
        with gzip.open(data / "multi30k" / "test_2016_flickr.en.gz", "rt", encoding="utf-8") as lines:
            source.write_text("".join(lines.readlines()[:1000]), encoding="utf-8")
        out = str(Path(folder) / "out.npy")
        works = {
            "embed EWT, MiniLM": (
                ["embed", str(models / "minilm"), "-i", str(ewt), "-o", out, "--format", "npy"],
                python("""
                    import sys
                    import numpy as np
                    import multihead as mh
                    np.save(sys.argv[3], mh.load(sys.argv[1]).embed(open(sys.argv[2], encoding="utf-8").read().splitlines()))
                """, str(models / "minilm"), str(ewt), out),
            ),
            "translate 1,000 lines": (
                ["translate", "--model", str(translator), "-i", str(source), "-o", out],
                python("""
                    import sys
                    import multihead as mh
                    found = mh.load(sys.argv[1]).translate(open(sys.argv[2], encoding="utf-8").read().splitlines())
                    open(sys.argv[3], "w", encoding="utf-8").write("".join(line + "\\n" for line in found))
                """, str(translator), str(source), out),
            ),
            "generate 100 tokens, SmolLM2": (
                ["generate", str(models / "smollm2.gguf"), "--prompt", "The sky is", "--max-new-tokens", "100", "--greedy",
                 "-o", out],
                python("""
                    import sys
                    import multihead as mh
                    text = mh.load(sys.argv[1]).generate("The sky is", max_new_tokens=100, search="greedy")
                    open(sys.argv[2], "w", encoding="utf-8").write(text + "\\n")
                """, str(models / "smollm2.gguf"), out),
            ),
        }  # fmt: skip
        os.environ["PYTHONWARNINGS"] = "ignore"
        for name, (words, ours) in works.items():
            whole, tool, start, tool_start = in_turns(
                rounds, ours, [*TOOL, *words], python("import multihead, numpy"), [*TOOL, "--version"])  # fmt: skip
            row(name, whole - start, tool - tool_start, "the tool")
        attention(rounds)
        observe(models / "minilm", ewt, max(1, rounds // 2))


if __name__ == "__main__":
    main()
