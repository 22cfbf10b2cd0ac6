"""What the results say about the machine they were measured on, and how they are written."""

import json
import os
import platform
import subprocess


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.processor())


def peak_gflops(build):
    """Float32 peak: a loop of multiply-adds on every thread at once."""
    program = os.path.join(build, "benchmarks", "attention_speed")
    return float(subprocess.run([program], input="peak\n", check=True, capture_output=True, text=True).stdout)


def write_results(path, results):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
