"""Text and figures for tests/evaluate: sacreBLEU's scores, its tokenizers' and sacremoses' words.

    pip install sacrebleu sacremoses
    python tests/oracles/bleu_goldens.py                      writes tests/goldens/evaluate
    python tests/oracles/bleu_goldens.py --moses FILE.en.gz FILE.de.gz --ours BUILD/evaluate_written
                                                              compares with what evaluate_tests wrote of Multi30k
"""
import argparse
import gzip
import json
import pathlib
import random

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from sacremoses import MosesTokenizer

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "evaluate"

# Reference and hypothesis; what tokenizers stumble over.
EDGES = [
    ("The cat sat on the mat.", "The cat is on the mat."),
    ("It costs 1,000.50 dollars, i.e. 3.5 times more.", "It cost 1,000.50 dollars - 3,5 times more."),
    ("In 1999, 20-year-old men ran 5-6 miles.", "In 1999 , 20 - year - old men ran 5-6 miles ."),
    ("He said &quot;no&quot; &amp; left &lt;quickly&gt;.", 'He said "no" & left <quickly>.'),
    ("&amp;quot; stays escaped &apos;once&apos;", '&quot; stays escaped \'once\''),
    ("A <skipped>word is skipped.", "A word is skipped ."),
    ("Don't you know it's John's 1990's car?", "Do n't you know it 's Johns 1990s car ?"),
    ("„Guten Tag“, sagte er – und ging …", "\"Guten Tag\", sagte er - und ging ..."),
    ("«Oui», dit-elle ; «non» !", "« Oui », dit - elle; « non »!"),
    ("¿Qué? ¡Nada!", "Qué ? Nada !"),
    ("5 € + 3 £ = 8 ½ × 2²", "5€ + 3£ = 8½ × 2²"),
    ("ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ Σ", "οδυσσευς και σοφος σ"),
    ("İSTANBUL ISPARTA STRAẞE", "i̇stanbul isparta straße"),
    ("a.b,c;d:e!f?g/h\\i|j@k#l$m%n^o&p*q(r)s_t+u=v~w`x{y}z[0]", "a . b , c ; d : e"),
    ("wait... what.. no. yes.", "wait ... what .. no . yes ."),
    ("3. 4.5. 6,7, 8,.9 .,. ,1", "3 . 4.5 . 6,7 , 8 , . 9"),
    ("the end in 1999.", "the end in 1999 ."),
    ("1999.", "1999 ."),
    ("中文句子。韩文,日文!", "中文 句子 。"),
    ("non\u00a0breaking\u2003em\u3000wide", "non breaking em wide"),
    ("cafe\u0301 soft\u00adhyphen zero\u200bwidth", "café softhyphen zerowidth"),
    ("👍🏽 great ❤️ !", "👍🏽 great ❤️!"),
    ("z.B. Dr. Müller u. a. am 3. Mai", "z. B. Dr. Müller u.a. am 3. Mai"),
    ("  spaces   everywhere  ", "spaces everywhere"),
    ("an empty hypothesis follows", ""),
    ("", "an empty reference was here"),
    ("one", "one"),
    ("two words", "two words"),
    ("-", "--"),
    ("50% of 1/2 is 1/4", "50 % of 1 / 2 is 1 / 4"),
    ("ＦＵＬＬ　ＷＩＤＴＨ．", "full width ."),
    ("Ⅷ ⅓ ٣٫٥ १.२ ①", "VIII 1/3 3.5 1.2 1"),
    ("He said 'yes.'", "He said ' yes . '"),
    ("'quoted' and o'clock rock 'n' roll", "' quoted ' and o'clock rock ' n ' roll"),
    ("UPPER lower MiXeD", "upper LOWER mixed"),
    ("the the the the the the the", "the cat is on the mat"),
    ("tabs\tand\x0bvertical\x0cfeeds\x1cseparators", "tabs and vertical feeds separators"),
]
PIECES = (list("abcXYZäöüßÉé0123456789  .,-'\"!?;:()[]{}<>&%$#@*+=/\\|^_~`") +
          [".", ",", "-", " ", "'", "&quot;", "&amp;", "&lt;", "1,2", "3.4", "„", "“", "”", "’", "–", "—", "…", "·",
           "€", "£", "½", "²", "Ⅷ", "①", "中", "。", "ー", "한", "Σ", "σ", "İ", "ʼ", "́", " ", "　", "​", "\xad",
           "👍", "√", "°", "٣", "«", "»", "¿", "<skipped>", "the", "Dr", "n't", "'s"])


def fuzz_lines(count):
    chance = random.Random(7)
    for _ in range(count):
        yield "".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 40)))


def corpus(count):
    """Sentences and two imperfect copies of each, the second worse."""
    chance = random.Random(11)
    subjects = "the man,a woman,two children,an old dog,the girl in a red coat,some workers".split(",")
    verbs = "sits on,walks across,looks at,jumps over,stands near,paints".split(",")
    objects = "the street,a wooden bench,an empty field,the blue wall,a crowd of people,the water".split(",")
    ends = "at night,in the rain,with a smile,for 1,000 days,on a sunny day,".split(",")

    def worse(words, rate):
        out = []
        for word in words:
            luck = chance.random()
            if luck < rate / 3:
                continue
            out.append("thing" if luck < rate * 2 / 3 else word)
            if rate * 2 / 3 <= luck < rate:
                out.append(word)
        return out

    rows = []
    for _ in range(count):
        words = " ".join(chance.choice(part) for part in (subjects, verbs, objects, ends)).split()
        rows.append(tuple(" ".join(line).capitalize() + "." for line in (words, worse(words, 0.2), worse(words, 0.23))))
    return [list(column) for column in zip(*rows)]


