#include "multihead/text/tokenizer_json_model.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace mh {
namespace {

// Written by hand: an ordered object of nlohmann's looks through all its keys at each insertion.

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump();
}
std::string string_or_null(const std::string& text) {
  return text.empty() ? std::string("null") : json_string(text);
}
const char* flag(bool on) {
  return on ? "true" : "false";
}

void append_member(std::string& out, const char* name, std::string_view value) {
  out.append(",\n    \"").append(name).append("\": ").append(value);
}

/// The items as `write` gives them, one a line, between `open` and `close`.
template <class List, class Write>
void append_list(std::string& out, const char* name, const char* open, const List& list, const char* close,
                 Write&& write) {
  append_member(out, name, open);
  const char* separator = "\n      ";
  for (const auto& item : list) {
    out += separator;
    write(item);
    separator = ",\n      ";
  }
  out.append("\n    ").append(close);
}

void append_vocabulary(std::string& out, const TokenModel& model) {
  append_list(out, "vocab", "{", model.vocabulary, "}", [&](const auto& entry) {
    out.append(json_string(entry.first)).append(": ").append(std::to_string(entry.second));
  });
}

void append_bpe(std::string& out, const TokenModel& model, const std::string& unknown) {
  append_member(out, "dropout", "null");
  append_member(out, "unk_token", unknown);
  append_member(out, "continuing_subword_prefix", string_or_null(model.continuing_subword_prefix));
  append_member(out, "end_of_word_suffix", string_or_null(model.end_of_word_suffix));
  append_member(out, "fuse_unk", flag(model.fuse_unknown));
  append_member(out, "byte_fallback", flag(model.byte_fallback));
  append_member(out, "ignore_merges", flag(model.ignore_merges));
  append_vocabulary(out, model);
  append_list(out, "merges", "[", model.merges, "]", [&](const auto& merge) {
    out.append("[")
        .append(json_string(merge.first))
        .append(", ")
        .append(json_string(merge.second))
        .append("]");
  });
}

void append_unigram(std::string& out, const TokenModel& model) {
  std::string unknown = "null";
  for (const ScoredPiece& piece : model.pieces) {
    if (piece.text == model.unknown_token) unknown = std::to_string(piece.id);
  }
  append_member(out, "unk_id", unknown);
  append_list(out, "vocab", "[", model.pieces, "]", [&](const ScoredPiece& piece) {
    const std::string score = nlohmann::json(piece.score).dump();
    out.append("[").append(json_string(piece.text)).append(", ").append(score).append("]");
  });
  append_member(out, "byte_fallback", flag(model.byte_fallback));
}

}  // namespace

void append_model_json(std::string& out, const TokenModel& model) {
  using Kind = TokenModel::Kind;
  constexpr std::array kNames = {"WordLevel", "BPE", "WordPiece", "Unigram"};
  const std::string unknown = model.unknown_token ? json_string(*model.unknown_token) : "null";
  out.append("{\n    \"type\": \"").append(kNames[static_cast<size_t>(model.kind)]).append("\"");
  if (model.kind == Kind::kBpe) {
    append_bpe(out, model, unknown);
  } else if (model.kind == Kind::kUnigram) {
    append_unigram(out, model);
  } else {
    if (model.kind == Kind::kWordPiece) {
      append_member(out, "unk_token", unknown);
      append_member(out, "continuing_subword_prefix", json_string(model.continuing_subword_prefix));
      append_member(out, "max_input_chars_per_word", std::to_string(model.max_input_chars_per_word));
    }
    append_vocabulary(out, model);
    if (model.kind == Kind::kWordLevel && model.unknown_token) append_member(out, "unk_token", unknown);
  }
  out += "\n  }";
}

}  // namespace mh
