"""Models: what they say is what the tool says, and what is seen and changed inside of them."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden

import multihead as mh


def test_says_what_it_is(demo: mh.Model) -> None:
    assert (demo.kind, demo.model_type, demo.parameter_count, demo.path) == ("translator", "marian", 630688, "demo")
    assert len(demo.heads) == 24
    head = demo.heads[5]
    assert head.name == "encoder.1.self_attention.1" and (head.layer, head.number, head.d_key) == (1, 1, 24)
    assert demo.heads_named("encoder.*.0") == ["encoder.0.self_attention.0", "encoder.1.self_attention.0"]
    assert demo.sites["encoder.0.self_attention.heads"] == 96
    assert "24 heads" in repr(demo)


def test_has_the_precision_that_it_was_loaded_with(demo: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    assert demo.precision == "same" and "precision" not in repr(demo)
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(SENTENCES) + "\n")
    for precision in ("near", "fast"):
        model = mh.demo(precision=precision)
        assert model.precision == precision and f"24 heads, precision {precision}; can translate" in repr(model)
        assert model.prune("encoder.0.self_attention.1").precision == precision
        expected = tool("translate", "--model", "demo", "--precision", precision, texts=SENTENCES).splitlines()
        assert model.translate(SENTENCES) == expected
        report = mh.heads.stats(model, file).report
        assert report["precision"] == precision
        assert report == json.loads(tool("heads", "stats", "demo", "-i", str(file), "--precision", precision, "--json"))
        with pytest.raises(mh.UsageError, match=f'was loaded with "{precision}"; load it again'):
            mh.check(model)
    sentences = golden("sentences/dense")
    same, fast = (mh.load(sentences, precision=one).embed(SENTENCES) for one in ("same", "fast"))
    cosines = (same * fast).sum(1) / np.linalg.norm(same, axis=1) / np.linalg.norm(fast, axis=1)
    assert cosines.min() > 0.99
    with pytest.raises(mh.UsageError, match=r"`precision`: expected same\|near\|fast, got slow"):
        mh.load("demo", precision="slow")
    named = mh.demo(precision="near:float32")
    assert named.precision == "near:float32" and "precision near:float32;" in repr(named)
    assert named.translate(SENTENCES) == demo.translate(SENTENCES)
    report = mh.heads.stats(named, file).report
    assert report["precision"] == "near:float32" and report["kernels"]["numbers"] == "float32"
    with pytest.raises(
        mh.UsageError, match=r"`precision`: expected fast\|fast:int8-.* \(the kernels that this machine has\), got fast:x"
    ):
        mh.load("demo", precision="fast:x")
    with pytest.raises(mh.UsageError, match="near:float32 multiplies with none of the model's weights; take near"):
        mh.load(golden("gguf/tied_quantised.gguf"), precision="near:float32")
    with pytest.raises(mh.ArgumentTypeError, match="`precision`: expected 'same' or 'near' or 'fast' or text, got int"):
        mh.load("demo", precision=8)  # type: ignore[arg-type]
    assert "precision" not in mh.heads.circuits(demo).report


def test_says_that_it_reads_no_text_without_a_tokenizer() -> None:
    model = mh.load(golden("bert/masked"))
    assert model.can == ()
    assert repr(model).endswith("can read no text, since its files have no tokenizer>")
    for ask in (lambda: model.fill("a [MASK]"), lambda: model.tokenize("a"), lambda: model.observe("a")):
        with pytest.raises(mh.FileError, match="has no tokenizer.json"):
            ask()
    with pytest.raises(mh.UsageError, match="cannot generate: it is an encoder; it can read no text"):
        list(model.stream("a"))


def test_translates_as_the_tool_does(demo: mh.Model, tool: Callable[..., str]) -> None:
    expected = tool("translate", "--model", "demo", texts=SENTENCES).splitlines()
    assert demo.translate(SENTENCES) == expected
    assert demo.translate(SENTENCES[0]) == expected[0]
    assert (
        demo.translate(SENTENCES, cache="bfloat16")
        == tool("translate", "--model", "demo", "--cache", "bfloat16", texts=SENTENCES).splitlines()
    )
    assert demo.translate([]) == []
    gnmt = tool(
        "translate", "--model", "demo", "--length-penalty-form", "gnmt", "--length-penalty", "2", texts=SENTENCES
    ).splitlines()
    assert demo.translate(SENTENCES, length_penalty_form="gnmt", length_penalty=2) == gnmt
    best = demo.translations(SENTENCES[0], n_best=3)
    assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)
    assert demo.score(SENTENCES[0], best[0].text) == pytest.approx(best[0].log_probability, abs=1e-3)


def test_a_translator_of_many_languages_is_told_them(tool: Callable[..., str]) -> None:
    folder = golden("languages/nllb")
    model, texts = mh.load(folder), ["two dogs run in the park", "the small dog sees a cat."]
    short = {"max_length": 24}
    tool_says = [
        tool("translate", "--model", str(folder), "--from", "en", "--to", target, "--max-length", "24", texts=texts).splitlines()
        for target in ("deu_Latn", "ron_Latn")
    ]
    german = model.translate(texts, source_language="en", target_language="de", **short)
    assert german == tool_says[0]
    each = model.translate(texts, source_language="en", target_language=["de", "ro"], **short)
    assert each == [tool_says[0][0], tool_says[1][1]]
    assert model.translate(texts[1], source_language="en", target_language=("ro",), **short) == tool_says[1][1]
    with pytest.raises(mh.UsageError, match="`target_language`: expected one for each of 2 texts, got 1"):
        model.translate(texts, source_language="en", target_language=["de"])
    with pytest.raises(mh.FormatError, match="`target_language` 2: 'xx' is no language of this model"):
        model.translate(texts, source_language="en", target_language=["de", "xx"])
    with pytest.raises(mh.UsageError, match="nothing says its target language: give `target_language`"):
        model.translate(texts, source_language="en")

    languages = {"source_language": "en", "target_language": "de"}
    greedy = model.translate(texts[0], beam_size=1, **languages, **short)
    seen = model.observe(texts[0], target=greedy, **languages)
    assert seen.tokens[0] == "eng_Latn"
    assert seen.target_tokens[1] == "deu_Latn"
    assert next(model.observe(texts, source_language="de", target_language="ro")).tokens[0] == "deu_Latn"
    each_token = model.score(texts[0], greedy, per_token=True, **languages)
    slopes = model.gradient(texts[0], at="*.gates", target=greedy, **languages)
    assert slopes.value == pytest.approx(each_token.sum(), abs=1e-4)
    stats = mh.heads.stats(model, texts, **languages)
    assert stats.report["options"]["target_language"] == "de"
    assert mh.heads.stats(model, texts, options=stats.report["options"]).rows == stats.rows
    with pytest.raises(mh.UsageError, match="give `source_language`"):
        mh.load(golden("languages/m2m100")).observe("a dog")


def test_scores_as_the_tool_does(demo: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    targets = demo.translate(SENTENCES)
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("\n".join(SENTENCES) + "\n")
    target.write_text("\n".join(targets) + "\n")
    printed = tool("score", "--model", "demo", "--source", str(source), "--target", str(target))
    scores = demo.score(SENTENCES, targets)
    np.testing.assert_allclose(scores, [float(line) for line in printed.split()], atol=1e-4)
    each = demo.score(SENTENCES, targets, per_token=True)
    np.testing.assert_allclose([one.sum() for one in each], scores, rtol=1e-5)


def test_embeds_as_the_tool_does(minilm: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "vectors.npy"
    tool("embed", "--model", minilm.path, "--format", "npy", "-o", str(file), texts=SENTENCES)
    vectors = minilm.embed(SENTENCES)
    assert (vectors.shape, vectors.dtype) == ((5, 384), np.float32)
    np.testing.assert_array_equal(vectors, np.load(file))
    np.testing.assert_allclose(minilm.embed(SENTENCES[0]), vectors[0], atol=1e-6)


def test_compares_vectors_by_the_function_of_the_folder(minilm: mh.Model) -> None:
    vectors = minilm.embed(SENTENCES)
    assert minilm.similarity_fn_name == "cosine"
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    np.testing.assert_allclose(minilm.similarity(vectors, vectors[1:]), unit @ unit[1:].T, atol=2e-6)
    np.testing.assert_array_equal(minilm.similarity(vectors[0], vectors), minilm.similarity(vectors, vectors)[0])
    assert minilm.similarity(vectors[0], vectors[1]).shape == ()
    with pytest.raises(mh.UsageError, match="`second`: expected vectors"):
        minilm.similarity(vectors, vectors[None])


def test_embeds_behind_prompts(tool: Callable[..., str], tmp_path: Path) -> None:
    gemma = mh.load(golden("sentence_decoders/gemma"))
    file = tmp_path / "vectors.npy"
    tool("embed", gemma.path, "--prompt-name", "query", "--format", "npy", "-o", str(file), texts=SENTENCES)
    query = gemma.embed(SENTENCES, prompt_name="query")
    np.testing.assert_array_equal(query, np.load(file))
    np.testing.assert_array_equal(query, gemma.embed(SENTENCES, prompt="task : search result | query : "))
    bare = gemma.embed(SENTENCES)
    assert abs(query - bare).max() > 1e-3
    np.testing.assert_array_equal(bare, gemma.embed(SENTENCES, prompt=""))
    with pytest.raises(mh.UsageError, match="has no prompt 'passage'; it has 'STS', 'document', 'query'"):
        gemma.embed("a", prompt_name="passage")
    with pytest.raises(mh.UsageError, match="both given"):
        gemma.embed("a", prompt_name="query", prompt="b")
    assert "embed" in gemma.can and "generate" not in gemma.can


def test_generates_as_the_tool_does(smollm2: mh.Model, tool: Callable[..., str]) -> None:
    printed = tool("generate", smollm2.path, "--prompt", "The sky is", "--max-new-tokens", "12", "--seed", "3")
    text = smollm2.generate("The sky is", max_new_tokens=12, seed=3)
    assert text == printed[:-1]
    assert "".join(smollm2.stream("The sky is", max_new_tokens=12, seed=3)) == text
    pieces = smollm2.stream("The sky is", max_new_tokens=4000)
    assert next(pieces) and next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    halves = tool("generate", smollm2.path, "--prompt", "The sky is", "--max-new-tokens", "12", "--greedy", "--cache", "bfloat16")
    assert smollm2.generate("The sky is", max_new_tokens=12, search="greedy", cache="bfloat16") == halves[:-1]
    with pytest.raises(mh.UsageError, match="cache: expected"):
        smollm2.generate("a", cache="half")  # type: ignore[call-overload]
    scores = smollm2.score(["The sky is blue.", "The sky is spoon."])
    assert scores[0] > scores[1]


@pytest.mark.parametrize("name", ["labels/bert_pairs", "labels/llama_pairs"])
def test_classifies_as_the_tool_does(tool: Callable[..., str], name: str) -> None:
    """Texts, pairs, tokens; labels by name; attribution and importance of a label."""
    path = golden(name)
    model = mh.load(path)
    assert model.labels == ("entailment", "neutral", "contradiction") and "classify" in model.can
    texts, pairs = ["two dogs run.", "a"], ["dogs walk", "the cat sees nothing"]
    lines = tool("classify", path, "--json", *(f"--text={text}" for text in texts), *(f"--text-pair={pair}" for pair in pairs))
    for labels, line in zip(model.classify(texts, pair=pairs), lines.splitlines(), strict=True):
        said = json.loads(line)["labels"]
        assert [one.name for one in labels] == [one["label"] for one in said]
        assert [one.score for one in labels] == pytest.approx([one["score"] for one in said])
        assert sum(one.score for one in labels) == pytest.approx(1)
    assert model.classify(texts[0], pair=pairs[0]) == model.classify(texts, pair=pairs)[0]
    with model.edit(mute="*"):
        assert model.classify(texts[0]) != mh.load(path).classify(texts[0])
    words = mh.load(golden("labels/bert_words"))
    found = words.classify("the cat sees")
    assert [token.text for token in found] == ["the", "cat", "sees"] and found[1].characters == (4, 7)
    assert {one.name for one in found[0].labels} == set(words.labels)
    with pytest.raises(mh.UsageError, match="leave the second texts out"):
        words.classify("a", pair="b")
    patched = mh.heads.patch(words, clean="the cat sees", corrupt="two cat sees", answer="B-PER", wrong="O", token=2)
    decision, logits = patched.report["clean"], {one.name: one.logit for one in words.classify("the cat sees")[1].labels}
    assert [decision["answer"], decision["wrong"]] == pytest.approx([logits["B-PER"], logits["O"]], abs=1e-5)
    report = mh.heads.attribution(model, texts[0], label="neutral").report
    assert report["explained"] == "logit" and report["label"] == "neutral"
    logit = {one.name: one.logit for one in model.classify(texts[0])}["neutral"]
    assert report["score"] == pytest.approx(logit)
    of_pair = mh.heads.attribution(model, texts[0], pair=pairs[0], label="neutral", methods="rollout")
    logit = {one.name: one.logit for one in model.classify(texts[0], pair=pairs[0])}["neutral"]
    assert of_pair.report["pair"] == pairs[0] and of_pair.report["score"] == pytest.approx(logit, abs=1e-5)
    assert [row["of_pair"] for row in of_pair][-1] and not of_pair[0]["of_pair"]
    assert mh.heads.importance(model, texts, label="neutral", by="ablation").report["mean_score"] == pytest.approx(
        np.mean([{one.name: one.logit for one in labels}["neutral"] for labels in model.classify(texts)]), abs=1e-5
    )
    with pytest.raises(mh.UsageError, match="no label 'joy'"):
        mh.heads.importance(model, texts, label="joy")


def test_says_what_it_can_do_instead(demo: mh.Model, minilm: mh.Model) -> None:
    for call, words in (
        (lambda: demo.fill("a [MASK] ."), "demo cannot fill: it is a translator; it can translate, score, embed"),
        (lambda: demo.generate("a"), "cannot generate"),
        (lambda: minilm.translate("a"), "it is an encoder that predicts no words; it can embed, tokenize"),
        (lambda: minilm.score("a"), "cannot score"),
        (lambda: demo.score("a"), "`target`"),
    ):
        with pytest.raises(mh.UsageError, match=words):
            call()


def test_observes(demo: mh.Model) -> None:
    seen = demo.observe(SENTENCES[0])
    assert seen.tokens == [*SENTENCES[0].split(), "</s>"]
    assert seen.target_tokens[0] == "<start>" and seen.predicted_tokens[-1] == "</s>"
    assert seen.translation == demo.translate(SENTENCES[0], beam_size=1)
    assert len(seen) == 24
    weights = seen.weights("decoder.0.cross_attention")
    assert weights.shape == (4, len(seen.predicted_tokens), len(seen.tokens))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert seen.query_tokens("decoder.0.cross_attention") == seen.predicted_tokens
    assert seen.key_tokens("decoder.0.cross_attention") == seen.tokens
    with pytest.raises(ValueError, match="read-only"):
        seen["encoder.0.self_attention.weights.0"][0, 0] = 1
    with pytest.raises(KeyError, match="name it, or a pattern"):
        seen["encoder.states"]
    value = demo.observe(SENTENCES[1], sites=["encoder.states"])["encoder.states"]
    del seen
    assert value.shape == (5, 96) and np.isfinite(value).all()  # the array keeps what it looks at
    alone = [demo.observe(text, sites="encoder.states") for text in SENTENCES]
    for one, other in zip(alone, demo.observe(iter(SENTENCES), sites="encoder.states"), strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one["encoder.states"], other["encoder.states"], atol=1e-5)


def test_gradients_are_slopes(demo: mh.Model, minilm: mh.Model) -> None:
    text, target = SENTENCES[0], "der kleine Hund sieht eine Katze ."
    slopes = demo.gradient(text, at="*.gates", target=target)
    assert slopes.value == pytest.approx(demo.score(text, target), rel=1e-3, abs=1e-4)
    assert set(slopes) == {site for site in demo.sites if site.endswith(".gates")}
    step = 1e-2
    for head in (0, 3):
        ends = []
        for sign in (1, -1):
            with demo.edit(gate={f"decoder.1.cross_attention.{head}": 1 + sign * step}):
                ends.append(demo.score(text, target))
        assert slopes["decoder.1.cross_attention.gates"][0, head] == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=0.05, abs=1e-3
        )
    one = demo.gradient(text, at="encoder.embeddings", target=target, position=2)
    assert one.value == pytest.approx(demo.score(text, target, per_token=True)[2], rel=1e-3, abs=1e-4)
    alike = minilm.gradient(SENTENCES[1], at="*.gates", of="similarity", second="a pair of dogs is running .")
    a, b = minilm.embed([SENTENCES[1], "a pair of dogs is running ."])
    assert alike.value == pytest.approx(float(a @ b), rel=1e-4)
    with pytest.raises(mh.UsageError, match="`position`: expected 0 to 7"):
        demo.gradient(text, at="*.gates", target=target, position=8)


def logit_of(model: mh.Model, text: str, pair: str | None, label: str, token: int | None) -> float:
    """The logit that `classify` says; of a classifier of tokens that of the token behind the first special one."""
    found: Any = model.classify(text, pair=pair) if token is None else model.classify(text)[token - 1].labels
    return float(next(one.logit for one in found if one.name == label))


def test_gradients_of_labels_are_slopes() -> None:
    """Of a text, a pair and a token: by moving a gate, and the value is the logit."""
    step, text = 1e-2, "the cat sees"
    cases: list[tuple[str, str | None, int | None]] = [
        ("bert_pairs", None, None),
        ("bert_pairs", "dogs walk", None),
        ("bart_pairs", "dogs walk", None),
        ("bert_words", None, 1),
    ]
    for name, pair, token in cases:
        model = mh.load(golden(f"labels/{name}"))
        label = model.labels[1]
        slopes = model.gradient(text, at="*.gates", of="label", label=label, second=pair, position=token)
        assert slopes.value == pytest.approx(logit_of(model, text, pair, label, token), abs=1e-4)
        ends = []
        for sign in (1, -1):
            with model.edit(gate={"encoder.0.self_attention.1": 1 + sign * step}):
                ends.append(logit_of(model, text, pair, label, token))
        expected = (ends[0] - ends[1]) / (2 * step)
        assert slopes["encoder.0.self_attention.gates"][0, 1] == pytest.approx(expected, rel=0.05, abs=1e-3)
    words = mh.load(golden("labels/bert_words"))
    with pytest.raises(mh.UsageError, match="there is no label 'x'"):
        words.gradient(text, at="*.gates", of="label", label="x", position=1)
    with pytest.raises(mh.UsageError, match="`position` is missing"):
        words.gradient(text, at="*.gates", of="label", label=words.labels[0])
    with pytest.raises(mh.UsageError, match="`label` is that of"):
        words.gradient(text, at="*.gates", of="label")


def test_saves_and_prunes(demo: mh.Model, tmp_path: Path) -> None:
    demo.save(tmp_path / "copy")
    again = mh.load(tmp_path / "copy")
    assert again.translate(SENTENCES) == demo.translate(SENTENCES)
    heads = ["encoder.0.self_attention.1", "decoder.1.cross_attention.2"]
    pruned = demo.prune(heads)
    assert len(pruned.heads) == 22
    with demo.edit(mute=heads):
        muted = demo.translate(SENTENCES)
    assert pruned.translate(SENTENCES) == muted
    with pytest.raises(mh.UsageError, match="own_format"):
        pruned.save(tmp_path / "pruned")
    pruned.save(tmp_path / "pruned", own_format=True)
    assert mh.load(tmp_path / "pruned").translate(SENTENCES) == muted


def test_save_replaces_only_what_multihead_wrote(demo: mh.Model, tmp_path: Path) -> None:
    demo.save(tmp_path / "copy")
    demo.save(tmp_path / "copy", dtype="bfloat16")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "bert"}')
    (other / "vocab.txt").write_text("[PAD]")
    for write in (demo.save, lambda folder: mh.convert("demo", folder)):
        with pytest.raises(mh.Error, match="multihead did not write; choose a new name, or allow that it is lost: `overwrite`"):
            write(other)
    assert (other / "vocab.txt").read_text() == "[PAD]"
    demo.save(other, overwrite=True)
    assert mh.load(other).translate(SENTENCES) == demo.translate(SENTENCES)
    assert not (other / "vocab.txt").exists()


def test_save_says_which_transformers_opens_a_pruned_model(minilm: mh.Model, tmp_path: Path) -> None:
    pruned = minilm.prune("encoder.0.self_attention.1")
    with pytest.warns(mh.Remark, match="Transformers 4 opens the folder by its pruned_heads; Transformers 5 no longer prunes"):
        pruned.save(tmp_path / "pruned")
    with warnings.catch_warnings():
        warnings.simplefilter("error", mh.Remark)
        minilm.save(tmp_path / "whole")


def test_tokens(demo: mh.Model) -> None:
    found = demo.tokenize("two dogs run .")
    assert found.tokens == ["two", "dogs", "run", ".", "</s>"]
    assert found.offsets == [(0, 3), (4, 8), (9, 12), (13, 14), (0, 0)]
    assert demo.decode(found.ids) == "two dogs run ."


def test_warns_of_words_it_does_not_know(demo: mh.Model) -> None:
    with pytest.warns(mh.Remark, match="unknown token"):
        demo.translate("the xylophone sees a cat .")
    with warnings.catch_warnings():
        warnings.simplefilter("error", mh.Remark)
        with pytest.raises(mh.Remark):
            demo.translate("the xylophone sees a cat .")


@pytest.mark.parametrize(
    "call",
    [
        lambda demo: demo.translate("the xylophone sees"),
        lambda demo: demo.observe("the xylophone sees"),
        lambda demo: list(demo.observe(["the xylophone sees"])),
        lambda demo: mh.heads.stats(demo, ["the xylophone sees a cat ."]),
    ],
)
def test_remarks_point_at_the_line_of_the_user(demo: mh.Model, call: Callable[[mh.Model], Any]) -> None:
    with pytest.warns(mh.Remark) as told:
        call(demo)
    assert any("unknown" in str(one.message) for one in told)
    assert {(one.filename, one.lineno) for one in told} == {(__file__, call.__code__.co_firstlineno)}


def test_loading_tells_what_the_folder_is_about(tmp_path: Path) -> None:
    """Every remark of the library, at the line that loads; those of vectors when vectors are asked for."""
    folder = tmp_path / "classifier"
    shutil.copytree(golden("fill/bert"), folder)
    add_tensor(folder / "model.safetensors", "classifier.weight")
    for load in (mh.load, lambda path: mh.convert(path, tmp_path / "again")):
        with pytest.warns(mh.Remark, match="classifier.weight.* not read") as told:
            load(folder)
        assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", mh.Remark)
        for name in ("generate/gpt2", "fill/bert", "sentences/plain", "sentences/modes"):
            mh.load(golden(name))
        with pytest.raises(mh.Remark, match="classifier.weight"):
            mh.load(folder)
    model = mh.load(golden("sentences/plain"))
    with pytest.warns(mh.Remark, match="no modules.json") as told:
        model.embed("a")
    assert told[0].filename == __file__
    with pytest.warns(mh.Remark, match="no modules.json"):
        model.gradient("a", at="encoder.states", of="similarity", second="b")


def add_tensor(path: Path, name: str) -> None:
    """A tensor more, of two numbers, in a file of safetensors."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    end = len(data) - 8 - size
    header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [end, end + 8]}
    written = json.dumps(header).encode()
    path.write_bytes(len(written).to_bytes(8, "little") + written + data[8 + size :] + bytes(8))


