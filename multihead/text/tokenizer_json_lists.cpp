#include "multihead/text/tokenizer_json_lists.h"

#include <array>

#include "multihead/io/strict_json.h"
#include "multihead/text/bpe.h"
#include "multihead/text/json_node.h"

namespace mh {
namespace {

/// Without its lists a tokenizer.json is short, and nests some 8 deep; the longest text is a character map.
constexpr JsonLimits kLimits = {.deepest = 24, .memory = size_t{8} << 20, .token = size_t{2} << 20};

std::pair<std::string_view, std::string_view> read_merge(const JsonNode& node) {
  if (node.value().is_array()) {
    if (node.size() != 2) node.fail("expected two tokens");
    return {node.item(0).text(), node.item(1).text()};
  }
  const std::string_view merge = node.text();
  const size_t space = merge.find(' ');
  if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
    node.fail(fmt::format("expected two tokens and a space between, got {}", in_quotes(merge)));
  }
  return {merge.substr(0, space), merge.substr(space + 1)};
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

constexpr std::array kPaths = {"added_tokens", "model.vocab", "model.merges"};
enum List : size_t { kAddedTokens, kVocabulary, kMerges };

/// Reads the entry `index` of a list and hands it to `lists`.
void read_entry(const JsonItem& item, size_t index, std::string_view file, TokenizerLists& lists) {
  const char* const path = kPaths[item.list];
  if (item.key != nullptr) {
    const JsonNode list(item.value, path, file);
    if (item.list != kVocabulary) list.fail("expected an array");
    const bool number = item.value.is_number_unsigned() && item.value.get<uint64_t>() <= INT32_MAX;
    if (!number) list.fail(fmt::format("the id of {} is not a whole number from 0 on", in_quotes(*item.key)));
    return naming(file, [&] { lists.token(*item.key, item.value.get<int32_t>()); });
  }
  const JsonNode entry(item.value, fmt::format("{}[{}]", path, index), file);
  if (item.list == kAddedTokens) {
    AddedToken token = read_added_token(entry);
    naming(file, [&] { lists.added_token(std::move(token)); });
  } else if (item.list == kVocabulary) {
    if (!item.value.is_array() || entry.size() != 2) entry.fail("expected a piece and its score");
    const std::string& text = entry.item(0).text();
    const JsonNode score = entry.item(1);
    if (!score.value().is_number()) score.fail("expected a number");
    naming(file, [&] { lists.piece(text, score.value().get<double>(), static_cast<int32_t>(index)); });
  } else {
    const auto merge = read_merge(entry);
    naming(file, [&] { lists.merge(merge.first, merge.second); });
  }
}

}  // namespace

nlohmann::json read_tokenizer_document(std::string_view json, std::string_view file, TokenizerLists& lists) {
  std::array<size_t, kPaths.size()> counts{};
  const JsonLists long_lists = {.paths = {kPaths.begin(), kPaths.end()}, .take = [&](const JsonItem& item) {
                                  read_entry(item, counts[item.list]++, file, lists);
                                }};
  return parse_json_strictly(json, file, kLimits, long_lists);
}

void KeptLists::token(std::string_view text, int32_t id) {
  parts_.model.vocabulary.emplace_back(text, id);
}
void KeptLists::piece(std::string_view text, double score, int32_t id) {
  parts_.model.vocabulary.emplace_back(text, id);
  parts_.model.pieces.push_back({.text = std::string(text), .score = score, .id = id});
}
void KeptLists::merge(std::string_view left, std::string_view right) {
  parts_.model.merges.emplace_back(left, right);
}
void KeptLists::added_token(AddedToken token) {
  parts_.added_tokens.push_back(std::move(token));
}

void CheckedLists::token(std::string_view text, int32_t id) {
  if (again_) return;
  ids_.add(text, id);
  token_after_merge_ = token_after_merge_ || merges_ > 0;
}
void CheckedLists::piece(std::string_view text, double, int32_t id) {
  token(text, id);
  pieces_ += again_ ? 0 : 1;
}
void CheckedLists::merge(std::string_view left, std::string_view right) {
  const size_t rank = merges_++;
  if (!problem_.empty()) return;
  try {
    merge_ids(left, right, prefix_, rank, [&](std::string_view token) { return ids_.find(token); });
  } catch (const FormatError& error) {
    problem_ = error.what();
  }
}
void CheckedLists::added_token(AddedToken token) {
  if (!again_) ids_.add_added(token.content, token.id);
}

bool CheckedLists::finish(const TokenModel& model) {
  ids_.check();
  if (model.kind != TokenModel::Kind::kBpe || merges_ == 0) return false;
  const bool too_early = token_after_merge_ || model.continuing_subword_prefix != prefix_;
  if (!again_ && too_early) {
    again_ = true;
    prefix_ = model.continuing_subword_prefix;
    merges_ = 0;
    problem_.clear();
    return true;
  }
  if (!problem_.empty()) throw FormatError(problem_);
  return false;
}

}  // namespace mh
