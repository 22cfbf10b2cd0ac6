"""Writes multihead/text/character_classes.cpp: which characters Hugging Face's normalizers and pre-tokenizers take for
what. Their tables are those of Unicode 8 (BERT) and later versions, so each character is tried.

  scripts/python tokenizers && .venv/bin/python tests/oracles/character_classes.py && scripts/format --write
"""

import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TARGET = pathlib.Path(__file__).resolve().parents[2] / "multihead" / "text" / "character_classes.cpp"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def bert(**settings):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **settings}).normalize_str


def is_alone(pre_tokenizer, character):
    return len(pre_tokenizer.pre_tokenize_str("a" + character + "b")) == 3


def unassigned():
    return [c for c in CHARACTERS if unicodedata.category(c) == "Cn"]


def newer(expression):
    """What matches and is newer than Python's Unicode, and so perhaps than utf8proc's."""
    split = pre_tokenizers.Split(Regex(expression), "removed")
    return [c for c in unassigned() if len(split.pre_tokenize_str("\1" + c)) == 1 and
            split.pre_tokenize_str("\1" + c)[0][1] == (0, 1)]


def classes():
    clean, unmarked = bert(clean_text=True), bert(strip_accents=True)
    strip, punctuation = normalizers.StripAccents().normalize_str, pre_tokenizers.BertPreTokenizer()
    return {
        "is_bert_control": [c for c in CHARACTERS if clean(c) == ""],
        "is_bert_mark": [c for c in CHARACTERS if unmarked("a" + c) == "a"],
        "is_combining_mark": [c for c in CHARACTERS if strip(c) == ""],
        "is_split_punctuation": [c for c in CHARACTERS if is_alone(punctuation, c)],
        "is_newer_letter": newer(r"\p{L}"),
        "is_newer_upper_case": newer(r"[\p{Lu}\p{Lt}]"),
        "is_newer_lower_case": newer(r"\p{Ll}"),
        "is_newer_number": newer(r"\p{N}"),
        "is_newer_mark": newer(r"\p{M}"),
        "is_newer_numeric": [c for c in unassigned() if is_alone(pre_tokenizers.Digits(individual_digits=True), c)],
        "is_bert_ideograph": [c for c in CHARACTERS if bert(handle_chinese_chars=True)(c) != c],
    }


def ranges(characters):
    found = []
    for c in sorted(map(ord, characters)):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def main():
    out = [
        "// Made by tests/oracles/character_classes.py; not written by hand.",
        '#include "multihead/text/character_classes.h"', "", "#include <algorithm>", "#include <span>", "",
        "namespace mh {", "namespace {", "",
        "struct CharacterRange32 {\n  char32_t first;\n  char32_t last;\n};", "",
        "bool is_among(std::span<const CharacterRange32> ranges, char32_t c) {",
        "  const auto next = std::upper_bound(ranges.begin(), ranges.end(), c,",
        "                                     [](char32_t x, const CharacterRange32& r) { return x < r.first; });",
        "  return next != ranges.begin() && c <= (next - 1)->last;", "}", "", "}  // namespace", ""]
    for name, characters in classes().items():
        table = ", ".join(f"{{{first:#x}, {last:#x}}}" for first, last in ranges(characters))
        out += [f"bool {name}(char32_t c) {{", f"  static constexpr CharacterRange32 kRanges[] = {{{table}}};",
                "  return is_among(kRanges, c);", "}", ""]
    out += ["}  // namespace mh", ""]
    TARGET.write_text("\n".join(out))
    print(f"tokenizers {tokenizers.__version__}: {TARGET.name}")


if __name__ == "__main__":
    main()
