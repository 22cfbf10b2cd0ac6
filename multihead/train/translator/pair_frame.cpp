#include "multihead/train/translator/pair_frame.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/folders/language_codes.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

/// Those of a model of many languages.
void put_codes(const ModelFolder& folder, const LanguagePair& pair, PairFrame& frame) {
  const int32_t end = folder.model->facts().eos_id;
  frame.own_template = false;
  frame.source = {.before = before_source(folder, pair), .behind = source_end(folder, pair)};
  const std::vector<int32_t> first = before_target(folder, pair);
  const int32_t code = first.empty() ? folder.languages->usual.target.value() : first.front();
  if (folder.languages->place == CodePlace::kBehind) {
    frame.target.behind = {end, code};
  } else {
    frame.target = {.before = {code}, .behind = {end}};
  }
}

void require_end(const ModelFolder& folder, const Tokenizer& tokenizer) {
  const int32_t end = folder.model->facts().eos_id;
  const std::vector<int32_t> nothing = tokenizer.encode_ids("");
  if (!nothing.empty() && nothing.back() == end) return;
  throw UsageError(fmt::format(
      "the tokenizer of {} does not append the end token {} to what it encodes, so that the model would not "
      "learn to end; give its tokenizer.json a template post-processor that does",
      folder.path.string(),
      end >= 0 && end < tokenizer.size() ? in_quotes(tokenizer.token_of(end)) : std::to_string(end)));
}

/// In transformers the last token of a target comes to its front, whatever decoder_start_token_id is.
void require_start_of_mbart(const ModelFolder& folder, const PairFrame& frame) {
  const ModelFacts facts = folder.model->facts();
  const int32_t first = frame.target.behind.empty() ? facts.eos_id : frame.target.behind.back();
  if (first == facts.start_id) return;
  throw UsageError(fmt::format(
      "{} is an mBART whose translations begin with the token {}, while training begins them with {}, the "
      "last token of a target; set decoder_start_token_id to {} in its config.json and "
      "generation_config.json",
      folder.path.string(), facts.start_id, first, first));
}

}  // namespace

PairFrame frame_of(const ModelFolder& folder, const PairTexts& texts) {
  folder.translator();  // it must be one
  const Tokenizer &source = folder.source_tokens(), &target = folder.target_tokens();
  const LanguagePair pair = language_pair(folder, texts.languages);
  PairFrame frame{.prefix = texts.source_prefix};
  if (folder.languages) {
    put_codes(folder, pair, frame);
  } else {
    require_end(folder, source);
    require_end(folder, target);
  }
  if (folder.model_type == "mbart") require_start_of_mbart(folder, frame);
  complete_search(folder, pair, frame.search);
  return frame;
}

}  // namespace mh
