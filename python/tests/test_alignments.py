"""Alignments of translations: what the tool writes behind |||, and heads that are chosen by the texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import SENTENCES, golden

import multihead as mh


def _by_tool(tool: Callable[..., str], texts: list[str], *flags: str) -> list[tuple[str, list[tuple[int, int]]]]:
    lines = [line.partition(" ||| ") for line in tool("translate", "demo", *flags, texts=texts).splitlines()]
    return [(text, [(int(s), int(t)) for s, t in (link.split("-") for link in links.split())]) for text, _, links in lines]


@pytest.mark.parametrize("by", [True, "auto"])
def test_alignments_are_those_of_the_tool(demo: mh.Model, tool: Callable[..., str], by: bool) -> None:
    texts = [*SENTENCES, "", "the old dog sees the woman ."]
    found = demo.translate(texts, alignment=by)
    assert [(one.text, one.alignment) for one in found] == _by_tool(tool, texts, "--alignment", *(["auto"] if by == "auto" else []))
    assert [one.text for one in found] == demo.translate(texts)
    assert found[1].source == demo.tokenize(texts[1]).tokens and found[1].source[-1] == "</s>"
    assert found[1].target == demo.tokenize(found[1].text, target=True).tokens[:-1]
    assert ("dogs", "Hunde") in {(found[1].source[s], found[1].target[t]) for s, t in found[1].alignment}
    assert found[5] == mh.AlignedTranslation("", [], [], [])


def test_one_text_gives_one_alignment(demo: mh.Model) -> None:
    several, one = demo.translate(SENTENCES[:1], alignment=True), demo.translate(SENTENCES[0], alignment=True)
    assert isinstance(one, mh.AlignedTranslation) and several == [one]
    assert len(one.alignment) >= 5 and all(s < len(one.source) and t < len(one.target) for s, t in one.alignment)
    with pytest.raises(mh.UsageError, match="`alignment`: expected True, False or \"auto\", got 'best'"):
        demo.translate(SENTENCES, alignment="best")  # type: ignore[call-overload]


def test_the_folder_may_name_the_heads(demo: mh.Model, tmp_path: Path) -> None:
    model = tmp_path / "model"
    demo.save(model)
    file = model / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"alignment_heads": [[0, 3]]}))
    named = mh.load(model)
    assert named.translate(SENTENCES, alignment="auto") != demo.translate(SENTENCES, alignment="auto")
    assert named.translate(SENTENCES) == demo.translate(SENTENCES)
    assert named.translate(SENTENCES, alignment=True) == demo.translate(SENTENCES, alignment=True)


def test_edits_change_what_heads_are_chosen_by(demo: mh.Model) -> None:
    with demo.edit(mute="decoder.1.cross_attention.*"):
        muted = demo.translate(SENTENCES, alignment="auto")
    assert [one.text for one in muted] != demo.translate(SENTENCES)


def test_of_no_words_a_remark_says_what_aligns(demo: mh.Model) -> None:
    with pytest.warns(mh.Remark, match="the mean of the last layer's heads aligns"):
        assert demo.translate([""], alignment="auto") == [mh.AlignedTranslation("", [], [], [])]


def test_each_text_has_its_language() -> None:
    nllb = mh.load(golden("languages/nllb"))
    texts, targets = ["two dogs run in the park", "the small dog sees a cat."], ["de", "ro"]
    found = nllb.translate(texts, source_language="en", target_language=targets, max_length=17, alignment="auto")
    assert [one.text for one in found] == nllb.translate(texts, source_language="en", target_language=targets, max_length=17)
    assert all(s < len(one.source) and t < len(one.target) for one in found for s, t in one.alignment)
