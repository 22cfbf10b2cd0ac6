"""What a cache of bfloat16 costs and gives (docs/precision.md#the-cache) beside one of float32, in turns in one run.

    python benchmarks/cache.py --build BUILD --lines FILE [--out FILE.json]

BUILD is a build folder with the benchmarks and, in BUILD/models, what scripts/models fetches; --lines are texts, a line each, which
are joined and cut to texts of 512 tokens. Prints the tables in Markdown.
"""

import argparse
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
from machine import processor, write_results  # noqa: E402
from program import Program  # noqa: E402

TYPES = ("float32", "bfloat16")
CONTEXTS = (512, 4096, 8000)
NEW, ROUNDS, TOKENS, TEXTS = 20, 7, 512, 16


def started(build, name, model):
    return Program(os.path.join(build, "benchmarks", name), os.path.join(build, "models", model))


def context(build, model, tokens):
    programs = {name: started(build, "generate_speed", model) for name in TYPES}
    for name, program in programs.items():
        program.ask(f"cache {name}")
        program.ask(f"context {tokens} 2")
    rounds = [{name: program.ask(f"context {tokens} {NEW}") for name, program in programs.items()} for _ in range(ROUNDS)]
    return {
        name: {
            "tokens_a_second": NEW / statistics.median(times[name] for times in rounds),
            "times_as_fast": statistics.median(times["float32"] / times[name] for times in rounds),
            "memory_mib": program.ask("memory"),
        }
        for name, program in programs.items()
    }


def exactness(build, model, path):
    program = started(build, "exactness_speed", model)
    program.ask(f"text {path} {TOKENS} {TEXTS}")
    program.ask("cache float32")
    perplexity = program.ask("keep")
    program.ask("cache bfloat16")
    changed = program.ask("compare") / perplexity - 1
    return {"divergence": program.ask("divergence"), "first_kept": program.ask("first"), "perplexity_changed": changed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--lines", required=True)
    parser.add_argument("--model", default="smollm2.gguf")
    parser.add_argument("--out")
    options = parser.parse_args()
    results = {"machine": processor(), "threads": os.cpu_count(), "model": options.model}
    print("| tokens in the cache | float32 | bfloat16 |\n|---|---|---|")
    for tokens in CONTEXTS:
        row = results[f"context of {tokens}"] = context(options.build, options.model, tokens)
        cells = [
            f"{of['tokens_a_second']:.0f} tokens/s, {of['times_as_fast']:.2f} x, {of['memory_mib']:.0f} MiB" for of in row.values()
        ]
        print(f"| {tokens:,} | " + " | ".join(cells) + " |", flush=True)
    found = results["exactness"] = exactness(options.build, options.model, options.lines)
    print(
        f"\ndivergence {found['divergence']:.1e}, first word kept {found['first_kept']:.1%}, "
        f"perplexity {found['perplexity_changed']:+.3%}"
    )
    if options.out:
        write_results(options.out, results)


if __name__ == "__main__":
    main()
