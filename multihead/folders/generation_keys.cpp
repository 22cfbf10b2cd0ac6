#include "multihead/folders/generation_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "multihead/folders/known_keys.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

constexpr std::array<std::string_view, 45> kGenerationNames = {"max_length",
                                                               "max_new_tokens",
                                                               "min_length",
                                                               "min_new_tokens",
                                                               "early_stopping",
                                                               "max_time",
                                                               "stop_strings",
                                                               "do_sample",
                                                               "num_beams",
                                                               "cache_implementation",
                                                               "temperature",
                                                               "top_k",
                                                               "top_p",
                                                               "min_p",
                                                               "top_h",
                                                               "typical_p",
                                                               "epsilon_cutoff",
                                                               "eta_cutoff",
                                                               "repetition_penalty",
                                                               "encoder_repetition_penalty",
                                                               "length_penalty",
                                                               "no_repeat_ngram_size",
                                                               "encoder_no_repeat_ngram_size",
                                                               "bad_words_ids",
                                                               "renormalize_logits",
                                                               "forced_bos_token_id",
                                                               "forced_eos_token_id",
                                                               "remove_invalid_values",
                                                               "exponential_decay_length_penalty",
                                                               "suppress_tokens",
                                                               "begin_suppress_tokens",
                                                               "sequence_bias",
                                                               "guidance_scale",
                                                               "num_return_sequences",
                                                               "output_scores",
                                                               "output_logits",
                                                               "return_dict_in_generate",
                                                               "num_beam_groups",
                                                               "diversity_penalty",
                                                               "penalty_alpha",
                                                               "decoder_start_token_id",
                                                               "num_assistant_tokens",
                                                               "num_assistant_tokens_schedule",
                                                               "assistant_confidence_threshold",
                                                               "target_lookbehind"};

/// Besides what is obeyed (generation_remark).
constexpr KeyRule kGenerationRules[] = {
    {.key = "_from_model_config"},
    {.key = "transformers_version"},
    {.key = "pad_token_id"},
    {.key = "bos_token_id"},  // a prompt's beginning is the tokenizer's
    // How much is computed, and what a call returns.
    {.key = "max_time"},
    {.key = "use_cache"},
    {.key = "cache_implementation"},
    {.key = "cache_config"},
    {.key = "max_cache_len"},
    {.key = "compile_config"},
    {.key = "disable_compile"},
    {.key = "prefill_chunk_size"},
    {.key = "low_memory"},
    {.key = "continuous_batching_config"},
    {.key = "output_*"},
    {.key = "return_dict_in_generate"},
    {.key = "num_return_sequences"},
    {.key = "remove_invalid_values"},
    // Guesses of a smaller model, which the model itself checks.
    {.key = "is_assistant"},
    {.key = "num_assistant_tokens"},
    {.key = "num_assistant_tokens_schedule"},
    {.key = "assistant_*"},
    {.key = "target_lookbehind"},
    {.key = "prompt_lookup_num_tokens"},
    {.key = "max_matching_ngram_size"},
    {.key = "speculation_type"},
    {.key = "use_mtp", .harmless = "[false]"},
    // Values that change no probability.
    {.key = "temperature", .harmless = "[1]"},
    {.key = "top_k", .harmless = "[0]"},
    {.key = "top_p", .harmless = "[1]"},
    {.key = "min_p", .harmless = "[0]"},
    {.key = "typical_p", .harmless = "[1]"},
    {.key = "epsilon_cutoff", .harmless = "[0]"},
    {.key = "eta_cutoff", .harmless = "[0]"},
    {.key = "repetition_penalty", .harmless = "[1]"},
    {.key = "encoder_repetition_penalty", .harmless = "[1]"},
    {.key = "encoder_no_repeat_ngram_size", .harmless = "[0]"},
    {.key = "num_beam_groups", .harmless = "[1]"},
    {.key = "diversity_penalty", .harmless = "[0]"},
    {.key = "penalty_alpha", .harmless = "[0]"},
    {.key = "guidance_scale", .harmless = "[1]"},
    {.key = "token_healing", .harmless = "[false]"},
    {.key = "begin_suppress_tokens", .harmless = "[[]]"},
    {.key = "sequence_bias", .harmless = "[[], {}]"},
};

