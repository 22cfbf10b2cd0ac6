"""What the tests share: models, texts, and the tool."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import multihead as mh

SENTENCES = [
    "the small dog sees a cat .",
    "two dogs run .",
    "a man sees the old dog .",
    "the woman buys a red car .",
    "she sleeps .",
]


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, also where pytest was started with SIGINT ignored: by nohup, or in the background of a script. What the
    tests start inherits its usual action, not that it is ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def python(code: str, *, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs code in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout, check=False
    )


def golden(name: str) -> Path:
    """A small model of the tests in C++, a folder of Transformers."""
    return Path(__file__).resolve().parents[2] / "tests" / "goldens" / name


@pytest.fixture(scope="session")
def demo() -> mh.Model:
    return mh.demo()


def real_model(name: str) -> Path:
    """A model of scripts/models; skipped where MULTIHEAD_MODELS is not set."""
    models = os.environ.get("MULTIHEAD_MODELS")
    if not models:
        pytest.skip("MULTIHEAD_MODELS is not set (scripts/models)")
    return Path(models) / name


@pytest.fixture(scope="session")
def minilm() -> mh.Model:
    return mh.load(real_model("minilm"))


@pytest.fixture(scope="session")
def smollm2() -> mh.Model:
    return mh.load(real_model("smollm2.gguf"))


@pytest.fixture(scope="session")
def trees() -> Path:
    """Dependency trees of English sentences; skipped where MULTIHEAD_DATA is not set."""
    data = os.environ.get("MULTIHEAD_DATA")
    if not data:
        pytest.skip("MULTIHEAD_DATA is not set")
    return Path(data) / "ud-ewt" / "en_ewt-ud-dev.conllu.gz"


@pytest.fixture(scope="session")
def ewt(trees: Path) -> list[str]:
    """The sentences of these trees."""
    with gzip.open(trees, "rt", encoding="utf-8") as file:
        return [line[len("# text = ") :].rstrip("\n") for line in file if line.startswith("# text = ")]


@pytest.fixture
def tool(tmp_path: Path) -> Callable[..., str]:
    """Runs `python -m multihead` and returns what it prints; texts are written to a file for -i."""

    def run(*words: str, texts: list[str] | None = None) -> str:
        command = [sys.executable, "-m", "multihead", *words]
        if texts is not None:
            file = tmp_path / "texts.txt"
            file.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
            command += ["-i", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