def test_errors_are_of_sensible_kinds(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model folder"):
        mh.load(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(FileNotFoundError):
        mh.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    with pytest.raises(mh.FormatError) as raised:
        mh.load(tmp_path)
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, mh.Error)
    assert "\n" not in str(raised.value)


def test_finds_models_of_the_cache(tmp_path: Path, demo: mh.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = tmp_path / "models--some--translator" / "snapshots" / "abc"
    demo.save(snapshot)
    refs = tmp_path / "models--some--translator" / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert mh.load("some/translator").translate(SENTENCES) == demo.translate(SENTENCES)
    for name in ("some/other", "../some/translator", "a/b/c"):
        with pytest.raises(FileNotFoundError, match="no model folder"):
            mh.load(name)
    for name in ("bert-base-uncased", "some/other"):
        with pytest.raises(mh.MissingFileError, match=r"Hugging Face's cache .*snapshot_download\('" + name) as raised:
            mh.load(name)
        assert str(tmp_path) in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("what", [lambda demo: demo.parameters, lambda demo: demo.observe("two dogs run .")])
def test_refuses_to_be_pickled(demo: mh.Model, what: Any) -> None:
    with pytest.raises(TypeError, match="cannot be pickled; "):
        pickle.dumps(what(demo))


def test_pickles_as_where_it_is(demo: mh.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a path that was relative, with its precision and without heads that were removed."""
    demo.save(tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    heads = ["encoder.0.self_attention.1", "decoder.1.cross_attention.2"]
    models = [demo, mh.load("copy", precision="near"), mh.load("copy").prune(heads)]
    with models[0].edit(mute="encoder.*"):  # belongs to this block alone
        written = [pickle.dumps(model) for model in models]
    monkeypatch.chdir("/")
    assert len(models[1].prune(heads).heads) == 22  # which reads the folder, too
    for model, bytes_ in zip(models, written, strict=True):
        assert len(bytes_) < 1000
        again = pickle.loads(bytes_)
        assert repr(again) == repr(model) and again.heads == model.heads
        assert again.translate(SENTENCES) == model.translate(SENTENCES)


def test_pickled_refuses_other_weights(demo: mh.Model, tmp_path: Path) -> None:
    demo.save(tmp_path / "copy")
    written = pickle.dumps(mh.load(tmp_path / "copy"))
    demo.save(tmp_path / "copy", dtype="bfloat16")
    with pytest.raises(mh.FormatError, match=r"copy has other weights \(SHA-256 .{12}\.\.\.\) than the model that") as raised:
        pickle.loads(written)
    assert "\n" not in str(raised.value)
    shutil.rmtree(tmp_path / "copy")
    with pytest.raises(mh.MissingFileError, match="copy"):
        pickle.loads(written)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_share_the_weights_but_no_edits(demo: mh.Model, copied: Any) -> None:
    other = copied(demo)
    assert np.shares_memory(other.W_E, demo.W_E)
    plain = demo.score(SENTENCES[1], "zwei Hunde laufen .")
    with demo.edit(mute="encoder.*"):
        assert copied(demo).score(SENTENCES[1], "zwei Hunde laufen .") == plain == other.score(SENTENCES[1], "zwei Hunde laufen .")
        assert demo.score(SENTENCES[1], "zwei Hunde laufen .") != plain


def test_refuses_what_is_no_text(demo: mh.Model) -> None:
    with pytest.raises(TypeError, match="`texts`: expected text or a list of texts, got int in it"):
        demo.translate([1])  # type: ignore[list-item]
    with pytest.raises(mh.UsageError, match="translate: beam_size: expected an integer from 1 to 255"):
        demo.translate("a", beam_size=0)


def test_converts(smollm2: mh.Model, tmp_path: Path) -> None:
    mh.convert(smollm2.path, tmp_path / "folder", dtype="bfloat16")
    again = mh.load(tmp_path / "folder")
    assert again.model_type == "llama" and again.parameter_count == smollm2.parameter_count
    with pytest.raises(OSError, match="holds something else"):
        mh.convert("demo", tmp_path)


def test_early_stopping_is_named_as_in_transformers(demo: mh.Model) -> None:
    usual = demo.translations(SENTENCES[0], n_best=3, early_stopping=True)
    assert demo.translations(SENTENCES[0], n_best=3, early_stopping="true") == usual
    assert demo.translations(SENTENCES[0], n_best=3) == usual  # as the folder says
    for other in (False, "never"):
        assert demo.translations(SENTENCES[0], n_best=3, early_stopping=other)[0].score >= usual[0].score
    with pytest.raises(mh.UsageError, match="early_stopping"):
        demo.translate(SENTENCES[0], early_stopping="late")  # type: ignore[call-overload]
