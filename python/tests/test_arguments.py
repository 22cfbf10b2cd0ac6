"""Whatever a function is given: what its signature says is taken, and anything else is refused in one line that names it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh

NOTHING = object()
ARRAY = np.ones((1, 3, 2, 4), dtype=np.float32)


def functions() -> Iterator[tuple[str, Callable[[Any], Callable[..., Any]]]]:
    """(name, what gives it for a model) of every public function and method."""
    for module, names in ((mh, mh.__all__), (mh.heads, mh.heads.__all__)):
        for name in names:
            if inspect.isfunction(function := getattr(module, name)):
                yield f"{module.__name__}.{name}", lambda _, function=function: function  # type: ignore[misc]
    made: dict[type, Callable[[mh.Model], Any]] = {
        mh.Model: lambda model: model,
        mh.Observation: lambda model: model.observe("two dogs run ."),
        mh.Table: lambda _: mh.Table([{"a": 1}]),
        mh.Page: lambda _: mh.Page("", "", 1),
        mh.heads.Direction: lambda _: TAKEN["direction"],
    }
    for kind, make in made.items():
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and function.__module__.startswith("multihead"):
                yield f"{kind.__name__}.{name}", lambda model, make=make, name=name: getattr(make(model), name)  # type: ignore[misc]


FUNCTIONS = dict(functions())
# What is taken of parameters without a default.
TAKEN: dict[str, Any] = {
    **dict.fromkeys(["q", "k", "v", "out", "lse", "d_out"], ARRAY), "text": "a", "texts": "a", "prompts": "a", "prompt": "a",
    "ids": [1], "hypotheses": ["a"], "references": ["a"], "at": "*", "pattern": "*", "heads": "*", "folder": "x", "source": "x",
    "name": "x", "attention": "x", "path": "x", "by": "a", "threads": 1, "clean": "a", "corrupt": "b", "answer": "a", "wrong": "b",
    "train_source": "x", "train_target": "x", "toward": "a", "site": "encoder.0.output", "pairs": [("a", "b", "c", "d")],
    "first": ARRAY[0, 0], "second": ARRAY[0, 0], "direction": mh.heads.direction(mh.demo(), "a", site="encoder.0.output"),
}  # fmt: skip


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD and one.name != "self"
    ]


def taken(function: Callable[..., Any], demo: mh.Model) -> dict[str, Any]:
    given = {one.name: TAKEN.get(one.name, demo) for one in parameters(function) if one.default is one.empty}
    return {**given, "model": "x"} if function is mh.train else given


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_of_its_type(demo: mh.Model, name: str) -> None:
    function = FUNCTIONS[name](demo)
    for one in parameters(function):
        hint = one.annotation if isinstance(one.annotation, str) else inspect.formatannotation(one.annotation)
        wrong: list[tuple[Any, type[Exception]]] = []
        if "Any" not in hint and hint not in ("Mask", "Replacement"):
            wrong.append((NOTHING, mh.ArgumentTypeError))
        if hint in ("str", "Texts", "File", "HeadName", "HeadNames", "TextOrIds", "TextsOrIds") or hint.startswith(
            ("str |", "Iterable[str]")
        ):
            wrong.append(("\ud83d" if not hint.startswith("Iterable") else ["a", "b\ud83d"], mh.FormatError))
        if hint.startswith(("str | Iterable", "Iterable[str", "HeadNames", "Texts")):  # and TextsOrIds
            wrong += [(["a", 7], mh.ArgumentTypeError), ([b"a"], mh.ArgumentTypeError)]
        if hint.startswith(("TextOrIds", "TextsOrIds")):
            wrong += [
                ([1, "a"], mh.ArgumentTypeError),
                (np.ones(2), mh.ArgumentTypeError),
                ([[]] if "Texts" in hint else [], mh.UsageError),
            ]
        if hint.startswith("int"):
            wrong += [("4", mh.ArgumentTypeError), (1.5, mh.ArgumentTypeError), (2**70, mh.UsageError)]
        if hint.startswith("float"):
            wrong += [("4", mh.ArgumentTypeError), (10**400, mh.UsageError)]
        for value, kind in wrong:
            with pytest.raises(kind, match=f"`{one.name}`: expected ") as raised:
                function(**{**taken(function, demo), one.name: value})
            assert isinstance(raised.value, mh.Error) and "\n" not in str(raised.value), name


def test_there_are_many() -> None:
    """The test above would say nothing of functions that it does not find."""
    assert {"multihead.set_threads", "Model.tokenize", "Model.gradient", "multihead.heads.stats", "Table.sort"} < set(FUNCTIONS)
    assert len(FUNCTIONS) > 40


def test_numbers_of_numpy_are_numbers(demo: mh.Model) -> None:
    expected = demo.translate(SENTENCES, beam_size=2, length_penalty=0.5)
    assert demo.translate(SENTENCES, beam_size=np.int64(2), length_penalty=np.float32(0.5)) == expected  # type: ignore[call-overload]
    table = mh.heads.importance(demo, SENTENCES, normalised=np.bool_(True), seed=np.uint8(3))  # type: ignore[arg-type]
    assert table.report == mh.heads.importance(demo, SENTENCES, normalised=True, seed=3).report
    ids = demo.tokenize("two dogs run .").ids
    assert demo.decode(np.array(ids)) == "two dogs run ."
    assert demo.translate(iter(SENTENCES), beam_size=2, length_penalty=0.5) == expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda demo: demo.translate("a", beam_size=2**40), "beam_size: expected an integer from 1 to 255, got 1099511627776"),
        (lambda demo: demo.translate("a", beam_sise=2), "translate has no argument `beam_sise`; did you mean `beam_size`?"),
        (lambda demo: demo.translate("a", length_penalty_form="gmnt"), 'length_penalty_form: expected one of "divide", "gnmt"'),
        (lambda demo: demo.translate("a", length_penalty=float("nan")), "`length_penalty`: expected a finite number, got nan"),
        (lambda demo: demo.translations("a", n_best=0), "; n_best: expected an integer from 1 to 255, got 0"),
        (lambda demo: demo.score("a", "b", context=-1), "score: context: expected an integer from 0 to "),
        (lambda demo: mh.bleu(["a"], ["b"], smoothing_value=0), "bleu: smoothing_value: expected a number from "),
        (lambda demo: mh.heads.importance(demo, ["a"], seed=-1), "importance: seed: expected an integer from 0 to .*, got -1"),
        (lambda demo: demo.decode([2**33]), "`ids`: expected whole numbers of 32 bits"),
        (lambda demo: demo.decode([10**7]), "token id 10000000: expected 0 to "),
        (lambda demo: demo.decode([5, -1]), "token id -1: expected 0 to "),
        (lambda demo: demo.decode(["a"]), "`ids`: expected a list of whole numbers, got str in it"),
        (lambda demo: demo.decode(np.ones(2)), "`ids`: expected a whole number, got float"),
        (lambda demo: demo.tokenize(["a"]), "`text`: expected text, got list"),
        (lambda demo: demo.gradient(["a", 1], at="*"), "`texts`: expected text, a list of .* or a list of either, got int in it"),
        (lambda demo: mh.set_threads("4"), "`threads`: expected a whole number, got str"),
        (lambda demo: demo.embed("a \ud800"), "`texts`: .*, got half a character, the surrogate U.D800"),
        (lambda demo: demo.translate(x for x in ("a", 2)), "`texts`: expected text, got int"),
        (lambda demo: list(demo.observe(iter(["a", None]))), "`texts`: expected text or a list of token ids, got None"),
        (lambda demo: mh.heads.stats("minilm", ["a"]), "`model`: expected a Model, got str; multihead.load.'minilm'. gives one"),
        (lambda demo: mh.heads.stats(mh.Model, ["a"]), "`model`: expected a Model, got the type Model"),
        (lambda demo: mh.attention(ARRAY, ARRAY, ARRAY[0].tolist()), "`v`: expected an array such as numpy's or torch's, got list"),
        (lambda demo: mh.attention(ARRAY, ARRAY, ARRAY, scale="1"), "`scale`: expected a number or None, got str"),
        (lambda demo: mh.attention(ARRAY[0], ARRAY[0], ARRAY[0], offsets="03"), "`offsets`: expected "),
        (lambda demo: mh.attention(ARRAY[0], ARRAY[0], ARRAY[0], offsets=np.array([0, 1.5])), "`offsets`: expected a whole number"),
        (lambda demo: mh.attention(ARRAY[0], ARRAY[0], ARRAY[0], offsets=[0, 2**33]), "`offsets`: .* of 32 bits, got 8589934592"),
        (lambda demo: mh.bleu(["a"], [["a"], "b"]), "`references`: expected "),
        (lambda demo: mh.view(demo, 7), "`text`: expected text or a list of texts, got int"),
        (lambda demo: mh.view(demo, "a", circuit=7), "`circuit`: expected .*, got int"),
        (lambda demo: mh.view(demo, "a", aligners=7), "`aligners`: expected .*, got int"),
        (lambda demo: demo.edit(gate={"*": "much"}), "`gate`: expected a dictionary of a number by .*, got str in it"),
        (lambda demo: demo.edit(replace={"encoder.states": mh.At(np.ones(96), position="2")}), "`position`: expected a whole"),
        (lambda demo: demo.edit(replace={"encoder.states": 1}), "`replace`: expected an array such as numpy's or torch's, got int"),
        (lambda demo: demo.edit(add={"encoder.states": mh.At(np.ones(96), strength="2")}), "`strength`: expected a number"),
        (lambda demo: demo.edit(add={"encoder.states": "uniform"}), "`add`: expected an array such as numpy's or torch's, got str"),
        (lambda demo: mh.train("m", "a", "b", updates=object()), "`updates`: expected text, a number, True or False, got object"),
        (lambda demo: mh.train("m", "a", "b", learning_rate=float("nan")), "`learning_rate`: expected a finite number, got nan"),
    ],
)  # fmt: skip
def test_refuses_in_one_line(demo: mh.Model, call: Callable[[mh.Model], Any], words: str) -> None:
    with pytest.raises(mh.Error, match=words) as raised:
        call(demo)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("form", [">f4", ">f8", "S3", "O", "datetime64[s]"])
def test_arrays_of_other_numbers(form: str) -> None:
    array = ARRAY.astype("int64").astype(form) if form.startswith("datetime") else ARRAY.astype(form)
    with pytest.raises(mh.UsageError, match=r"`k`: expected float32 .*, got .*astype\('float32'\)") as raised:
        mh.attention(ARRAY, array, ARRAY)
    assert "\n" not in str(raised.value) and "numpy's" not in str(raised.value)


def test_messages_have_a_role() -> None:
    model = mh.load(golden("generate/gpt2"))
    with pytest.raises(mh.UsageError, match="`messages`: a message has no 'role'"):
        model.generate("a", chat=True, messages=[{"rol": "user", "content": "b"}])
    with pytest.raises(mh.UsageError, match="generate: seed: expected an integer from 0 to .*, got -1"):
        list(model.stream("a", seed=-1))


@pytest.mark.parametrize("missing", ["tqdm", "pandas"])
def test_says_which_package_is_missing(demo: mh.Model, missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setitem(sys.modules, f"{missing}.auto", None)
    calls: dict[str, list[Callable[[], Any]]] = {
        "tqdm": [
            lambda: demo.translate("a", progress=True),
            lambda: mh.heads.stats(demo, SENTENCES, progress=True),
            lambda: mh.train(tmp_path / "model", tmp_path / "a", tmp_path / "b", progress=True),
        ],
        "pandas": [lambda: mh.Table([{"a": 1}]).to_pandas()],
    }
    for call in calls[missing]:
        with pytest.raises(mh.MissingPackageError, match=f"needs {missing}: pip install {missing}") as raised:
            call()
        assert isinstance(raised.value, ImportError)
