#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "multihead/text/tokenizer_json.h"
#include "multihead/text/tokenizer_json_lists.h"
#include "multihead/text/tokenizer_json_steps.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

/// A file up to this size takes less than 64 MiB when its lists are kept at once.
constexpr size_t kSmallFile = 1 << 20;

void read_unigram(const JsonNode& node, size_t pieces, TokenModel& model) {
  node.at("vocab").size();
  model.byte_fallback = node.flag("byte_fallback", false);
  const auto unknown = node.find("unk_id");
  if (!unknown) return;
  const auto id = static_cast<size_t>(unknown->number());
  if (id >= pieces) unknown->fail(fmt::format("expected an id below {}, got {}", pieces, id));
  if (id < model.pieces.size()) model.unknown_token = model.pieces[id].text;
}

void read_bpe(const JsonNode& node, TokenModel& model) {
  if (const auto dropout = node.find("dropout")) {
    if (!dropout->value().is_number() || dropout->value().get<double>() != 0) {
      dropout->fail("merges left out at random are not supported; set it to null");
    }
  }
  node.at("merges").size();
  model.continuing_subword_prefix = node.text("continuing_subword_prefix", "");
  model.end_of_word_suffix = node.text("end_of_word_suffix", "");
  model.fuse_unknown = node.flag("fuse_unk", false);
  model.byte_fallback = node.flag("byte_fallback", false);
  model.ignore_merges = node.flag("ignore_merges", false);
}

/// Reads the model but for its lists; `pieces`: how many scored ones there are.
void read_model(const JsonNode& node, size_t pieces, TokenModel& model) {
  const auto type = node.find("type");
  using Kind = TokenModel::Kind;
  if (type) {
    constexpr std::array kNames = {"WordLevel", "BPE", "WordPiece", "Unigram"};
    model.kind = type->choice<Kind>(kNames);
  } else {  // old files name none
    model.kind = node.find("merges")                     ? Kind::kBpe
                 : node.at("vocab").value().is_array()   ? Kind::kUnigram
                 : node.find("max_input_chars_per_word") ? Kind::kWordPiece
                                                         : Kind::kWordLevel;
  }
  if (model.kind == Kind::kUnigram) return read_unigram(node, pieces, model);
  const JsonNode vocabulary = node.at("vocab");
  if (!vocabulary.value().is_object()) vocabulary.fail("expected an object of tokens and their ids");
  if (const auto unknown = node.find("unk_token")) model.unknown_token = unknown->text();
  if (model.kind == Kind::kBpe) read_bpe(node, model);
  if (model.kind == Kind::kWordPiece) {
    if (!model.unknown_token) model.unknown_token = "[UNK]";
    model.continuing_subword_prefix = node.text("continuing_subword_prefix", "##");
    if (const auto most = node.find("max_input_chars_per_word")) {
      model.max_input_chars_per_word = most->number();
    }
  }
}

/// Reads everything but the lists.
void read_rest(const JsonNode& root, size_t pieces, TokenizerParts& parts) {
  read_model(root.at("model"), pieces, parts.model);
  if (const auto node = root.find("added_tokens")) node->size();
  if (const auto node = root.find("truncation")) {
    constexpr std::array kDirections = {"Right", "Left"};
    const auto direction = node->find("direction");
    parts.truncation = {.max_length = node->at("max_length").number(),
                        .keeps_the_end = direction && direction->choice<int>(kDirections) == 1};
  }
  if (const auto node = root.find("normalizer")) read_steps(*node, parts.normalizers);
  if (const auto node = root.find("pre_tokenizer")) read_steps(*node, parts.pre_tokenizers);
  if (const auto node = root.find("post_processor")) read_steps(*node, parts.post_processors);
  if (const auto node = root.find("decoder")) {
    read_steps(*node, parts.decoders);
    if (parts.decoders.empty()) parts.decoders.emplace_back();  // an empty sequence joins without spaces
  }
}

/// Throws what reading and building would, in little memory: no list is kept.
void check_tokenizer_json(std::string_view json, std::string_view file) {
  CheckedLists lists;
  TokenizerParts rest;
  do {
    const nlohmann::json document = read_tokenizer_document(json, file, lists);
    rest = {};
    read_rest(JsonNode(document, "", file), lists.pieces(), rest);
  } while (naming(file, [&] { return lists.finish(rest.model); }));
  naming(file, [&] { check_steps(rest, lists.ids().size()); });
}

}  // namespace

TokenizerParts read_tokenizer_json(std::string_view json, std::string_view file) {
  if (json.size() > kSmallFile) check_tokenizer_json(json, file);
  TokenizerParts parts;
  TokenModel& model = parts.model;
  KeptLists lists(parts);
  const nlohmann::json document = read_tokenizer_document(json, file, lists);
  read_rest(JsonNode(document, "", file), model.pieces.size(), parts);
  if (model.kind != TokenModel::Kind::kBpe) model.merges.clear();
  std::sort(model.vocabulary.begin(), model.vocabulary.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return parts;
}

}  // namespace mh