/// One last token is forced here, too; among several transformers lets the search choose, which is not done.
bool has_several_last(const nlohmann::json& document) {
  const auto last = document.find("forced_eos_token_id");
  return last != document.end() && last->is_array() && last->size() > 1;
}

/// Words of one token are never generated; of several tokens the last one would depend on those before it.
bool has_longer_words(const nlohmann::json& document) {
  const auto words = document.find("bad_words_ids");
  return words != document.end() && words->is_array() &&
         std::any_of(words->begin(), words->end(), [](const auto& word) { return word.size() > 1; });
}

/// Whether transformers would not end at the model's own end token.
bool ends_otherwise(const nlohmann::json& document, const ModelFacts& facts) {
  const auto ends = document.find("eos_token_id");
  if (ends == document.end() || ends->is_null()) return false;
  return ends->is_array() ? std::find(ends->begin(), ends->end(), facts.eos_id) == ends->end()
                          : *ends != facts.eos_id;
}

}  // namespace

std::span<const std::string_view> generation_key_names() {
  return kGenerationNames;
}

std::string generation_remark(std::string_view json, std::string_view name, const ModelFacts& facts) {
  const bool translates = facts.source_vocabulary > 0;
  const auto document = parse_json_strictly(json, name);
  KnownKeys keys{.obeyed = {"eos_token_id", "suppress_tokens", "bad_words_ids", "no_repeat_ngram_size",
                            "length_penalty", "early_stopping"},
                 .rules = {std::begin(kGenerationRules), std::end(kGenerationRules)}};
  const std::string start = fmt::format("[{}]", facts.start_id),
                    end = fmt::format("[{0}, [{0}]]", facts.eos_id);
  if (translates) {
    keys.add(
        {.obeyed = {"forced_bos_token_id", "forced_eos_token_id", "num_beams", "min_length", "min_new_tokens",
                    "max_length", "max_new_tokens", "alignment_heads", "alignment_query"},
         .rules = {{.key = "do_sample", .harmless = "[false]"},
                   {.key = "renormalize_logits", .harmless = "[false]"},  // scores would be others
                   {.key = "decoder_start_token_id", .harmless = start}}});
  } else {
    keys.add({.rules = {{.key = "alignment_heads"},  // of cross-attention, which there is none of
                        {.key = "alignment_query"},
                        {.key = "max_length"},  // how long a text may be says each call
                        {.key = "max_new_tokens"},
                        {.key = "min_length", .harmless = "[0]"},
                        {.key = "min_new_tokens", .harmless = "[0]"},
                        {.key = "num_beams", .harmless = "[1]"},
                        {.key = "do_sample", .harmless = "[true]"},
                        {.key = "renormalize_logits"},
                        {.key = "decoder_start_token_id"},
                        {.key = "forced_eos_token_id", .harmless = end}}});
  }
  KeyFindings found = keys.look_at(document, name);
  if (translates && ends_otherwise(document, facts)) found.unused.emplace_back("eos_token_id");
  if (translates && has_several_last(document)) found.unused.emplace_back("forced_eos_token_id");
  if (has_longer_words(document)) found.unused.emplace_back("bad_words_ids of several tokens");
  if (found.unused.empty()) return {};
  return found.with("counts here as no default; the options of the call say how words are chosen",
                    "count here as no defaults; the options of the call say how words are chosen");
}

std::string generation_part(std::string_view config, std::string_view name, TokenIds ids) {
  auto document = parse_json_strictly(config, name);
  if (!document.is_object()) return std::string(config);
  nlohmann::json part = nlohmann::json::object();
  for (const std::string_view key : kGenerationNames) {
    if (const auto found = document.find(key); found != document.end()) part[std::string(key)] = *found;
  }
  for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (const auto found = document.find(key); ids == TokenIds::kToo && found != document.end())
      part[key] = *found;
  }
  return part.dump();
}

}  // namespace mh
