#include "multihead/folders/step_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "multihead/text/in_quotes.h"
#include "multihead/text/tokenizer_json.h"

namespace mh {
namespace {

/// What a template puts around texts, and with `types` the types of all tokens.
std::string template_text(const std::vector<PostProcessorStep>& steps, bool types) {
  std::string text;
  for (const PostProcessorStep& step : steps) {
    if (step.single.empty()) continue;
    for (const auto* pieces : {&step.single, &step.pair}) {
      for (const TemplatePiece& piece : *pieces) {
        text += fmt::format(" {}",
                            piece.sequence == 0 ? in_quotes(piece.special) : std::string(1, piece.sequence));
        if (types) text += fmt::format(":{}", piece.type_id);
      }
      text += ";";
    }
  }
  return text;
}

bool is_space_run(const NormalizerStep& step) {
  return step.kind == NormalizerStep::Kind::kReplace && step.pattern.kind == Pattern::Kind::kSpaceRun;
}

/// The steps in which transformers 4 wrote SentencePiece's, as transformers 5 writes them: a space before the text and for each
/// space a mark, which was the normaliser's work; words without spaces between them.
TokenizerParts as_metaspace(const TokenizerParts& parts) {
  TokenizerParts result;
  result.normalizers = parts.normalizers;
  result.pre_tokenizers = parts.pre_tokenizers;
  const auto& before = parts.normalizers;
  const auto& after = parts.pre_tokenizers;
  if (before.size() == 2 && after.empty() && before[0].kind == NormalizerStep::Kind::kPrepend &&
      before[1].kind == NormalizerStep::Kind::kReplace && before[1].pattern.literal == " " &&
      before[0].content == before[1].content) {
    result.normalizers = {};
    result.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kMetaspace,
                              .replacement = before[0].content,
                              .prepend_scheme = PrependScheme::kAlways,
                              .split = false}};
  } else if (after.size() == 1 && after[0].kind == PreTokenizerStep::Kind::kMetaspace && after[0].split &&
             std::any_of(before.begin(), before.end(), is_space_run)) {
    result.pre_tokenizers.insert(result.pre_tokenizers.begin(),
                                 {.kind = PreTokenizerStep::Kind::kWhitespaceSplit});
  }
  return result;
}

/// The text of a file with these steps, which are taken away.
std::string taken(TokenizerParts& steps) {
  std::string text = write_tokenizer_json(steps);
  steps = {};
  return text;
}

}  // namespace

StepWords::StepWords(const TokenizerParts& parts, bool digits_stand_alone, bool types) {
  const TokenizerParts same = as_metaspace(parts);
  TokenizerParts steps;
  for (PreTokenizerStep step : same.pre_tokenizers) {
    // Merges keep such digits apart as well.
    if (digits_stand_alone && step.kind == PreTokenizerStep::Kind::kDigits && step.individual_digits)
      continue;
    step.trim_offsets = true;
    steps.pre_tokenizers.push_back(std::move(step));
  }
  pre_tokenizer = taken(steps);
  const bool splits = !same.pre_tokenizers.empty() &&
                      same.pre_tokenizers.front().kind == PreTokenizerStep::Kind::kWhitespaceSplit;
  for (NormalizerStep step : same.normalizers) {
    // Words are cut at these spaces anyway.
    if (splits && (step.kind == NormalizerStep::Kind::kStrip || is_space_run(step))) continue;
    if (step.kind == NormalizerStep::Kind::kBert && !step.strip_accents) step.strip_accents = step.lowercase;
    steps.normalizers.push_back(std::move(step));
  }
  normalizer = taken(steps);
  steps.decoders = parts.decoders;
  for (DecoderStep& step : steps.decoders) {
    step.add_prefix_space = step.trim_offsets = step.use_regex = step.split = true;
  }
  decoder = taken(steps);
  post_processor = template_text(parts.post_processors, types);
  steps.model = without_lists(parts.model);
  model = write_tokenizer_json(steps);
}

TokenModel without_lists(const TokenModel& model) {
  TokenModel result;
  result.kind = model.kind;
  result.unknown_token = model.unknown_token;
  result.continuing_subword_prefix = model.continuing_subword_prefix;
  result.end_of_word_suffix = model.end_of_word_suffix;
  result.max_input_chars_per_word = model.max_input_chars_per_word;
  result.byte_fallback = model.byte_fallback;
  result.ignore_merges = model.ignore_merges;
  return result;
}

}  // namespace mh
