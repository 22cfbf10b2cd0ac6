#!/usr/bin/env python3
"""Real processes over Open MPI: ranks are killed and stopped at random moments, and no update is lost that a checkpoint has.

    make mpi
    tests/distributed/kills.py --tool build/multihead [--kills 20] [--seed 1] [--log FILE.jsonl]

One reproducible training is killed again and again (SIGKILL, or SIGSTOP and a deadline of 3 s), each time with another
number of ranks, and then runs to its end. It must have the bits of a training of one process that nobody disturbed. Each
time all ranks must end in time, and exactly one line of ours must say which rank was lost. Writes a line for each kill.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

DEADLINE = 3
# Seconds until all ranks have ended; mpirun itself takes 1 to 3. Before MPI has started rank 1 waits 3 s longer than rank 0.
LONGEST = {"SIGKILL": 5.0, "SIGSTOP": DEADLINE + 3 + 6.0}
UPDATES = 400


def write_text(folder):
    words, out = "ab cd ef gh ij kl mn op".split(), random.Random(5)
    with open(f"{folder}/s", "w") as source, open(f"{folder}/t", "w") as target:
        for _ in range(800):
            line = [out.choice(words) for _ in range(out.randint(1, 12))]
            source.write(" ".join(line) + "\n")
            target.write(" ".join(word.upper() for word in reversed(line)) + "\n")


def command(flags, folder, model, ranks, updates=UPDATES):
    train = [flags.tool, "train", "--train-source", f"{folder}/s", "--train-target", f"{folder}/t", "--valid-source", f"{folder}/s",
             "--valid-target", f"{folder}/t", "--validate-beam", "0", "--validate-every", "100", "--save-every", "5", "--d-model", "32",
             "--heads", "2", "--d-ff", "40", "--encoder-layers", "1", "--decoder-layers", "1", "--vocabulary-size", "60",
             "--batch-tokens", "1000", "--updates", str(updates), "--threads", "1", "--reproducible", "--rank-timeout", str(DEADLINE),
             "--model", model]
    if ranks == 1:
        return train
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, "--oversubscribe", "-n", str(ranks), *train]


def ranks_of(folder, model):
    """Process numbers by rank, of the training in this folder."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", environment)
        if rank and model.encode() in arguments and b"mpirun" not in os.path.basename(arguments[0]):
            found[int(rank.group(1))] = int(entry)
    return found


def newest(model):
    try:
        return max((int(name.split("-")[1]) for name in os.listdir(f"{model}/checkpoints") if name.startswith("update-")), default=0)
    except FileNotFoundError:
        return 0


def weights(model):
    with open(f"{model}/model.safetensors", "rb") as file:
        return file.read()


def disturb(flags, folder, model, draw):
    """Starts the training, hits one of its ranks; returns what happened, None when it was over before."""
    ranks = draw.choice([2, 4])
    name = draw.choice(["SIGKILL", "SIGKILL", "SIGKILL", "SIGSTOP"])
    before = newest(model)
    with open(f"{folder}/log", "w+") as log:
        started = time.monotonic()
        running = subprocess.Popen(command(flags, folder, model, ranks), stderr=log, stdout=log)
        wait = draw.uniform(0.2, 3.0)
        time.sleep(wait)
        victim = draw.randrange(ranks)
        processes = ranks_of(folder, model)
        if running.poll() is not None or victim not in processes:
            running.wait()
            return None
        os.kill(processes[victim], getattr(signal, name))
        hit = time.monotonic()
        status = None
        while status is None and time.monotonic() - hit < 60:
            status = running.poll()
            others = [number for rank, number in processes.items() if rank != victim]
            if not any(os.path.exists(f"/proc/{number}") for number in others) and newest(model) == UPDATES:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(processes[victim], signal.SIGCONT)  # it was stopped when it had left: nobody waits for it
            time.sleep(0.02)
        if status is None:
            os.kill(processes[victim], signal.SIGKILL)  # a problem: it took too long
            status = running.wait()
        for number in processes.values():  # mpirun does not wait for those that it ends
            while os.path.exists(f"/proc/{number}") and time.monotonic() - hit < 60:
                time.sleep(0.02)
        seconds = time.monotonic() - hit
        log.seek(0)
        text = log.read()
    if status == 0 and newest(model) == UPDATES:
        return None
    ours = [line for line in text.splitlines() if line.startswith("multihead: ")]
    row = {"signal": name, "ranks": ranks, "rank": victim, "after_seconds": round(hit - started, 2), "ended_after_seconds": round(seconds, 2),
           "checkpoint_before": before, "checkpoint_after": newest(model), "status": status, "line": re.sub(r"/\S*/", "", ours[0]) if ours else ""}
    # Before MPI has started no rank knows the others, and after the last update ranks end because they are done.
    begun = "target tokens" in text and row["checkpoint_after"] < UPDATES
    problems = []
    if status == 0:
        problems.append("status 0")
    if seconds > LONGEST[name]:
        problems.append(f"took {seconds:.1f} s")
    if begun and (len(ours) != 1 or f"rank {victim} (process" not in ours[0]):
        problems.append(f"lines of ours: {ours}")
    if name == "SIGSTOP" and row["checkpoint_after"] < UPDATES and not ours:
        problems.append("nobody told")
    if row["checkpoint_after"] < before:
        problems.append("a checkpoint is gone")
    return {**row, "begun": begun, "problems": problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log")
    flags = parser.parse_args()
    draw, done, failed, trainings = random.Random(flags.seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        write_text(folder)
        subprocess.run(command(flags, folder, f"{folder}/alone", 1) + ["--quiet"], check=True)
        expected = weights(f"{folder}/alone")
        out = open(flags.log, "w") if flags.log else sys.stdout
        while done < flags.kills:
            model = f"{folder}/model{trainings}"
            trainings += 1
            while done < flags.kills and (row := disturb(flags, folder, model, draw)) is not None:
                done += 1
                failed += bool(row["problems"])
                print(json.dumps(row), file=out, flush=True)
            # Whatever was lost is made again.
            subprocess.run(command(flags, folder, model, draw.choice([1, 2, 4])) + ["--quiet"], check=True)
            if weights(model) != expected:
                failed += 1
                print(json.dumps({"problems": ["the model is not that of an undisturbed training"]}), file=out, flush=True)
    print(f"{done} ranks killed or stopped in {trainings} trainings, {failed} problems", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
