"""Directions: made of texts, in files, added by edits, and what they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh

TOWARD, AWAY = SENTENCES[:2], SENTENCES[2:]
SITE = "decoder.0.output"
ASKED: dict[str, Any] = {"texts": SENTENCES[:2], "answers": ["Hund", "Katze"], "prefix": "der kleine"}


def rows(model: mh.Model, texts: list[str], site: str) -> Any:
    return np.mean([model.observe(text, sites=site)[site].astype(np.float64).mean(0) for text in texts], axis=0)


def test_a_direction_is_a_difference_of_means(demo: mh.Model, tmp_path: Path) -> None:
    made = mh.heads.direction(demo, TOWARD, AWAY, site="encoder.1.output")
    np.testing.assert_allclose(made.numbers, rows(demo, TOWARD, made.site) - rows(demo, AWAY, made.site), atol=1e-5)
    assert made.site == "encoder.1.output" and made.head is None and len(made.weights) == 64
    assert made.length == pytest.approx(np.linalg.norm(made.numbers), rel=1e-6)
    assert made.row_length is not None and made.row_length > 0
    assert repr(made).startswith("<direction at encoder.1.output: mean of the mean rows of 2 texts less that of the mean rows of 3")
    made.save(tmp_path / "a.safetensors")
    read = mh.heads.Direction.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(read.numbers, made.numbers)
    assert (read.site, read.head, read.made, read.weights, read.row_length) == (
        made.site, made.head, made.made, made.weights, made.row_length,
    )  # fmt: skip


def test_of_a_head_and_of_files(demo: mh.Model, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("\n\n".join(TOWARD) + "\n")
    site = "decoder.1.cross_attention.heads"
    of_file = mh.heads.direction(demo, tmp_path / "texts", site=site, head=2, rows="last")
    of_list = mh.heads.direction(demo, TOWARD, site=site, head=2, rows="last")
    np.testing.assert_array_equal(of_file.numbers, of_list.numbers)
    assert of_file.head == 2 and of_file.numbers.shape == (24,)
    contribution = mh.heads.direction(demo, TOWARD, site="encoder.0.self_attention.contributions.3")
    assert contribution.site == "encoder.0.self_attention.output"
    with demo.edit(gate={"encoder.0.self_attention.3": 0.5}):
        halved = mh.heads.direction(demo, TOWARD, site="encoder.0.self_attention.contributions.3", at="encoder.1.output")
    assert halved.length == pytest.approx(0.5 * contribution.length, rel=1e-5) and halved.site == "encoder.1.output"
    with demo.edit(mute="encoder.0.self_attention.3"), pytest.raises(mh.UsageError, match="the direction is 0"):
        mh.heads.direction(demo, TOWARD, site="encoder.0.self_attention.contributions.3")


def test_an_edit_adds_it(demo: mh.Model) -> None:
    made = mh.heads.direction(demo, TOWARD, AWAY, site=SITE)
    plain = demo.translate(SENTENCES)
    with demo.edit(add={made: 40}):
        steered = demo.translate(SENTENCES)
    with demo.edit(add={made.site: mh.At(made.numbers, strength=40)}):
        assert demo.translate(SENTENCES) == steered
    with demo.edit(add={made: 0}):
        assert demo.translate(SENTENCES) == plain
    assert steered != plain and demo.translate(SENTENCES) == plain


def test_steer_is_the_tool(demo: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "toward").write_text("\n".join(TOWARD))
    (tmp_path / "away").write_text("\n".join(AWAY))
    made = mh.heads.direction(demo, tmp_path / "toward", tmp_path / "away", site=SITE)
    table = mh.heads.steer(demo, made, **ASKED, other=tmp_path / "away", strengths=[-2, 0, 0.1])
    texts = [part for text in ASKED["texts"] for part in ("--text", text)]
    printed = tool("heads", "steer", "demo", "--toward", str(tmp_path / "toward"), "--away", str(tmp_path / "away"), "--site", SITE,
                   *texts, "--answer", "Hund", "--answer", "Katze", "--prefix", "der kleine", "--other", str(tmp_path / "away"),
                   "--strength", "-2", "--strength", "0", "--strength", "0.1", "--json")  # fmt: skip
    assert {**json.loads(printed), "options": None} == {**table.report, "options": None}
    assert table.columns == ["strength", "log_probability.Hund", "log_probability.Katze", "loss", "perplexity"]
    assert table["strength"].tolist() == [-2, 0, 0.1]
    np.testing.assert_allclose(np.exp(table["loss"]), table["perplexity"])
    with demo.edit(add={made: -2}):
        edited = mh.heads.steer(demo, made, **ASKED, strengths=[0])
    assert edited[0]["log_probability.Hund"] == pytest.approx(table[0]["log_probability.Hund"], abs=1e-5)
    assert edited.columns == ["strength", "log_probability.Hund", "log_probability.Katze"]
    again = mh.heads.steer(demo, made, **ASKED, strengths=[-2, 0, 0.1], other=tmp_path / "away", options=table.report["options"])
    assert again.report == table.report
    damage = mh.heads.steer(demo, made, other=SENTENCES[:1], other_target=demo.translate(SENTENCES[:1]))
    assert damage["strength"].tolist() == [-4, -2, -1, 0, 1, 2, 4] and damage.columns == ["strength", "loss", "perplexity"]


def test_of_another_model(demo: mh.Model, tmp_path: Path) -> None:
    made = mh.heads.direction(demo, TOWARD, site=SITE)
    model = mh.load(golden("generate/gpt2"))
    for call in (lambda: model.edit(add={made: 1}), lambda: mh.heads.steer(model, made, texts="a", answers="b")):
        with pytest.raises(mh.UsageError, match=f"has 96 numbers, and '{SITE}' of this model 21; make one with this model"):
            call()
    demo.save(tmp_path / "copy", dtype="bfloat16")
    copy = mh.load(tmp_path / "copy")
    with pytest.raises(mh.UsageError, match="was made with other weights"):
        copy.edit(add={made: 1})
    with copy.edit(add={made.site: mh.At(made.numbers)}):  # whoever knows better
        copy.translate(SENTENCES)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda demo, made: mh.heads.direction(demo, [], site=SITE), "`toward`: there are no texts"),
        (lambda demo, made: mh.heads.direction(demo, None, site=SITE), "give texts"),
        (lambda demo, made: mh.heads.direction(demo, "a", site="decoder.7.output"), "no site 'decoder.7.output'"),
        (lambda demo, made: mh.heads.direction(demo, "a", site=SITE, head=1), "`head`: there is no head 1"),
        (lambda demo, made: mh.heads.direction(demo, "a", site=SITE, rows="first"), "rows: expected one of"),
        (lambda demo, made: mh.heads.steer(demo, made), "nothing is measured"),
        (lambda demo, made: mh.heads.steer(demo, made, texts="a"), "`answers`: there are none"),
        (lambda demo, made: mh.heads.steer(demo, made, **ASKED, strengths=[]), "`strengths`: there are none"),
        (lambda demo, made: mh.heads.steer(demo, made, **ASKED, strengths=[1, float("nan")]), "`strengths`: expected a number"),
        (lambda demo, made: mh.heads.steer(demo, made, **ASKED, strengths=["1"]), "`strengths`: expected a list of numbers"),
        (lambda demo, made: mh.heads.steer(demo, np.ones(96), **ASKED), "`direction`: expected a Direction, got ndarray"),
        (lambda demo, made: demo.edit(add={made: float("inf")}), "the strength is inf"),
        (lambda demo, made: demo.edit(add={made: mh.At(np.ones(96))}), "`strength`: expected a number, got At"),
        (lambda demo, made: mh.heads.Direction.load(7), "`path`: expected "),
        (lambda demo, made: mh.heads.Direction.load(golden("generate/gpt2") / "config.json"), "config.json"),
        (lambda demo, made: mh.heads.Direction.load(golden("generate/gpt2") / "model.safetensors"), "is no direction"),
    ],
)  # fmt: skip
def test_refuses_in_one_line(demo: mh.Model, call: Callable[[mh.Model, Any], Any], words: str) -> None:
    made = mh.heads.direction(demo, TOWARD, site=SITE)
    with pytest.raises(mh.Error, match=words) as raised:
        call(demo, made)
    assert "\n" not in str(raised.value)
