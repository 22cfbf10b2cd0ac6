#include "web/calls/following_words.h"

#include <fmt/format.h>

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/ragged.h"
#include "multihead/batch/batch.h"
#include "multihead/models/next_words.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/tasks/prompt_tokens.h"

namespace mh::web {

std::vector<FilledWord> following_words(const ModelFolder& folder, const std::string& text,
                                        const FollowingOptions& options) {
  const LanguageModel& model = folder.causal_model();
  const std::vector<int32_t> ids = PromptTokens(folder).whole(text);
  const auto longest = model.facts().max_positions;
  if (std::ssize(ids) > longest)
    throw UsageError(
        fmt::format("the text has {} tokens, and the model reads {}; shorten it", ids.size(), longest));
  if (options.words > model.vocabulary().size())
    throw UsageError(fmt::format("`words`: expected 1 to the model's {}, got {}", model.vocabulary().size(),
                                 options.words));
  Tape tape;
  Context context{.tape = tape, .sites = options.sites};
  Batch batch;
  batch.add(ids, 0);
  const Var states = model.read(context, batch.view(), {});
  const auto last = static_cast<int32_t>(ids.size()) - 1;
  Tensor row = copied(states.value().rows_between(last, last + 1));
  Ragged one;
  one.add(1);
  std::vector<Candidate> best(static_cast<size_t>(options.words));
  VocabularyScratch scratch;
  NextWords(model.vocabulary(), context, model.word_states(context, tape.constant(row.view())),
            {.offsets = one.offsets(), .positions = {&last, 1}})
      .best({.candidates = options.words}, best, scratch);
  std::vector<FilledWord> words;
  for (const Candidate& one_of : best)
    words.push_back({.token = one_of.token,
                     .word = folder.source_tokens().decode_known(std::vector<int32_t>{one_of.token}, false),
                     .probability = std::exp(static_cast<double>(one_of.log_probability))});
  return words;
}

}  // namespace mh::web
