#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "multihead/io/strict_json.h"
#include "multihead/text/tokenizer_json.h"
#include "multihead/text/tokenizer_json_steps.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

constexpr int kDeepest = 24;  // a tokenizer.json nests some 8 deep

std::pair<std::string, std::string> read_merge(const JsonNode& node) {
  if (node.value().is_array()) {
    if (node.size() != 2) node.fail("expected two tokens");
    return {node.item(0).text(), node.item(1).text()};
  }
  const std::string& merge = node.text();
  const size_t space = merge.find(' ');
  if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
    node.fail(fmt::format("expected two tokens and a space between, got {}", in_quotes(merge)));
  }
  return {merge.substr(0, space), merge.substr(space + 1)};
}

void read_unigram(const JsonNode& node, TokenModel& model) {
  const JsonNode vocabulary = node.at("vocab");
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const JsonNode entry = vocabulary.item(i);
    if (entry.size() != 2) entry.fail("expected a piece and its score");
    const JsonNode score = entry.item(1);
    if (!score.value().is_number()) score.fail("expected a number");
    const auto id = static_cast<int32_t>(i);
    model.vocabulary.emplace_back(entry.item(0).text(), id);
    model.pieces.push_back({.text = entry.item(0).text(), .score = score.value().get<double>(), .id = id});
  }
  model.byte_fallback = node.flag("byte_fallback", false);
  const auto unknown = node.find("unk_id");
  if (!unknown) return;
  const auto id = static_cast<size_t>(unknown->number());
  if (id >= model.pieces.size()) {
    unknown->fail(fmt::format("expected an id below {}, got {}", model.pieces.size(), id));
  }
  model.unknown_token = model.pieces[id].text;
}

TokenModel read_model(const JsonNode& node) {
  TokenModel model;
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

  if (model.kind == Kind::kUnigram) {
    read_unigram(node, model);
    return model;
  }
  const JsonNode vocabulary = node.at("vocab");
  if (!vocabulary.value().is_object()) vocabulary.fail("expected an object of tokens and their ids");
  std::vector<std::pair<int32_t, const std::string*>> by_id;
  by_id.reserve(vocabulary.value().size());
  for (const auto& [token, id] : vocabulary.value().get_ref<const nlohmann::json::object_t&>()) {
    const bool number = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!number)
      vocabulary.fail(fmt::format("the id of {} is not a whole number from 0 on", in_quotes(token)));
    by_id.emplace_back(id.get<int32_t>(), &token);
  }
  std::sort(by_id.begin(), by_id.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  model.vocabulary.reserve(by_id.size());
  for (const auto& [id, token] : by_id) model.vocabulary.emplace_back(*token, id);
  if (const auto unknown = node.find("unk_token")) model.unknown_token = unknown->text();
  if (model.kind == Kind::kWordLevel) return model;
  if (model.kind == Kind::kWordPiece) {
    if (!model.unknown_token) model.unknown_token = "[UNK]";
    model.continuing_subword_prefix = node.text("continuing_subword_prefix", "##");
    if (const auto most = node.find("max_input_chars_per_word")) {
      model.max_input_chars_per_word = most->number();
    }
    return model;
  }

  if (const auto dropout = node.find("dropout")) {
    if (!dropout->value().is_number() || dropout->value().get<double>() != 0) {
      dropout->fail("merges left out at random are not supported; set it to null");
    }
  }
  const JsonNode merges = node.at("merges");
  for (size_t i = 0; i < merges.size(); ++i) model.merges.push_back(read_merge(merges.item(i)));
  model.continuing_subword_prefix = node.text("continuing_subword_prefix", "");
  model.end_of_word_suffix = node.text("end_of_word_suffix", "");
  model.fuse_unknown = node.flag("fuse_unk", false);
  model.byte_fallback = node.flag("byte_fallback", false);
  model.ignore_merges = node.flag("ignore_merges", false);
  return model;
}

AddedToken read_added_token(const JsonNode& node) {
  AddedToken token;
  token.id = node.at("id").number();
  token.content = node.at("content").text();
  token.single_word = node.flag("single_word", false);
  token.lstrip = node.flag("lstrip", false);
  token.rstrip = node.flag("rstrip", false);
  token.special = node.flag("special", false);
  token.normalized = node.flag("normalized", !token.special);
  return token;
}

}  // namespace

TokenizerParts read_tokenizer_json(std::string_view json, std::string_view file) {
  const nlohmann::json document = parse_json_strictly(json, file, kDeepest, JsonMemory::kAny);
  const JsonNode root(document, "", file);
  TokenizerParts parts;
  parts.model = read_model(root.at("model"));
  if (const auto node = root.find("added_tokens")) {
    for (const JsonNode& token : node->items()) parts.added_tokens.push_back(read_added_token(token));
  }
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
  return parts;
}

}  // namespace mh
