#include "multihead/folders/generation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "multihead/base/error.h"
#include "multihead/generate/generate.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"
#include "multihead/models/encoder_decoder_config.h"
#include "multihead/models/model.h"

namespace mh {
namespace {

using nlohmann::json;

constexpr const char *kAlignmentHeads = "alignment_heads", *kAlignmentQuery = "alignment_query";
constexpr int32_t kAnyId = std::numeric_limits<int32_t>::max();

/// The document, with words for what is wrong with it.
class GenerationFile {
 public:
  GenerationFile(std::string_view text, std::string_view name)
      : document_(parse_json_strictly(text, name)), name_(name) {
    if (!document_.is_object())
      throw FormatError(fmt::format("{}: expected an object, got {}", name, json_excerpt(document_)));
  }

  /// Null: the key is missing or null.
  const json* find(const char* key) const {
    const auto found = document_.find(key);
    return found == document_.end() || found->is_null() ? nullptr : &*found;
  }

  [[noreturn]] void refuse(const char* key, std::string_view expected, const json& got) const {
    throw FormatError(fmt::format("{}: {}: expected {}, got {}", name_, key, expected, json_excerpt(got)));
  }

  const json* list(const char* key) const {
    const json* found = find(key);
    if (found != nullptr && !found->is_array()) refuse(key, "a list", *found);
    return found;
  }

  std::optional<int32_t> count(const char* key, int32_t low,
                               int32_t high = std::numeric_limits<int32_t>::max()) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    const bool fits =
        found->is_number_integer() && found->get<int64_t>() >= low && found->get<int64_t>() <= high;
    if (!fits) refuse(key, numbers_within(low, high), *found);
    return found->get<int32_t>();
  }

  std::optional<double> number(const char* key, double low, double high) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number() || !(found->get<double>() >= low && found->get<double>() <= high))
      refuse(key, numbers_within(low, high), *found);
    return found->get<double>();
  }

  int32_t token(const char* key, const json& value, int32_t vocabulary) const {
    const bool whole = value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
    if (!whole || value.get<uint64_t>() >= static_cast<uint64_t>(vocabulary))
      refuse(key, fmt::format("token ids from 0 to {}", vocabulary - 1), value);
    return value.get<int32_t>();
  }

  /// One token, or a list of tokens.
  std::vector<int32_t> tokens(const char* key, int32_t vocabulary) const {
    std::vector<int32_t> ids;
    const json* found = find(key);
    if (found == nullptr) return ids;
    if (!found->is_array()) return {token(key, *found, vocabulary)};
    for (const json& one : *found) ids.push_back(token(key, one, vocabulary));
    return ids;
  }

 private:
  json document_;
  std::string_view name_;
};

std::vector<int32_t> suppressed_tokens(const GenerationFile& file, int32_t vocabulary) {
  std::set<int32_t> ids;
  constexpr const char* kWords = "bad_words_ids";
  if (const json* words = file.list(kWords)) {
    for (const json& word : *words) {
      if (!word.is_array()) file.refuse(kWords, "lists of token ids", word);
      if (word.size() == 1) ids.insert(file.token(kWords, word[0], vocabulary));
    }
  }
  if (file.list("suppress_tokens") != nullptr) {
    for (const int32_t id : file.tokens("suppress_tokens", vocabulary)) ids.insert(id);
  }
  return {ids.begin(), ids.end()};
}

// A model that may say nothing but its end would translate every sentence to an empty line.
void refuse_to_suppress_all(const std::vector<int32_t>& suppressed, const ModelFacts& facts,
                            std::string_view name) {
  std::set<int32_t> never(suppressed.begin(), suppressed.end());
  for (const int32_t id : {facts.eos_id, facts.pad_id}) {
    if (id >= 0) never.insert(id);
  }
  if (never.size() < static_cast<size_t>(facts.vocabulary)) return;
  throw FormatError(fmt::format(
      "{}: bad_words_ids and suppress_tokens forbid every word of the vocabulary; shorten them", name));
}

