#!/usr/bin/env python3
"""scripts/per_file.py CHECK VERSION... < COMMANDS: runs a command for each C++ file, on all processors, the longest files first, and
leaves out the files of which nothing has changed since they passed.

COMMANDS has lines "FILE<tab>COMMAND"; FILE is absolute or written from the root. CHECK names the check. VERSION...: which tool checks,
by which rules. A file that passes leaves an empty file in CI_RECORDS/CHECK (CI_RECORDS: by default ~/.cache/multihead/passed) whose name
is a hash of all that the command reads: the command, the file and those that it includes, directly or through others, the installed
development packages and VERSION.... Where the checkout lies does not count, so the record holds in every checkout of this machine.

Prints what failing commands print and how many files were read; a line "unchanged: ..." says how many were left out. Exits with 1 when
a command failed.
"""

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


@dataclass
class Job:
    file: str
    command: str
    needs: str = ""  # a command that must have succeeded before, which several jobs may share


class Sources:
    """The files of the checkout, each read once."""

    def __init__(self):
        self.known = {}

    def read(self, path):
        """(hash, lines, the two places where each quoted include may lie, what is included in angle brackets), None: no such file."""
        if path not in self.known:
            try:
                data = (ROOT / path).read_bytes().replace(f"{ROOT}/".encode(), b"")  # as it would be in another checkout
            except OSError:
                self.known[path] = None
            else:
                found = INCLUDE.findall(data)
                quoted = [name.decode() for name, _ in found if name]
                places = [(os.path.normpath(f"{os.path.dirname(path)}/{name}"), os.path.normpath(name)) for name in quoted]
                outside = {name.decode() for _, name in found if name}
                self.known[path] = (hashlib.sha256(data).hexdigest(), data.count(b"\n"), places, outside)
        return self.known[path]

    def closure(self, path):
        """{path: what read() says} of a file and of all that it includes; an include is written from its folder or from the root."""
        found, queue = {}, [path.removeprefix(f"{ROOT}/")]
        while queue:
            path = queue.pop()
            file = self.read(path)
            if path in found or file is None:
                continue
            found[path] = file
            queue += [beside if self.read(beside) else from_root for beside, from_root in file[2]]
        return found


def installed_headers():
    """What brings the headers from outside: names and versions of packages."""
    packages = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n"], capture_output=True, text=True, check=False)
    return "".join(line for line in packages.stdout.splitlines(True) if "-dev" in line)


def succeeds(command):
    """Whether it does, and what it printed."""
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0, done.stdout.decode(errors="replace")


def run(check, versions, jobs, sources):
    """Runs the jobs that have not passed; returns the exit status of a script that does only this."""
    cache = os.environ.get("XDG_CACHE_HOME") or f"{Path.home()}/.cache"
    records = Path(os.environ.get("CI_RECORDS") or f"{cache}/multihead/passed") / check
    records.mkdir(parents=True, exist_ok=True)
    salt = [check, *versions, installed_headers()]
    work = []
    for job in jobs:
        files = sources.closure(job.file)
        if not files:
            sys.exit(f"{check}: there is no file {job.file}")
        read = [*salt, job.command.replace(str(ROOT), "."), *(f"{path} {files[path][0]}" for path in sorted(files))]
        record = records / hashlib.sha256("\n".join(read).encode()).hexdigest()
        if not record.exists():
            work.append((sum(file[1] for file in files.values()), job, record))
    work.sort(key=lambda item: -item[0])
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for passed, output in pool.map(succeeds, sorted({job.needs for _, job, _ in work if job.needs})):
            if not passed:
                print(output)
                return 1
        for (_, job, record), (passed, output) in zip(work, pool.map(succeeds, [job.command for _, job, _ in work]), strict=True):
            if passed:
                record.touch()
            else:
                failed += 1
                print(f"{job.file.removeprefix(f'{ROOT}/')}:\n{output}", flush=True)
    print(f"{check}: {len(work)} files read, {failed} failed")
    if len(work) < len(jobs):
        print(f"unchanged: {len(jobs) - len(work)} of {len(jobs)} files of {check}")
    return 1 if failed else 0


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: scripts/per_file.py CHECK VERSION... < COMMANDS")
    return run(sys.argv[1], sys.argv[2:], [Job(*line.rstrip("\n").split("\t", 1)) for line in sys.stdin], Sources())


if __name__ == "__main__":
    sys.exit(main())
