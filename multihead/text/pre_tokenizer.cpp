#include "multihead/text/pre_tokenizer.h"

#include <algorithm>

#include "multihead/text/byte_level.h"
#include "multihead/text/character_classes.h"
#include "multihead/text/word_rules.h"

namespace mh {
namespace {

enum class Class { space, word, other };

/// Runs of characters with the same class; parts that match are those not whitespace.
template <class ClassOf>
std::vector<Part> parts_by_class(std::string_view text, ClassOf&& class_of) {
  std::vector<Part> parts;
  Class last = Class::space;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const Class now = class_of(next_character(text, at));
    if (parts.empty() || now != last) parts.push_back({begin, at, now != Class::space});
    parts.back().end = at;
    last = now;
  }
  return parts;
}

/// Each character that satisfies `test` is a match of its own; what lies between is not.
template <class Test>
std::vector<Part> parts_by_character(std::string_view text, Test&& test) {
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool matches = test(next_character(text, at));
    if (matches || parts.empty() || parts.back().matches) {
      parts.push_back({begin, at, matches});
    } else {
      parts.back().end = at;
    }
  }
  return parts;
}

/// What becomes of the parts that match (the delimiters).
std::vector<Part> arrange(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> result;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const bool after_match = i > 0 && parts[i - 1].matches;
    const bool after_other = i > 0 && !parts[i - 1].matches;
    switch (behavior) {
      case SplitBehavior::kRemoved:
        if (!part.matches) result.push_back(part);
        break;
      case SplitBehavior::kIsolated:
        result.push_back(part);
        break;
      case SplitBehavior::kContiguous:
        if (i > 0 && part.matches == parts[i - 1].matches) {
          result.back().end = part.end;
        } else {
          result.push_back(part);
        }
        break;
      case SplitBehavior::kMergedWithPrevious:
        if (part.matches && after_other) {
          result.back().end = part.end;
        } else {
          result.push_back(part);
        }
        break;
      case SplitBehavior::kMergedWithNext:
        if (!part.matches && after_match) {
          result.back().end = part.end;
        } else {
          result.push_back(part);
        }
        break;
    }
  }
  return result;
}

/// Runs without whitespace and punctuation, and each punctuation character alone; whitespace does not match.
std::vector<Part> parts_of_bert(std::string_view text) {
  std::vector<Part> parts;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text, at);
    const bool space = is_whitespace(c);
    const bool ends_word = space || is_split_punctuation(c);
    if (in_word && !ends_word) {
      parts.back().end = at;
    } else {
      parts.push_back({begin, at, !space});
    }
    in_word = !ends_word;
  }
  return parts;
}

