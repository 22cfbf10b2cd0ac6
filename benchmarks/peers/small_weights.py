"""Text from GGUF files with small weights beside llama.cpp and ik_llama.cpp: the same file and threads, in turns in one run.

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary :all: llama-cpp-python ik-llama-cpp-python
    python benchmarks/peers/small_weights.py --build BUILD [--out FILE.json] FILE.gguf... [FOLDER]

BUILD is a build folder with the benchmarks. Of each peer the best of its settings counts, work by work: llama.cpp with and without
flash attention, ik_llama.cpp with all four of flash attention and repacking at loading. A FOLDER with the float32 numbers of one of
the files (multihead convert FILE.gguf --out FOLDER --dtype float32) is run by us alone.
"""

import argparse
import json
import math
import os
import statistics
import sys

from machine import processor, write_results
from program import Program

PROMPT, NEW, STREAMS = 512, 48, 8
PRECISIONS = ("same", "near", "fast")
PEERS = {
    "llama.cpp": ("llama_cpp", ([], ["flash"])),
    "ik_llama.cpp": ("ik_llama_cpp", ([], ["flash"], ["repack"], ["flash", "repack"])),
}
HERE = os.path.dirname(os.path.abspath(__file__))


def started(build, file):
    """Our programs by precision, the peers' by their settings, and the least seconds of each to load, one after the other."""
    ours, peers, seconds = {}, {}, {}
    for precision in PRECISIONS:
        program = ours[precision] = Program(os.path.join(build, "benchmarks", "generate_speed"), file)
        program.ask(f"precision {precision}")
        seconds[f"multihead {precision}"] = program.ask("loading")
    if os.path.isfile(file):
        for name, (library, all_settings) in PEERS.items():
            command = [sys.executable, os.path.join(HERE, "llama_speed.py"), library, file]
            peers[name] = {}
            for settings in all_settings:
                peers[name][" ".join(settings) or "plain"] = program = Program(*command, *settings)
                seconds[name] = min(seconds.get(name, math.inf), program.ask("loading"))
    return ours, peers, {name: round(least, 3) for name, least in seconds.items()}


def best_settings(peers, command):
    """Of each peer the settings that answer soonest, the better of two times."""
    def seconds(programs, settings):
        try:
            return min(programs[settings].ask(command) for _ in range(2))
        except (ValueError, BrokenPipeError):  # it ended: ik_llama.cpp's flash attention does on several streams
            print(f"{settings}: ended at {command}", file=sys.stderr)
            return math.inf
    return {name: min(programs, key=lambda settings: seconds(programs, settings)) for name, programs in peers.items()}


def measure(ours, peers, command, tokens, rounds):
    settings = best_settings(peers, command)
    sides = {f"multihead {name}": program for name, program in ours.items()}
    sides.update({name: peers[name][best] for name, best in settings.items()})
    times, widths = {name: [] for name in sides}, []
    for program in sides.values():
        program.ask(command)
    for _ in range(rounds):
        widths.append(ours["same"].ask("bandwidth"))
        for name, program in sides.items():
            times[name].append(program.ask(command))
    fast = times["multihead fast"]
    return {
        "tokens_per_second": {name: round(tokens / statistics.median(t), 1) for name, t in times.items()},
        "fast_is_times_as_fast_as": {name: round(statistics.median(other / mine for other, mine in zip(t, fast)), 3)
                                     for name, t in times.items() if name != "multihead fast"},
        "settings": settings,
        "gigabytes_per_second": round(statistics.median(widths), 2),
    }


def measured(build, file, rounds):
    ours, peers, seconds = started(build, file)
    row = {"file": os.path.basename(file), "seconds_to_load": seconds}
    for program in (*ours.values(), *(program for programs in peers.values() for program in programs.values())):
        program.ask(f"prompt {PROMPT}")
    row["mebibytes"] = {f"multihead {name}": round(program.ask("memory"), 1) for name, program in ours.items()}
    for name, programs in peers.items():
        row["mebibytes"][name] = min(round(program.ask("memory"), 1) for program in programs.values())
    for what, command, tokens in ((f"prompt of {PROMPT}", f"prompt {PROMPT}", PROMPT), ("one stream", f"streams 1 {NEW}", NEW),
                                  (f"{STREAMS} streams", f"streams {STREAMS} {NEW}", STREAMS * NEW)):
        row[what] = measure(ours, peers, command, tokens, rounds)
    if os.path.isfile(file):
        row["bytes"] = os.path.getsize(file)
        one = row["one stream"]
        read = row["bytes"] * one["tokens_per_second"]["multihead fast"] / 1e9
        one["share_of_bandwidth"] = round(read / one["gigabytes_per_second"], 3)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    options = parser.parse_args()
    rows = []
    for file in options.models:
        rows.append(measured(options.build, file, options.rounds))
        print(json.dumps(rows[-1]), flush=True)
    if options.out:
        result = {"what": f"a prompt, and {NEW} tokens after each of 1 and {STREAMS} short prompts, two threads",
                  "command": "python benchmarks/peers/small_weights.py --build BUILD FILE.gguf... [FOLDER]",
                  "machine": processor(), "rows": rows}
        write_results(options.out, result)


if __name__ == "__main__":
    main()
