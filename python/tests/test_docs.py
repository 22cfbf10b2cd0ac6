"""The Python of the README and of docs/python.md runs, and what it prints is what it says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import real_model

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return [(match[1] or "", match[2]) for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks("README.md")
    assert len(found) == 1
    exec(compile(found[0][1], "README.md", "exec"), {})
    assert "der kleine Hund sieht eine Katze ." in capsys.readouterr().out
    assert (tmp_path / "heads.html").stat().st_size > 100_000


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks for real models are left out where there are none."""
    monkeypatch.chdir(tmp_path)
    there: dict[str, Any] = {}
    names = {""}
    if os.environ.get("MULTIHEAD_MODELS"):
        there |= {"minilm_folder": real_model("minilm"), "smollm2_file": real_model("smollm2.gguf")}
        names |= {"minilm", "smollm2"}
        if data := os.environ.get("MULTIHEAD_DATA"):
            there["trees"] = Path(data) / "ud-ewt" / "en_ewt-ud-dev.conllu.gz"
            names.add("trees")
    found = blocks("docs/python.md")
    assert len(found) >= 8
    for kind, code in found:
        if kind in names:
            exec(compile(code, "docs/python.md", "exec"), there)
    if "trees" in there:
        assert there["ranked"].where(direction="to_dependent")[0]["head"] == "encoder.3.self_attention.1"