def write_lines(name, lines):
    (HERE / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")


def bleu_cases(texts):
    cases = []
    sets = [("edges.hyp", ["edges.ref"]), ("edges.hyp", ["edges.ref", "edges.ref2"]), ("corpus.a", ["corpus.ref"]),
            ("corpus.b", ["corpus.ref", "corpus.a"]), ("poor.hyp", ["poor.ref"]), ("wrong.hyp", ["poor.ref"]),
            ("empty.hyp", ["poor.ref"]), ("short.hyp", ["short.ref"])]
    smoothings = [("exp", None), ("floor", None), ("floor", 0.5), ("add-k", None), ("add-k", 2.5), ("none", None)]
    for hyp, refs in sets:
        for tokenize in ("13a", "intl", "none"):
            for lowercase in (False, True):
                for smooth, value in smoothings if tokenize == "13a" and not lowercase else smoothings[:1]:
                    for effective in (False, True):
                        bleu = BLEU(tokenize=tokenize, lowercase=lowercase, smooth_method=smooth, smooth_value=value,
                                    effective_order=effective, force=True)
                        score = bleu.corpus_score(texts[hyp], [texts[ref] for ref in refs])
                        signature = str(bleu.get_signature()).rsplit("|version", 1)[0]
                        cases.append({"hyp": hyp, "refs": refs, "tokenize": tokenize, "lowercase": lowercase,
                                      "smooth": smooth, "value": value, "effective": effective, "line": str(score),
                                      "score": score.score, "signature": signature})
    return cases


def bootstrap(texts, samples):
    systems = [("a", texts["corpus.a"]), ("b", texts["corpus.b"]), ("a again", texts["corpus.a"])]
    test = PairedTest(systems, {"BLEU": BLEU()}, [texts["corpus.ref"]], test_type="bs", n_samples=samples)
    return [{"score": r.score, "mean": r.mean, "ci": r.ci, "p": r.p_value} for r in test()[1]["BLEU"]]


def tokens(lines):
    thirteen, intl = BLEU(tokenize="13a"), BLEU(tokenize="intl")
    moses = {language: MosesTokenizer(language) for language in ("en", "de")}
    rows = []
    for line in lines:
        row = {"line": line, "13a": thirteen.tokenizer(line.rstrip()).split(),
               "intl": intl.tokenizer(line.rstrip()).split(), "lower": line.lower()}
        # sacremoses knows Chinese, Japanese and Korean letters only in those languages, the Perl original in all.
        for language, tokenizer in moses.items() if not any("\u2e80" <= c <= "\ud7ff" for c in line) else ():
            row["moses-" + language] = tokenizer.tokenize(line, escape=False)
        rows.append(row)
    return rows


def write():
    HERE.mkdir(parents=True, exist_ok=True)
    fuzz = list(fuzz_lines(150))
    texts = {"edges.ref": [ref for ref, _ in EDGES] + fuzz, "edges.hyp": [hyp for _, hyp in EDGES] + fuzz[1:] + fuzz[:1],
             "edges.ref2": [hyp.lower() for _, hyp in EDGES] + [line.replace(" ", "") for line in fuzz]}
    texts["corpus.ref"], texts["corpus.a"], texts["corpus.b"] = corpus(300)
    texts["poor.ref"] = ["the quick brown fox jumps", "over the lazy dog today"]
    texts["poor.hyp"] = ["fox brown the quick jumps", "dog over lazy the"]
    texts["wrong.hyp"] = ["nothing matches here at all", "nor here"]
    texts["empty.hyp"] = ["", ""]
    texts["short.ref"] = ["yes", "no no", "well"]
    texts["short.hyp"] = ["yes", "no no", "no"]
    for name, lines in texts.items():
        write_lines(name, lines)
    golden = {"bleu": bleu_cases(texts), "bootstrap": {"samples": 20000, "systems": bootstrap(texts, 20000)}}
    (HERE / "bleu.json").write_text(json.dumps(golden, indent=0) + "\n")
    lines = [line for pair in EDGES for line in pair] + fuzz
    write_lines("tokens.jsonl", [json.dumps(row, ensure_ascii=False) for row in tokens(lines)])


def compare_moses(files, folder):
    """The share of lines of real text with the same words."""
    for path in files:
        name = path.name.removesuffix(".gz")
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = file.read().removesuffix("\n").split("\n")
        tokenizer = MosesTokenizer(name[-2:])
        theirs = [" ".join(tokenizer.tokenize(line, escape=False)) for line in lines]
        ours = (folder / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        assert len(ours) == len(theirs), (len(ours), len(theirs))
        different = [(a, b) for a, b in zip(theirs, ours) if a != b]
        print(f"{name}: {100 - 100 * len(different) / len(lines):.3f} % of {len(lines)} lines equal")
        for a, b in different[:12]:
            print(f"  sacremoses: {a}\n  multihead:  {b}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moses", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--ours", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.moses:
        compare_moses(arguments.moses, arguments.ours)
    else:
        write()
