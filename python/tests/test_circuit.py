"""Circuits of the demo translator: as the tool says, with changed heads, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import multihead as mh

DOG, CAT = "the small dog sees a cat .", "the small cat sees a cat ."
PAIR = (DOG, CAT, "Hund", "Katze", "der kleine")


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_circuit(demo: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    picture = tmp_path / "circuit.svg"
    found = mh.heads.circuit(demo, [PAIR], share=0.7, exact=3, random=11, svg=picture)
    report = found.report
    assert report["faithfulness"]["mean"] >= 0.7 and report["random"]["count"] == 11
    assert len(found) == len(report["edges"]) >= 1 and len(report["exact"]) == 3
    assert {edge["from"].split(".")[0] for edge in report["edges"]} == {"encoder", "decoder"} or len(found) < 3
    assert picture.read_text().startswith("<svg")
    arguments = [f"--{name}={text}" for name, text in zip(("clean", "corrupt", "answer", "wrong", "prefix"), PAIR, strict=True)]
    told = tool("heads", "circuit", "demo", *arguments, "--share=0.7", "--exact=3", "--random=11", "--json")
    assert json.loads(told) == report
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("\t".join(PAIR) + "\n")
    told = tool("heads", "circuit", "demo", "-i", str(pairs), "--share=0.7", "--exact=3", "--random=11", "--json")
    assert json.loads(told) == report


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_circuit_without_a_head(demo: mh.Model) -> None:
    head = "decoder.0.self_attention.1"
    with demo.edit(mute=head):
        found = mh.heads.circuit(demo, [PAIR], share=0.7, exact=1000, random=0)
    effects = [edge["effect"]["mean"] for edge in found.report["exact"] if edge["from"] == head]
    assert effects == pytest.approx([0] * len(effects), abs=1e-4)
    assert all(edge["from"] != head for edge in found.report["edges"])


def test_wrong_pairs(demo: mh.Model) -> None:
    with pytest.raises(mh.UsageError, match="no pair"):
        mh.heads.circuit(demo, [])
    with pytest.raises(mh.UsageError, match="expected \\(clean, corrupt, answer, wrong\\)"):
        mh.heads.circuit(demo, [(DOG, CAT, "Hund")])
    with pytest.raises(mh.UsageError, match="pair 2: "):
        mh.heads.circuit(demo, [PAIR, (DOG, CAT + " .", "Hund", "Katze", "der kleine")])
    with pytest.raises(mh.UsageError, match="exchange"):
        mh.heads.circuit(demo, [(CAT, DOG, "Hund", "Katze", "der kleine")])
