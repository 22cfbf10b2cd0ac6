"""Training from Python: callbacks, Ctrl-C, going on."""

from __future__ import annotations

import json
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from conftest import SENTENCES

import multihead as mh

SMALL = {"preset": "tiny", "d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "vocabulary_size": 120,
         "batch_tokens": 200, "warmup": 5, "log_every": 5, "save_every": 10, "threads": 2}  # fmt: skip


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Any]:
    demo = mh.demo()
    source, target = tmp_path / "train.en", tmp_path / "train.de"
    source.write_text("".join(text + "\n" for text in SENTENCES * 6), encoding="utf-8")
    target.write_text("".join(text + "\n" for text in demo.translate(SENTENCES) * 6), encoding="utf-8")
    known = mh.training_settings()
    small = {name: value for name, value in SMALL.items() if name in known}
    return {"train_source": source, "train_target": target, "valid_source": source, "valid_target": target, **small}


def test_trains_and_tells(texts: dict[str, Any], tmp_path: Path) -> None:
    updates: list[dict[str, Any]] = []
    validations: list[dict[str, Any]] = []
    done = mh.train(tmp_path / "model", **texts, updates=20, validate_every=10, on_update=updates.append,
                    on_validation=validations.append)  # fmt: skip
    assert [one["update"] for one in updates] == list(range(1, 21))
    assert [one["update"] for one in validations] == [10, 20]
    assert done.updates == 20 and not done.was_finished and done.final is not None
    assert updates[-1]["loss"] < updates[0]["loss"]
    assert isinstance(mh.load(done.model).translate(SENTENCES[0]), str)
    assert mh.train(tmp_path / "model", **texts, updates=20, validate_every=10).was_finished


def test_ctrl_c_saves_and_the_same_call_goes_on(texts: dict[str, Any], tmp_path: Path) -> None:
    def interrupt(found: dict[str, Any]) -> None:
        if found["update"] == 7:
            os.kill(os.getpid(), signal.SIGINT)

    whole = mh.train(tmp_path / "whole", **texts, updates=15, validate_every=50)
    with pytest.raises(KeyboardInterrupt):
        mh.train(tmp_path / "cut", **texts, updates=15, validate_every=50, on_update=interrupt)
    seen: list[int] = []
    done = mh.train(tmp_path / "cut", **texts, updates=15, validate_every=50, on_update=lambda found: seen.append(found["update"]))
    assert seen[0] == 8 and done.updates == 15
    a, b = (Path(one.model) / "model.safetensors" for one in (whole, done))
    assert a.read_bytes() == b.read_bytes()


def test_goes_on_from_a_translator(texts: dict[str, Any], tmp_path: Path) -> None:
    shape = {"preset", "d_model", "d_ff", "heads", "encoder_layers", "decoder_layers", "vocabulary_size"}
    rest = {name: value for name, value in texts.items() if name not in shape}
    done = mh.train(tmp_path / "further", **rest, init_from="demo", updates=5)
    assert json.loads((tmp_path / "further/config.json").read_text(encoding="utf-8"))["model_type"] == "marian"
    assert isinstance(mh.load(done.model).translate(SENTENCES[0]), str)
    with pytest.raises(mh.UsageError, match="target_language.*has no codes of languages"):
        mh.train(tmp_path / "none", **rest, init_from="demo", updates=5, target_language="de")


class Bar:
    """In place of tqdm's."""

    made: list[Bar] = []

    def __init__(self, **given: Any) -> None:
        self.n, self.total, self.closed, self.written = 0, given.get("total"), False, 0
        Bar.made.append(self)

    def update(self, more: int) -> None:
        assert not self.closed
        self.n += more

    def set_postfix(self, **_: Any) -> None:
        pass

    def write(self, _: str) -> None:
        self.written += 1

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    auto: Any = types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    Bar.made = []
    return Bar.made


def test_a_bar_beside_callbacks(texts: dict[str, Any], tmp_path: Path, bars: list[Bar]) -> None:
    seen: list[int] = []
    mh.train(
        tmp_path / "model", **texts, updates=12, validate_every=5, progress=True,
        on_update=lambda found: seen.append(found["update"]), on_validation=lambda found: seen.append(-found["update"]),
    )  # fmt: skip
    assert [one for one in seen if one > 0] == list(range(1, 13)) and -5 in seen and -10 in seen
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(12, 12, True)]
    assert bars[0].written == sum(one < 0 for one in seen)


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_bars_end_whatever_happens(texts: dict[str, Any], tmp_path: Path, bars: list[Bar]) -> None:
    def fail(_: dict[str, Any]) -> None:
        raise ZeroDivisionError

    demo = mh.demo()
    with pytest.raises(ZeroDivisionError):
        mh.train(tmp_path / "model", **texts, updates=5, progress=True, on_update=fail)
    mh.heads.stats(demo, SENTENCES, progress=True)  # nobody knows how many there are
    demo.translate(SENTENCES, progress=True)
    with pytest.raises(mh.UsageError):
        demo.translate(SENTENCES, beam_size=0, progress=True)
    assert [(bar.n, bar.closed) for bar in bars] == [(1, True), (5, True), (5, True), (0, True)]


def test_refuses_settings_that_it_does_not_know(texts: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(mh.FormatError, match="learning_rat"):
        mh.train(tmp_path / "model", **texts, learning_rat=1)
    with pytest.raises(mh.UsageError, match="`updates`"):
        mh.train(tmp_path / "model", **texts)
    with pytest.raises(FileNotFoundError):
        mh.train(tmp_path / "model", **{**texts, "train_source": tmp_path / "nothing"}, updates=5)
    assert not (tmp_path / "model" / "model.safetensors").exists()


def test_an_exception_in_a_callback_ends_it(texts: dict[str, Any], tmp_path: Path) -> None:
    def fail(_: dict[str, Any]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mh.train(tmp_path / "model", **texts, updates=5, on_update=fail)


def test_studies(tmp_path: Path) -> None:
    assert "one-product" in mh.studies()
    found = mh.study("two-matrices-or-one", claims="002.1", runs=tmp_path / "runs")
    assert [(claim.id, claim.verdict) for claim in found.claims] == [("002.1", "PASS")]
    assert found.claims[0].clauses[0].measured.startswith("largest difference")
    assert "002.1 PASS" in str(found) and "<td>002.1</td>" in found._repr_html_()
    with pytest.raises(mh.UsageError, match="one-product"):
        mh.study("nonsense")
    with pytest.raises(mh.UsageError, match="002.1"):
        mh.study("two-matrices-or-one", claims="009.9")
