"""Analyses of heads: each gives the report that the tool prints as JSON, and a table of it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, golden, python

import multihead as mh

CALLS: dict[str, tuple[Callable[[mh.Model], mh.Table], list[str]]] = {
    "stats": (lambda m: mh.heads.stats(m, SENTENCES), []),
    "similar": (lambda m: mh.heads.similar(m, SENTENCES), []),
    "where": (lambda m: mh.heads.where(m, SENTENCES, least_count=1), ["--all", "--least-count", "1"]),
    "importance": (lambda m: mh.heads.importance(m, SENTENCES, by="ablation"), ["--by", "ablation"]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_reports_are_those_of_the_tool(demo: mh.Model, tool: Callable[..., str], name: str) -> None:
    call, flags = CALLS[name]
    table = call(demo)
    assert json.loads(tool("heads", name, "demo", "--json", *flags, texts=SENTENCES)) == table.report
    assert len(table) == 24


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_compare(demo: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    demo.save(tmp_path / "after")
    table = mh.heads.compare(demo, mh.load(tmp_path / "after"), SENTENCES)
    printed = tool("heads", "compare", "demo", "--with", str(tmp_path / "after"), "--json", texts=SENTENCES)
    assert json.loads(printed) == table.report
    assert len(table) == 24 and table["divergence.mean"].max() == 0
    with pytest.raises(mh.UsageError, match="have not the same heads"):
        mh.heads.compare(demo, mh.load(golden("t5/text")), SENTENCES)


def test_circuits(demo: mh.Model, tool: Callable[..., str]) -> None:
    table = mh.heads.circuits(demo)
    assert json.loads(tool("heads", "circuits", "demo", "--json")) == table.report
    assert table["query_key.effective_rank"].max() <= 24


def test_attribution(demo: mh.Model, tool: Callable[..., str]) -> None:
    table = mh.heads.attribution(demo, "two dogs run .", position=1, methods=["rollout", "gradient-x-input"])
    printed = tool("heads", "attribution", "demo", "--text", "two dogs run .", "--token", "1", "--method", "rollout", "--method",
                   "gradient-x-input", "--json")  # fmt: skip
    assert json.loads(printed) == table.report
    assert table.columns[-2:] == ["rollout", "gradient-x-input"]
    assert table["rollout"].sum() == pytest.approx(1, abs=1e-6)


def test_patch(demo: mh.Model, tool: Callable[..., str]) -> None:
    table = mh.heads.patch(demo, clean="the small dog sees a cat .", corrupt="the small cat sees a cat .", answer="Hund",
                           wrong="Katze", prefix="der kleine")  # fmt: skip
    printed = tool("heads", "patch", "demo", "--clean", "the small dog sees a cat .", "--corrupt", "the small cat sees a cat .",
                   "--answer", "Hund", "--wrong", "Katze", "--prefix", "der kleine", "--json")  # fmt: skip
    assert json.loads(printed) == table.report
    assert len(table) == 24


def test_contributions(demo: mh.Model, tool: Callable[..., str]) -> None:
    text = "the small dog sees a cat ."
    table = mh.heads.contributions(demo, text, prefix="der kleine", answer="Hund", wrong="Katze")
    printed = tool("heads", "contributions", "demo", "--text", text, "--prefix", "der kleine", "--answer", "Hund", "--wrong",
                   "Katze", "--json")  # fmt: skip
    assert json.loads(printed) == table.report
    assert sum(table["sum"]) == pytest.approx(table.report["score"], abs=1e-4) and table.report["error"] < 1e-6
    assert list(table["kind"]).count("head") == 16
    with demo.edit(mute="decoder.1.cross_attention.1"):
        muted = mh.heads.contributions(demo, text, prefix="der kleine", answer="Hund", wrong="Katze")
    assert muted.where(name="decoder.1.cross_attention.1")["sum"][0] == 0
    several = mh.heads.contributions(
        demo, [(text, "Hund", "Katze"), ("the small cat sleeps .", "Katze", "Hund")], prefix="der kleine"
    )
    assert several.report["texts"] == 2 and "half" in several.columns
    with pytest.raises(mh.UsageError, match="expected a text, or"):
        mh.heads.contributions(demo, [("a", "b", "c", "d")])
    with pytest.raises(mh.UsageError, match="text 2: "):
        mh.heads.contributions(demo, [(text, "Hund"), (text, "Zebra")], prefix="der kleine")


def test_retrieval(tool: Callable[..., str], tmp_path: Path) -> None:
    model = mh.load(golden("generate/gpt2"))
    needles = [("two dogs see a cat .", "two dogs see", "a cat"), ("the man has a small house .", "the man has", "a small house")]
    (tmp_path / "needles").write_text("".join("\t".join(needle) + "\n" for needle in needles))
    table = mh.heads.retrieval(model, needles, lengths=[37], depths=[0.5], limit="answer", by_group=True, window=5, text_tokens=11)
    printed = tool("heads", "retrieval", str(golden("generate/gpt2")), "--needles", str(tmp_path / "needles"), "--lengths", "37",
                   "--depths", "0.5", "--limit", "answer", "--by-group", "--window", "5", "--text-tokens", "11",
                   "--json")  # fmt: skip
    assert json.loads(printed) == table.report
    assert len(table) == 9 and {"score", "weight", "fall", "loss_rise"} <= set(table.columns)
    again = mh.heads.retrieval(model, needles, lengths=[37], depths=[0.5], options=table.report["options"])
    assert again.report == table.report
    with model.edit(mute="decoder.0.self_attention.*"):
        assert mh.heads.retrieval(model, needles, lengths=[37], depths=[0.5])["weight"].tolist() != table["weight"].tolist()
    with pytest.raises(mh.UsageError, match="`needles`: expected a sentence, a question and its answer"):
        mh.heads.retrieval(model, [("a", "b")], lengths=[37])
    with pytest.raises(mh.UsageError, match="`lengths`: 512 tokens are more than the 67"):
        mh.heads.retrieval(model, needles)


def test_alignment_without_gold(demo: mh.Model, tool: Callable[..., str], tmp_path: Path) -> None:
    sources = tmp_path / "source.txt"
    sources.write_text("\n".join(SENTENCES) + "\n")
    table = mh.heads.alignment(demo, SENTENCES, gold=False, pairs=5)
    assert json.loads(tool("heads", "alignment", "demo", "--no-gold", "--pairs", "5", "-i", str(sources), "--json")) == table.report
    assert 1 <= len(table.report["chosen"]["heads"]) <= 4
    with pytest.raises(mh.UsageError, match="leave `alignment` out"):
        mh.heads.alignment(demo, SENTENCES, gold=False, alignment=sources)


def test_lens(demo: mh.Model, tool: Callable[..., str]) -> None:
    text = "the small dog sees a cat ."
    table = mh.heads.lens(demo, text, sublayers=True, words=2)
    assert json.loads(tool("heads", "lens", "demo", text, "--sublayers", "--words", "2", "--json")) == table.report
    assert len(table) == 7 * 8 and set(table["site"]) <= set(demo.sites)
    assert list(table.where(site="decoder.1.output")["word"]) == demo.translate(text).split() + ["</s>"]
    assert table.where(site="decoder.1.output")["divergence"].max() == 0
    assert mh.heads.lens(demo, text, options=table.report["options"]).report == table.report
    one = mh.heads.lens(demo, text, position=2, answer="Hund")
    assert len(one) == 3 and one["answer.rank"][-1] == 1
    with demo.edit(mute="decoder.1.cross_attention.*"):
        muted = mh.heads.lens(demo, text, position=2, answer="Hund", target="der kleine Hund")
    assert muted["answer.log_probability"][-1] < one["answer.log_probability"][-1]
    with pytest.raises(mh.UsageError, match="there is no token 99"):
        mh.heads.lens(demo, text, position=99)
    with pytest.raises(mh.UsageError, match="`second`: a text whose vector"):
        mh.heads.lens(demo, text, second=text)


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_lens_of_labels_and_vectors() -> None:
    words = mh.load(golden("labels/bert_words"))
    table = mh.heads.lens(words, "two dogs run")
    found = [token.labels[0] for token in words.classify("two dogs run")]
    last = table.where(site="encoder.1.output")
    assert list(last["label"])[1:-1] == [label.name for label in found]
    assert last["probability"][1:-1] == pytest.approx([label.score for label in found], abs=1e-6)
    cosines = mh.heads.lens(mh.load(golden("sentences/dense")), "two dogs", second="a cat")
    assert cosines.columns == ["site", "own", "second"] and cosines["own"][-1] == pytest.approx(1)


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_curves_and_faithfulness(demo: mh.Model) -> None:
    curve = mh.heads.pruning_curve(demo, SENTENCES, points=3, random_orders=2)
    assert curve["muted"].tolist() == [0, 8, 16, 24]
    faithful = mh.heads.faithfulness(demo, SENTENCES, methods="rollout")
    assert faithful["method"].tolist() == ["rollout", "random"]


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_relations_of_a_real_model(minilm: mh.Model, trees: Path, tool: Callable[..., str], tmp_path: Path) -> None:
    some = tmp_path / "some.conllu"
    with gzip.open(trees, "rt", encoding="utf-8") as file:
        some.write_text("\n\n".join(file.read().split("\n\n")[:200]) + "\n\n", encoding="utf-8")
    chosen = mh.heads.relations(minilm, trees=some)
    assert json.loads(tool("heads", "relations", minilm.path, "--conllu", str(some), "--json")) == chosen.report
    ranked = mh.heads.relations(minilm, trees=some, relation="obj").where(direction="to_dependent")
    assert len(ranked) == 72 and ranked["score"].tolist() == sorted(ranked["score"], reverse=True)
    with pytest.raises(mh.UsageError, match="no relation 'nonsense' .*, obj"):
        mh.heads.relations(minilm, trees=some, relation="nonsense")


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_analyses_obey_edits(demo: mh.Model) -> None:
    head = "encoder.0.self_attention.1"
    with demo.edit(replace={head: "first"}):
        rows = {row["head"]: row for row in mh.heads.stats(demo, SENTENCES)}
        assert rows[head]["on_first"] == pytest.approx(1)
        with pytest.raises(mh.UsageError, match="attributions are made of unchanged models"):
            mh.heads.attribution(demo, "two dogs run .")
    assert {row["head"]: row for row in mh.heads.stats(demo, SENTENCES)}[head]["on_first"] < 0.9


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_texts_are_lists_or_files(demo: mh.Model, tmp_path: Path) -> None:
    file, targets = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("\n".join(SENTENCES) + "\n")
    translations = demo.translate(SENTENCES)
    targets.write_text("\n".join(translations) + "\n")
    of_lists = mh.heads.stats(demo, SENTENCES, target=translations)
    of_files = mh.heads.stats(demo, file, target=targets)
    assert of_lists.report == of_files.report
    for call, kind, words in (
        (lambda: mh.heads.stats(demo), mh.UsageError, "give texts"),
        (lambda: mh.heads.stats(demo, tmp_path / "c.txt"), FileNotFoundError, "c.txt"),
        (lambda: mh.heads.stats(demo, SENTENCES, target=translations[:2]), mh.UsageError, "5"),
        (lambda: mh.heads.stats(demo, file, target=translations), mh.UsageError, "all as lists, or all as files"),
        (lambda: mh.heads.stats(demo, []), mh.FormatError, "the text is empty"),
        (lambda: mh.heads.importance(demo, SENTENCES, by="magic"), mh.UsageError, 'importance: by: expected one of "gradient"'),  # type: ignore[arg-type]
        (lambda: mh.heads.where(demo, SENTENCES, heads="encoder.9.*"), mh.UsageError, "encoder.9"),
    ):
        with pytest.raises(kind, match=words):
            call()


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_progress_comes_from_the_calling_thread(demo: mh.Model) -> None:
    import threading

    seen: list[tuple[int, int]] = []
    mh.heads.stats(demo, SENTENCES * 40, progress=lambda done: seen.append((done, threading.get_ident())))
    demo.translate(SENTENCES * 40, max_batch_tokens=64, progress=lambda done: seen.append((done, threading.get_ident())))
    assert {thread for _, thread in seen} == {threading.get_ident()}
    assert seen[-1][0] == 200
    told: list[int] = []
    causal, texts = mh.load(golden("generate/gpt2")), ["the small dog", "two dogs run"] * 40
    scores = causal.score(texts, per_token=True, max_batch_tokens=64, progress=told.append)
    assert len(told) > 1 and told == sorted(told) and told[-1] == sum(map(len, scores))  # tokens

    class EnoughError(Exception):
        pass

    def stop(_: int) -> None:
        raise EnoughError

    for call in (lambda: mh.heads.stats(demo, SENTENCES, progress=stop), lambda: demo.translate(SENTENCES, progress=stop)):
        with pytest.raises(EnoughError):
            call()


def test_tables() -> None:
    table = mh.Table([{"a": 1, "b": {"c": 2.0}, "d": [1]}, {"a": 3, "e": "x", "b": {"c": None}}], {"all": 1})
    assert table.columns == ["a", "b.c", "d", "e"]
    assert table["a"].tolist() == [1, 3]
    assert np.isnan(table["b.c"][1])
    assert table["e"].tolist() == [None, "x"]
    assert table[0]["b.c"] == 2.0
    assert isinstance(table[:1], mh.Table) and len(table[:1]) == 1
    assert [row["a"] for row in table.sort("a")] == [3, 1]
    assert [row["a"] for row in table.sort("b.c", descending=False)] == [1, 3]
    assert len(table.where(a=3)) == 1
    assert table.report == {"all": 1}
    assert "<th>b.c</th>" in table._repr_html_() and "<script" not in mh.Table([{"a": "<script>"}])._repr_html_()
    assert repr(table).splitlines()[0].split() == ["a", "b.c", "e"]
    assert repr(table).splitlines()[-1] == "not shown: d" and "<p>not shown: d</p>" in table._repr_html_()
    some = table[["e", "a"]]
    assert some.columns == ["e", "a"] and some[0] == {"a": 1} and some[1] == {"e": "x", "a": 3} and some.report == table.report
    assert repr(some).splitlines()[0].split() == ["e", "a"]
    assert table[np.int64(1)]["a"] == 3  # type: ignore[call-overload]
    with pytest.raises(mh.ArgumentTypeError, match="rows by number and columns by name, got tuple"):
        table[("a", "e")]  # type: ignore[call-overload]
    with pytest.raises(KeyError, match="there is no column 'z'"):
        table[["a", "z"]]
    with pytest.raises(KeyError, match="there is no column 'z'; there are a, b.c, d, e"):
        table["z"]
    pandas: Any = pytest.importorskip("pandas")
    assert isinstance(table.to_pandas(), pandas.DataFrame)


@pytest.mark.parametrize("room", [40, 80, 200])
def test_tables_say_which_columns_do_not_fit(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    names = [f"column_{i:02}" for i in range(17)]
    table = mh.Table([{name: i for i, name in enumerate(names)}])
    lines = repr(table).splitlines()
    shown = lines[0].split()
    assert shown == names[: len(shown)] and max(map(len, lines)) <= room
    assert len(shown) == min(17, (room + 2) // 11)
    rest = " ".join(lines[2:])
    assert [name for name in names if name in rest] == names[len(shown) :]
    assert rest.startswith("not shown: ") or len(shown) == 17
    assert all(f"<th>{name}</th>" in table._repr_html_() for name in names)


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_every_analysis_of_heads_calls_them_head(demo: mh.Model) -> None:
    clean, corrupt = "the small dog sees a cat .", "the small cat sees a cat ."
    patch = {"clean": clean, "corrupt": corrupt, "answer": "Hund", "wrong": "Katze", "prefix": "der kleine"}
    names = {head.name for head in demo.heads}
    for table in (
        mh.heads.stats(demo, SENTENCES),
        mh.heads.similar(demo, SENTENCES),
        mh.heads.where(demo, SENTENCES, least_count=1),
        mh.heads.circuits(demo),
        mh.heads.importance(demo, SENTENCES),
        mh.heads.patch(demo, **patch),
        mh.heads.patch(demo, **patch, what="patterns"),
    ):
        assert set(table["head"]) == names
    assert set(mh.heads.patch(demo, **patch, what="stream")["site"]) <= set(demo.sites)


def test_pages(demo: mh.Model, tmp_path: Path) -> None:
    page = mh.view(demo, "two dogs run .", head="encoder.0.self_attention.1", importance=False)
    page.save(tmp_path / "heads.html")
    assert (tmp_path / "heads.html").read_text(encoding="utf-8") == page.html
    shown = page._repr_html_()
    assert shown.startswith("<iframe") and "srcdoc=" in shown and "<script" not in shown
    with pytest.raises(FileNotFoundError, match="nowhere") as raised:
        page.save(tmp_path / "nowhere" / "heads.html")
    assert isinstance(raised.value, mh.FileError)
    with pytest.raises(mh.UsageError, match="encoder.7"):
        mh.view(demo, "two dogs run .", head="encoder.7.self_attention.0")
    with pytest.raises(mh.UsageError, match="`target`"):
        mh.view(demo, "two dogs run .", target=["a", "b"])
    with pytest.raises(mh.UsageError, match="max_size"):
        mh.view(demo, "two dogs run .", max_size=0)


def expect_shown(demo: mh.Model, tmp_path: Path, argument: str, found: mh.Table) -> None:
    """A page shows a report as a table, as what it was made of and as a file, the same each time."""
    (tmp_path / "report.json").write_text(json.dumps(found.report))
    plain = mh.view(demo, "two dogs run .", importance=False)
    reports = (found, found.report, tmp_path / "report.json")
    given: list[dict[str, Any]] = [{argument: report} for report in reports]
    pages = [mh.view(demo, "two dogs run .", importance=False, **one) for one in given]
    assert len({page.html for page in pages}) == 1
    assert pages[0].html != plain.html


def test_pages_show_reports(demo: mh.Model, tmp_path: Path) -> None:
    pair = ("the small dog sees a cat .", "the small cat sees a cat .", "Hund", "Katze", "der kleine")
    found = mh.heads.circuit(demo, [pair], random=3)
    expect_shown(demo, tmp_path, "circuit", found)
    with pytest.raises(mh.FormatError, match='`retrieval`: expected a report .*, got one of "circuit"'):
        mh.view(demo, "two dogs run .", retrieval=found)
    with pytest.raises(mh.FileError, match="missing.json"):
        mh.view(demo, "two dogs run .", circuit=tmp_path / "missing.json")
    other = {**found.report, "edges_of_model": 7}
    with pytest.raises(mh.FormatError, match="`circuit`: its model has 7 edges, and this one 529; give the report of this model"):
        mh.view(demo, "two dogs run .", circuit=other)


def test_pages_hold_the_model(demo: mh.Model) -> None:
    plain = mh.view(demo, "two dogs run .", importance=False)
    live = mh.view(demo, "two dogs run .", importance=False, live=True)
    assert 'id="live"' in live.html and 'id="live"' not in plain.html
    assert "worker-src blob:" in live.html and "worker-src" not in plain.html
    rounded = mh.view(demo, "two dogs run .", importance=False, live=True, live_weights="int8", max_size=3)
    assert len(rounded.html) < 0.6 * len(live.html) and '"weights":{"as":"int8","difference":0.00' in rounded.html
    with pytest.raises(mh.UsageError, match="more than 3; give `live_weights` int8 .*, or a larger `max_size`"):
        mh.view(demo, "two dogs run .", importance=False, live=True, max_size=3)
    with pytest.raises(mh.UsageError, match="`live_weights` is how a page holds its model; give `live=True`, too"):
        mh.view(demo, "two dogs run .", importance=False, live_weights="int8")
    with pytest.raises(mh.UsageError, match="more than 1; give a smaller model, or a larger `max_size`"):
        mh.view(demo, "two dogs run .", importance=False, live=True, max_size=1)
    with demo.edit(mute=["encoder.0.self_attention.1"]), pytest.raises(mh.UsageError, match="`live`: the reader changes heads"):
        mh.view(demo, "two dogs run .", importance=False, live=True)


def test_pages_show_heads_that_align(demo: mh.Model, tmp_path: Path) -> None:
    found = mh.heads.alignment(demo, SENTENCES, gold=False, pairs=5)
    expect_shown(demo, tmp_path, "aligners", found)
    with pytest.raises(mh.FormatError, match='`circuit`: expected a report .*, got one of "alignment"'):
        mh.view(demo, "two dogs run .", circuit=found)
    other = {**found.report, "alignment": found.report["alignment"][:4]}
    with pytest.raises(mh.FormatError, match="`aligners`: it has 2 heads, and the model 8; give the report of this model"):
        mh.view(demo, "two dogs run .", aligners=other)


@pytest.mark.parametrize("argument", ["corpus_target", "target_trees", "alignment"])
def test_pages_refuse_what_belongs_to_a_corpus(demo: mh.Model, argument: str) -> None:
    given: dict[str, Any] = {argument: Path("missing")}
    with pytest.raises(mh.UsageError, match=f"`{argument}` needs a corpus: give its sentences with `corpus_text` or `trees`"):
        mh.view(demo, "two dogs run .", **given)


def test_a_page_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    """In one step: with room for half of it the old page is still there, and nothing else."""
    done = python(f"""
        import resource, signal
        import multihead as mh
        page = mh.Page("a" * 200_000, "", 1)
        page.save({str(tmp_path / "heads.html")!r})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            mh.Page("b" * 200_000, "", 1).save({str(tmp_path / "heads.html")!r})
        except mh.FileError as error:
            print("refused", error)
    """)
    assert done.stdout.startswith("refused ") and "heads.html" in done.stdout, done.stderr
    assert (tmp_path / "heads.html").read_text() == "a" * 200_000
    assert [file.name for file in tmp_path.iterdir()] == ["heads.html"]


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_options_of_every_analysis(demo: mh.Model) -> None:
    question = {"clean": "the small dog sees a cat .", "corrupt": "the small cat sees a cat .", "answer": "Hund", "wrong": "Katze"}
    stats = mh.heads.stats(demo, SENTENCES, max_batch_tokens=50)
    assert stats.report["options"] == {"max_batch_tokens": 50, "source_language": None, "target_language": None}
    assert mh.heads.stats(demo, SENTENCES, options=stats.report["options"]).report == stats.report
    patch = mh.heads.patch(demo, **question, what="patterns", max_batch_tokens=50)  # type: ignore[arg-type]
    assert mh.heads.patch(demo, **question, options=patch.report["options"]).report == patch.report  # type: ignore[arg-type]
    faithful = mh.heads.faithfulness(demo, SENTENCES, methods="rollout", draws=2, steps=3)
    options = faithful.report["options"]
    assert mh.heads.faithfulness(demo, SENTENCES, options=options).report == faithful.report
    of_a_text = mh.heads.attribution(demo, "two dogs run .", options=options).report
    names = ("methods", "steps", "max_batch_tokens", "source_language", "target_language")
    assert of_a_text["options"] == {name: options[name] for name in names}


def test_costs_and_bleu() -> None:
    rows = {row["part"]: row for row in mh.ledger(heads=8, d_model=512, queries=10)}
    assert rows["queries"]["parameters"] == 512 * 512 + 512
    assert rows["total"]["flops"] == sum(row["flops"] for name, row in rows.items() if name != "total")
    assert "multi-query" in mh.geometries()
    with pytest.raises(mh.UsageError, match="nonsense"):
        mh.ledger("nonsense")
    score = mh.bleu(["two dogs run ."], ["two dogs run ."])
    assert float(score) == pytest.approx(100) and str(score).startswith("BLEU = 100.00")
    assert mh.bleu(["a b c d e"], [["a b c d"], ["a b c d e"]]).score == pytest.approx(100)
    moses = mh.bleu(
        ["Das ist z.B. gut."], ["Das ist z.B. gut !"], tokenizer="moses", language="de", smoothing="floor", smoothing_value=0.5
    )
    assert "tok:moses-de" in moses.signature and "smooth:floor[0.50]" in moses.signature
    with pytest.raises(mh.FormatError):
        mh.bleu(["a"], ["a", "b"])
    with pytest.raises(mh.UsageError, match="a list of texts, got str"):
        mh.bleu("a", "b")


def test_options_make_a_report_again(demo: mh.Model) -> None:
    first = mh.heads.importance(demo, SENTENCES, by="ablation", to="mean", heads="encoder.*", seed=5)
    assert mh.heads.importance(demo, SENTENCES, options=first.report["options"]).report == first.report
    others = mh.heads.importance(demo, SENTENCES, options=first.report["options"], heads="decoder.*")
    assert others.report["options"] == {**first.report["options"], "heads": ["decoder.*"]}
    curve = mh.heads.pruning_curve(demo, SENTENCES, points=2, random_orders=3)
    assert mh.heads.pruning_curve(demo, SENTENCES, options=curve.report["options"]).report == curve.report
    for call, words in (
        (
            lambda: mh.heads.importance(demo, SENTENCES, options=curve.report["options"]),
            "`curve` is True, and importance makes those with False",
        ),
        (lambda: mh.heads.importance(demo, SENTENCES, options={"sed": 3}), "there is no `sed`; did you mean `seed`?"),
        (lambda: mh.heads.importance(demo, SENTENCES, sed=3), "importance has no argument `sed`; did you mean `seed`?"),  # type: ignore[call-arg]
        (lambda: mh.heads.pruning_curve(demo, SENTENCES, by="alone"), "a curve mutes heads in one order"),
    ):
        with pytest.raises(mh.UsageError, match=re.escape(words)):
            call()
