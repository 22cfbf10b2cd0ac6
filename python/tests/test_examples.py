"""The notebooks and examples run from beginning to end, and what is committed is small and has no page in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import real_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


# What a notebook reads, by the variables that say where it is; others read what comes with the package.
NEEDED = {"heads_of_minilm": ["MULTIHEAD_MODELS", "MULTIHEAD_DATA"], "circuit_of_indirect_objects": ["MULTIHEAD_MODELS"]}


def test_there_are_four() -> None:
    names = ["bert_in_pytorch", "circuit_of_indirect_objects", "five_questions", "heads_of_minilm"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 400_000 and "<iframe" not in text
    cells = json.loads(text)["cells"]
    assert all(
        cell["outputs"] or "import" in "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code" and cell["source"]
    )
    assert not any(output.get("output_type") == "error" for cell in cells for output in cell.get("outputs", []))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path) -> None:
    for package in ("nbclient", "ipykernel", "matplotlib", *(("torch", "transformers") if path.stem == "bert_in_pytorch" else ())):
        pytest.importorskip(package)
    if missing := [name for name in NEEDED.get(path.stem, []) if not os.environ.get(name)]:
        pytest.skip(f"it needs {' and '.join(missing)}")
    sys.path.insert(0, str(EXAMPLES.parent / "python"))
    from run_notebooks import run

    run(path)


def test_finds_the_head_for_objects(tmp_path: Path, trees: Path) -> None:
    pytest.importorskip("matplotlib")
    script, picture = EXAMPLES / "verb_to_object.py", tmp_path / "change.png"
    lines = [line for line in script.read_text(encoding="utf-8").split('"""', 2)[2].splitlines() if line]
    assert len(lines) <= 15
    words = [sys.executable, script, real_model("minilm"), trees, picture]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "encoder.3.self_attention.1\n"), done.stderr
    assert picture.stat().st_size > 1000
