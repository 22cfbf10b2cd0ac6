"""Where a translator's words come up in its decoder, by the lens and by contributions:

    layer_runs.py MODEL TEXT FIRST LAST OUT.json

MODEL: demo or a folder. TEXT: English lines, of which those from FIRST to LAST (from 1) are translated. Does nothing where OUT.json is
there. Needs the package multihead."""

import gzip
import json
import sys
import warnings
from pathlib import Path

import multihead as mh

# Closed classes of German: articles, pronouns, prepositions, conjunctions, auxiliaries and particles.
FUNCTION_WORDS = set("""
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines dies diese dieser dieses diesen diesem
    jede jeder jedes jeden jedem mein meine meinen meinem meiner meines dein deine deinen deinem deiner deines sein seine seinen seinem seiner
    seines ihr ihre ihren ihrem ihrer ihres unser unsere unseren unserem unserer unseres euer eure euren eurem eurer eures ich du er sie es wir
    mich dich ihn uns euch mir dir ihm ihnen sich man wer wen wem was etwas nichts jemand niemand denen deren dessen welche welcher
    welches welchen welchem einander in im ins an am ans auf aufs aus bei beim mit nach von vom vor zu zum zur über um unter hinter neben
    zwischen durch für gegen ohne bis seit während wegen statt ab und oder aber sondern denn dass daß weil wenn ob als wie obwohl bevor
    nachdem damit indem wobei ist sind war waren bin bist seid sein wird werden werde wurde wurden hat haben habe hatte hatten kann können
    konnte muss müssen soll sollen will wollen darf dürfen mag mögen nicht""".split())  # fmt: skip
RUNNERS_UP = 16  # of so many probable words one is the wrong answer


def read(token):
    """A token as a word's letters, and whether it begins a word: translators with subwords mark that."""
    return token.removeprefix("▁"), token.startswith("▁")


class Translation:
    """The tokens that the decoder says, and their words."""

    def __init__(self, tokens):
        self.tokens, marked = tokens, any(token.startswith("▁") for token in tokens)
        self.begins = [read(token)[1] if marked else True for token in tokens]
        self.marked = marked

    def text(self, begin, end):
        if not self.marked:
            return " ".join(self.tokens[begin:end])
        return "".join(self.tokens[begin:end]).replace("▁", " ").strip()

    def is_word(self, at):
        return self.begins[at] and any(letter.isalpha() for letter in self.tokens[at])

    def word(self, at):
        end = at + 1
        while end < len(self.tokens) and not self.begins[end] and self.tokens[end].isalpha():
            end += 1
        return self.text(at, end)


def settled(readings, id):
    """The first reading from which on the word stays the most probable one."""
    at = len(readings)
    while at > 0 and readings[at - 1]["best"][0]["id"] == id:
        at -= 1
    return at


def against_runner_up(model, source, translation, at, id, best):
    """Contributions to the word less the most probable other token that the text of an answer can say, so not to the inside of a word."""
    word, prefix = translation.word(at), translation.text(0, at)
    for other in best:
        wrong, begins = read(other["token"])
        inside = translation.marked and not begins and any(letter.isalnum() for letter in wrong)
        if other["id"] == id or not wrong or inside or wrong.startswith("</"):
            continue
        try:
            report = mh.heads.contributions(model, source, answer=word, wrong=wrong, prefix=prefix, sources=0).report
        except mh.UsageError:  # as text it begins like the word, since the tokenizer cuts it otherwise
            continue
        if report["wrong"]["id"] == other["id"] and report["answer"]["id"] == id:
            return report
    return None


def parts_by_layer(report, layers):
    """What self-attention, cross-attention and the feed-forward layer of each layer write, in this order, and the other parts."""
    sums, others = [0.0] * (3 * layers), {}
    for part in report["parts"]:
        if part["layer"] is None:
            others[part["kind"]] = part["sum"]
            continue
        kind = 2 if part["kind"] == "feed_forward" else 1 if ".cross_attention." in part["name"] else 0
        sums[3 * part["layer"] + kind] += part["sum"]
    return sums, others


def of_sentence(model, source):
    # Contributions cut the translation's text into tokens, which may be others than those that the model said: the lens reads the same.
    translated = mh.heads.lens(model, source, words=1).report["translation"]
    report = mh.heads.lens(model, source, sublayers=True, words=RUNNERS_UP, target=translated).report
    sites = list(dict.fromkeys(value["site"] for value in report["values"]))
    positions = report["positions"]
    translation = Translation([one["actual"]["token"] for one in positions[:-1]])
    words, left_out = [], 0
    for at in range(len(positions) - 1):
        if not translation.is_word(at):
            continue
        said, id = positions[at]["predicted"]["id"], positions[at]["actual"]["id"]
        readings = [value for value in report["values"] if value["position"] == at]
        shares = said == id and against_runner_up(model, source, translation, at, id, readings[-1]["best"])
        if not shares:
            left_out += 1
            continue
        sums, others = parts_by_layer(shares, (len(sites) - 1) // 3)
        words.append({
            "word": translation.word(at),
            "function": translation.word(at).lower() in FUNCTION_WORDS,
            "settled": settled(readings, id),
            "log_probability": [reading["predicted"]["log_probability"] for reading in readings],
            "wrong": shares["wrong"]["token"],
            "difference": shares["score"],
            "parts": sums,
            **others,
        })  # fmt: skip
    return {"translation": translated, "words": words, "left_out": left_out}


def main():
    name, text, first, last, out = sys.argv[1:]
    if Path(out).exists():
        return
    mh.set_threads(1)
    warnings.simplefilter("ignore", mh.Remark)  # that the first of several tokens is what counts, which is known
    model = mh.demo() if name == "demo" else mh.load(name)
    with (gzip.open if text.endswith(".gz") else open)(text, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()[int(first) - 1 : int(last)]
    found = [{"source": line, **of_sentence(model, line)} for line in lines]
    Path(out).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