std::vector<Part> words(const PreTokenizerStep& step, std::string_view text) {
  using Kind = PreTokenizerStep::Kind;
  const auto kept = [](std::vector<Part> parts) {
    std::erase_if(parts, [](const Part& part) { return !part.matches; });
    return parts;
  };
  switch (step.kind) {
    case Kind::kWhitespace:  // \w+|[^\w\s]+
      return kept(parts_by_class(text, [](char32_t c) {
        return is_whitespace(c) ? Class::space : is_word(c) ? Class::word : Class::other;
      }));
    case Kind::kWhitespaceSplit:
      return kept(
          parts_by_class(text, [](char32_t c) { return is_whitespace(c) ? Class::space : Class::other; }));
    case Kind::kPunctuation:
      return arrange(parts_by_character(text, is_split_punctuation), step.behavior);
    case Kind::kBert:  // whitespace removed, punctuation alone
      return kept(parts_of_bert(text));
    case Kind::kDigits:
      return arrange(parts_by_character(text, [](char32_t c) { return is_number(c) || is_newer_numeric(c); }),
                     step.individual_digits ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
    case Kind::kSplit: {
      auto parts = parts_by_pattern(text, step.pattern);
      if (step.invert) {
        for (Part& part : parts) part.matches = !part.matches;
      }
      return arrange(parts, step.behavior);
    }
    case Kind::kMetaspace:
    case Kind::kByteLevel:
      break;  // these rewrite the text as well: below
  }
  return {};
}

void split_words(const PreTokenizerStep& step, Pieces& pieces) {
  std::vector<Piece> result;
  const std::string_view text = pieces.text.text;
  for (const Piece& piece : pieces.pieces) {
    if (piece.token >= 0) {
      result.push_back(piece);
      continue;
    }
    for (const Part& part : words(step, text.substr(piece.begin, piece.end - piece.begin))) {
      if (part.begin < part.end) result.push_back({piece.begin + part.begin, piece.begin + part.end});
    }
  }
  pieces.pieces = std::move(result);
}

/// Copies what is settled and hands each word to `rewrite`, which appends to the new text and its pieces.
template <class Rewrite>
void rewrite_words(Pieces& pieces, Rewrite&& rewrite) {
  Pieces result;
  result.text.tracked = pieces.text.tracked;
  result.text.text.reserve(pieces.text.text.size() * 2);
  for (const Piece& piece : pieces.pieces) {
    if (piece.token >= 0) {
      const size_t begin = result.text.text.size();
      result.text.append(pieces.text, piece.begin, piece.end);
      result.pieces.push_back({begin, result.text.text.size(), piece.token});
    } else if (piece.begin < piece.end) {
      rewrite(piece, result);
    }
  }
  pieces = std::move(result);
}

void apply_metaspace(const PreTokenizerStep& step, Pieces& pieces) {
  const std::string& mark = step.replacement;
  const AlignedText& old = pieces.text;
  rewrite_words(pieces, [&](const Piece& piece, Pieces& out) {
    const std::string_view word = std::string_view(old.text).substr(piece.begin, piece.end - piece.begin);
    const bool has_mark = word[0] == ' ' || word.starts_with(mark);
    const bool wanted = step.prepend_scheme == PrependScheme::kAlways ||
                        (step.prepend_scheme == PrependScheme::kFirst && old.from(piece.begin).first == 0);
    out.pieces.push_back({out.text.text.size(), 0});
    if (wanted && !has_mark) out.text.append(mark, old.from(piece.begin));
    const size_t first = out.pieces.back().begin;
    for (size_t at = piece.begin; at < piece.end;) {
      const size_t length = utf8_length(old.text[at]);
      const bool space = old.text[at] == ' ';
      const bool is_mark_here = space || std::string_view(old.text).substr(at, length) == mark;
      if (is_mark_here && step.split && out.text.text.size() > first) {  // each mark starts a word
        out.pieces.back().end = out.text.text.size();
        out.pieces.push_back({out.text.text.size(), 0});
      }
      if (space) {
        out.text.append(mark, old.from(at));
      } else {
        out.text.append(old, at, at + length);
      }
      at += length;
    }
    out.pieces.back().end = out.text.text.size();
  });
}

void apply_byte_level(const PreTokenizerStep& step, Pieces& pieces) {
  const auto& alphabet = byte_level_alphabet();
  const AlignedText& old = pieces.text;
  rewrite_words(pieces, [&](const Piece& piece, Pieces& out) {
    AlignedText word;
    word.tracked = old.tracked;
    if (step.add_prefix_space && old.text[piece.begin] != ' ') word.append(" ", old.from(piece.begin));
    word.append(old, piece.begin, piece.end);
    const auto parts =
        step.use_regex ? words_by_rule(word.text, WordRule::kGpt2) : std::vector<Part>{{0, word.text.size()}};
    for (const Part& part : parts) {
      const size_t begin = out.text.text.size();
      for (size_t at = part.begin; at < part.end; ++at) {
        out.text.append(alphabet[static_cast<unsigned char>(word.text[at])], word.from(at));
      }
      out.pieces.push_back({begin, out.text.text.size()});
    }
  });
}

}  // namespace

void pre_tokenize(const std::vector<PreTokenizerStep>& steps, Pieces& pieces) {
  for (const PreTokenizerStep& step : steps) {
    if (step.kind == PreTokenizerStep::Kind::kMetaspace) {
      apply_metaspace(step, pieces);
    } else if (step.kind == PreTokenizerStep::Kind::kByteLevel) {
      apply_byte_level(step, pieces);
    } else {
      split_words(step, pieces);
    }
  }
}

}  // namespace mh
