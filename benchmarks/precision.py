"""What each precision costs and gives (docs/precision.md): speed and memory, in turns in one run, and exactness beside "same".

    pip install numpy
    python benchmarks/precision.py --build BUILD --sentences FILE --lines FILE [--out FILE.json]

BUILD is a build folder with the benchmarks and, in BUILD/models, what scripts/models fetches. FILE: a text a line; --sentences are
embedded, --lines are read by the models that predict words. Prints the table in Markdown.
"""

import argparse
import os
import statistics
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
from machine import processor, write_results  # noqa: E402
from program import Program  # noqa: E402
from vectors import nearness  # noqa: E402

PRECISIONS = ("same", "near", "fast")
TEXT_MODELS = {"smollm2.gguf": "SmolLM2-135M, Q4_1", "gemma3.gguf": "Gemma 3 270M, Q4_K_M"}
PROMPT, NEW, LINES, ROUNDS = 512, 40, 200, 7


def started(build, name, model):
    """A program for each precision."""
    programs = {}
    for precision in PRECISIONS:
        programs[precision] = Program(os.path.join(build, "benchmarks", name), os.path.join(build, "models", model))
        programs[precision].ask(f"precision {precision}")
    return programs


def in_turns(programs, command):
    """Median seconds of each program, and the median of its ratios to "same"."""
    for program in programs.values():
        program.ask(command)
    rounds = [{name: program.ask(command) for name, program in programs.items()} for _ in range(ROUNDS)]
    return {
        name: {
            "seconds": statistics.median(times[name] for times in rounds),
            "times_as_fast": statistics.median(times["same"] / times[name] for times in rounds),
        }
        for name in programs
    }


def sentences(build, path):
    programs = started(build, "embed_speed", "minilm")
    with open(path, encoding="utf-8") as file:
        count = len(file.read().splitlines())
    for program in programs.values():
        program.ask(f"lines {path}")
    speed = in_turns(programs, "all")
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, program in programs.items():
            program.ask(f"write {folder}/rows")
            vectors = np.fromfile(f"{folder}/rows", "float32").reshape(count, -1)
            rows[name] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    result = {}
    for name, program in programs.items():
        result[name] = {
            "sentences_a_second": count / speed[name]["seconds"],
            "times_as_fast": speed[name]["times_as_fast"],
            **nearness(rows[name], rows["same"]),
            "memory_mib": program.ask("memory"),
        }
    return result


def text(build, model, path):
    programs = started(build, "generate_speed", model)
    stream, prompt = in_turns(programs, f"streams 1 {NEW}"), in_turns(programs, f"prompt {PROMPT}")
    exact = Program(os.path.join(build, "benchmarks", "exactness_speed"), os.path.join(build, "models", model))
    exact.ask(f"lines {path} {LINES}")
    perplexity = exact.ask("keep")
    result = {}
    for name, program in programs.items():
        exact.ask(f"precision {name}")
        changed = exact.ask("compare") / perplexity - 1
        result[name] = {
            "tokens_a_second": NEW / stream[name]["seconds"],
            "times_as_fast": stream[name]["times_as_fast"],
            "prompt_tokens_a_second": PROMPT / prompt[name]["seconds"],
            "prompt_times_as_fast": prompt[name]["times_as_fast"],
            "memory_mib": program.ask("memory"),
            "divergence": exact.ask("divergence"),
            "first_kept": exact.ask("first"),
            "perplexity_changed": changed,
        }
    return result


def sentence_row(name, row):
    return (
        f"| MiniLM, `{name}` | {row['sentences_a_second']:.0f} a second, {row['times_as_fast']:.2f} x "
        f"| {row['memory_mib']:.0f} MiB | {row['mean_cosine']:.5f}, {row['least_cosine']:.5f} | {row['nearest_kept']:.1%} |"
    )


def text_row(label, name, row):
    return (
        f"| {label}, `{name}` | {row['tokens_a_second']:.0f} tokens/s, {row['times_as_fast']:.2f} x "
        f"| {row['prompt_tokens_a_second']:.0f}, {row['prompt_times_as_fast']:.2f} x | {row['memory_mib']:.0f} MiB "
        f"| {row['divergence']:.1e} | {row['first_kept']:.1%} | {row['perplexity_changed']:+.2%} |"
    )


def heading(*cells):
    print("\n| " + " | ".join(cells) + " |\n" + "|---" * len(cells) + "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--sentences", required=True)
    parser.add_argument("--lines", required=True)
    parser.add_argument("--out")
    options = parser.parse_args()
    results = {"machine": processor(), "threads": os.cpu_count()}
    for name in ("sentences", "lines"):
        results[name] = os.path.basename(getattr(options, name))
    heading("sentences", "speed", "memory", "mean, least cosine", "nearest kept")
    results["MiniLM, float32"] = sentences(options.build, options.sentences)
    for name, row in results["MiniLM, float32"].items():
        print(sentence_row(name, row))
    heading("text", "one stream", "prompt of 512", "memory", "divergence", "first word kept", "perplexity")
    for model, label in TEXT_MODELS.items():
        if not os.path.exists(os.path.join(options.build, "models", model)):
            continue
        results[label] = text(options.build, model, options.lines)
        for name, row in results[label].items():
            print(text_row(label, name, row))
    if options.out:
        write_results(options.out, results)


if __name__ == "__main__":
    main()