std::vector<int32_t> end_tokens(const GenerationFile& file, int32_t vocabulary) {
  constexpr const char* kKey = "eos_token_id";
  const json* found = file.find(kKey);
  if (found == nullptr || *found == -1) return {};
  std::vector<int32_t> ids = file.tokens(kKey, kAnyId);
  std::erase_if(ids, [&](int32_t id) { return id >= vocabulary; });
  return ids;
}

std::optional<int32_t> forced_first(const GenerationFile& file, int32_t vocabulary) {
  constexpr const char* kKey = "forced_bos_token_id";
  const json* found = file.find(kKey);
  if (found == nullptr) {
    // The older key of BART's config.json.
    const json* forces = file.find("force_bos_token_to_be_generated");
    found = forces != nullptr && *forces == true ? file.find("bos_token_id") : nullptr;
  }
  return found == nullptr ? std::nullopt : std::optional(file.token(kKey, *found, vocabulary));
}

std::optional<int32_t> forced_last(const GenerationFile& file, int32_t vocabulary) {
  const std::vector<int32_t> ids = file.tokens("forced_eos_token_id", vocabulary);
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

/// A length behind the start token, said by one key, or by another that counts the start token.
std::optional<int32_t> length(const GenerationFile& file, const char* key, const char* with_start,
                              int32_t low) {
  const auto counted = file.count(with_start, 0);
  if (const auto behind = file.count(key, low)) return behind;
  return counted ? std::optional(std::max(low, *counted - 1)) : std::nullopt;
}

std::optional<AligningHeads> alignment_heads(const GenerationFile& file) {
  constexpr const char* kForm = "a list of heads, each [layer, head]";
  const json* list = file.list(kAlignmentHeads);
  if (list == nullptr) return std::nullopt;
  AligningHeads found;
  for (const json& one : *list) {
    const auto is_number = [](const json& number) {
      return number.is_number_integer() && number.get<int64_t>() >= 0 && number.get<int64_t>() <= kAnyId;
    };
    if (!one.is_array() || one.size() != 2 || !is_number(one[0]) || !is_number(one[1]))
      file.refuse(kAlignmentHeads, kForm, one);
    found.heads.push_back({one[0].get<int32_t>(), one[1].get<int32_t>()});
  }
  if (found.heads.empty()) file.refuse(kAlignmentHeads, kForm, *list);
  if (const json* query = file.find(kAlignmentQuery)) {
    const auto named =
        query->is_string() ? value_named(query->get<std::string>(), kAlignedQueryNames) : std::nullopt;
    if (!named) file.refuse(kAlignmentQuery, R"("predicts" or "reads")", *query);
    found.query = *named;
  }
  return found;
}

EarlyStopping early_stopping(const GenerationFile& file) {
  constexpr const char* kKey = "early_stopping";
  const json* found = file.find(kKey);
  if (found == nullptr || *found == false) return EarlyStopping::kFalse;
  if (*found == true) return EarlyStopping::kTrue;
  if (*found == "never") return EarlyStopping::kNever;
  file.refuse(kKey, R"(true, false or "never")", *found);
}

void append(std::vector<int32_t>& tokens, const std::vector<int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

template <class T>
void fill(std::optional<T>& option, const std::optional<T>& usual) {
  if (!option) option = usual;
}
void fill(LengthPenalty& penalty, const std::optional<double>& usual) {
  if (penalty.form == LengthPenalty::Form::kDivide) fill(penalty.alpha, usual);
}

}  // namespace

GenerationConfig read_generation_config(std::string_view json, std::string_view name,
                                        const ModelFacts& facts) {
  const GenerationFile file(json, name);
  GenerationConfig config{
      .suppressed = suppressed_tokens(file, facts.vocabulary),
      .end_tokens = end_tokens(file, facts.vocabulary),
      .no_repeat_ngram = file.count("no_repeat_ngram_size", 0),
      .length_penalty = file.number("length_penalty", LengthPenalty::kLeast, LengthPenalty::kMost),
      .early_stopping = early_stopping(file)};
  refuse_to_suppress_all(config.suppressed, facts, name);
  if (facts.source_vocabulary > 0) {
    config.beam_size = file.count("num_beams", 1, kLargestBeam);
    config.min_length = length(file, "min_new_tokens", "min_length", 0);
    config.max_length = length(file, "max_new_tokens", "max_length", 1);
    config.forced_first = forced_first(file, facts.vocabulary);
    config.forced_last = forced_last(file, facts.vocabulary);
    config.alignment = alignment_heads(file);
  }
  return config;
}

void GenerationConfig::complete(SearchOptions& options) const {
  append(options.suppressed, suppressed);
  append(options.end_tokens, end_tokens);
  fill(options.forced_first, forced_first);
  fill(options.forced_last, forced_last);
  fill(options.no_repeat_ngram, no_repeat_ngram);
  fill(options.beam_size, beam_size);
  fill(options.early_stopping, std::optional(early_stopping));
  fill(options.length_penalty, length_penalty);
  // A length that the call asks for goes before the other one of the file.
  if (!options.max_length && max_length) options.max_length = std::max(*max_length, options.shortest());
  if (!options.min_length && min_length) options.min_length = std::min(*min_length, options.longest());
}

void GenerationConfig::complete(GenerateOptions& options) const {
  append(options.filters.suppressed, suppressed);
  append(options.end_tokens, end_tokens);
  fill(options.filters.no_repeat_ngram, no_repeat_ngram);
  fill(options.early_stopping, std::optional(early_stopping));
  fill(options.length_penalty, length_penalty);
}

namespace {

void put_alignment_heads(nlohmann::ordered_json& document, const AligningHeads& heads) {
  auto list = nlohmann::ordered_json::array();
  for (const AligningHead& one : heads.heads) list.push_back({one.layer, one.head});
  document[kAlignmentHeads] = list;
  if (heads.query != AlignedQuery::kPredicts)
    document[kAlignmentQuery] = name_of(heads.query, kAlignedQueryNames);
}

}  // namespace

std::string with_alignment_heads(std::string_view json, std::string_view name, const AligningHeads& heads) {
  auto document = nlohmann::ordered_json::parse(without_alignment_heads(json, name));
  put_alignment_heads(document, heads);
  return document.dump(2) + "\n";
}

std::string without_alignment_heads(std::string_view json, std::string_view name) {
  const GenerationFile is_an_object(json, name);
  auto document = nlohmann::ordered_json::parse(json);
  document.erase(kAlignmentHeads);
  document.erase(kAlignmentQuery);
  return document.dump(2) + "\n";
}

std::string write_generation_config(const EncoderDecoderConfig& config, const GenerationConfig& search) {
  nlohmann::ordered_json document;
  document["decoder_start_token_id"] = config.decoder_start_id;
  document["eos_token_id"] = config.eos_id;
  document["forced_eos_token_id"] = search.forced_last.value_or(config.eos_id);
  document["pad_token_id"] = config.pad_id;
  std::set<int32_t> never(search.suppressed.begin(), search.suppressed.end());
  if (config.pad_id != config.eos_id) never.insert(config.pad_id);
  for (const int32_t token : never) document["bad_words_ids"].push_back({token});
  document["max_length"] = search.max_length ? *search.max_length + 1 : config.max_positions;
  const int32_t beam = search.beam_size.value_or(SearchOptions::kUsualBeam);
  document["num_beams"] = beam;
  if (beam > 1) {
    document["early_stopping"] = search.early_stopping == EarlyStopping::kTrue;
    if (search.early_stopping == EarlyStopping::kNever) document["early_stopping"] = "never";
  }
  if (search.forced_first) document["forced_bos_token_id"] = *search.forced_first;
  if (search.min_length) document["min_length"] = *search.min_length + 1;
  if (search.length_penalty) document["length_penalty"] = *search.length_penalty;
  if (search.no_repeat_ngram) document["no_repeat_ngram_size"] = *search.no_repeat_ngram;
  if (search.alignment) put_alignment_heads(document, *search.alignment);
  return document.dump(2) + "\n";
}

}  // namespace mh
