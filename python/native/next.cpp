// What a model says of the next token of a text, or of the token in a mask's place.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "given_text.h"
#include "model.h"
#include "multihead/autograd/tape.h"
#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/check_ids.h"
#include "multihead/folders/mask_token.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/next_words.h"
#include "multihead/tasks/prompt_tokens.h"

namespace mh::python {
namespace {

/// Where the token is asked for: the sequences that the model reads, and the row whose state says it.
struct Place {
  Batch text, target;  // target: of a translator what its decoder reads
  int32_t row = 0;
};

/// The only place of the mask's id.
int32_t mask_in(const ModelFolder& folder, const Ids& ids) {
  const std::string mask = mask_token(folder);
  const int32_t id = folder.source_tokens().id_of(mask).value();
  const auto masks = std::count(ids.begin(), ids.end(), id);
  if (masks != 1)
    throw UsageError(
        fmt::format("`text`: the token ids have {} masks; put {}, the id of {}, in once", masks, id, mask));
  return static_cast<int32_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
}

Place place_in_ids(const LoadedModel& loaded, const Ids& ids, const std::string& prefix,
                   const TextLanguages& languages) {
  const ModelFacts facts = loaded.model().facts();
  check_ids(ids, 1,
            {.what = "text",
             .longest = facts.max_positions,
             .vocabulary = facts.vocabulary_read(),
             .may_be_empty = false});
  Place place;
  place.text.add(ids, 0);
  if (translates(loaded.folder())) {
    const InspectedTextReader reader(loaded.folder(), warn, language_pair(loaded.folder(), languages));
    Ids target{facts.start_id};
    if (loaded.tokenizes() || !prefix.empty()) {
      const Ids begun = reader.translated({prefix}, TextSide::kTarget, {}, {.one = "prefix"}).ids[0];
      target.insert(target.end(), begun.begin(), begun.end());
    }
    place.target.add(target, 0);
    place.row = static_cast<int32_t>(target.size()) - 1;
    return place;
  }
  if (!prefix.empty())
    throw UsageError(
        "`prefix`: this model translates nothing, so that no target begins with it; leave it out");
  place.row =
      is_causal(loaded.folder()) ? static_cast<int32_t>(ids.size()) - 1 : mask_in(loaded.folder(), ids);
  return place;
}

Place place_in_text(const LoadedModel& loaded, const std::string& text, const std::string& prefix,
                    const TextLanguages& languages) {
  Place place;
  if (is_causal(loaded.folder()) && prefix.empty() &&
      loaded.folder().source_tokens().encode_ids(text).empty()) {
    place.text.add(PromptTokens(loaded.folder()).whole(text), 0);  // the start token
    return place;
  }
  const AnswerText asked =
      read_answer_text(loaded.folder(), {.text = text, .prefix = prefix}, languages, warn);
  place.text.add(asked.text.ids, 0, asked.text.types);
  if (!asked.target.ids.empty()) place.target.add(asked.target.ids, 0);
  place.row = asked.predicting;
  return place;
}

/// The logits [V] of the token there.
Tensor logits_at(const Model& model, const Place& place, Sites* changed) {
  Tape tape;
  Context context{.tape = tape, .sites = changed};
  const bool translator = !place.target.ids.empty();
  const Var states = model.read(context, place.text.view(), translator ? place.target.view() : Sequences());
  model.call_pooled(context, states, place.text.view());
  Tensor row = copied(states.value().rows_between(place.row, place.row + 1));
  Ragged one;
  one.add(1);
  const Var before = model.word_states(context, tape.constant(row.view()));
  NextWords words(model.vocabulary(), context, before,
                  {.offsets = one.offsets(), .positions = {&place.row, 1}});
  return copied(words.logits().value());
}

NumpyFloats next_logits(const LoadedModel& loaded, const GivenText& text, const std::string& prefix,
                        const std::optional<std::string>& source_language,
                        const std::optional<std::string>& target_language, Edits* edits) {
  Tensor logits = long_call([&] {
    Sites* changed = sites_of(edits, loaded);
    const TextLanguages languages{source_language, target_language};
    const Place place = read_given(
        text, [&](const std::string& words) { return place_in_text(loaded, words, prefix, languages); },
        [&](const Ids& ids) { return place_in_ids(loaded, ids, prefix, languages); });
    return logits_at(loaded.model(), place, changed);
  });
  const int64_t words = logits.cols();
  return numpy_of(std::move(logits), {words});
}

/// Tokens of the vocabulary that a model predicts, as people read them; a number that is no token's is "", as all are without a
/// tokenizer.
std::vector<std::string> predicted_tokens(const LoadedModel& loaded, const Ids& ids) {
  if (!loaded.tokenizes()) return std::vector<std::string>(ids.size());
  const Tokenizer& tokenizer = loaded.model().kind() == ModelKind::kTranslator
                                   ? loaded.folder().target_tokens()
                                   : loaded.folder().source_tokens();
  std::vector<std::string> tokens;
  for (const int32_t id : ids) tokens.push_back(id < tokenizer.size() ? tokenizer.shown(id) : "");
  return tokens;
}

}  // namespace

void add_next(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  model
      .def("next_logits", next_logits, "text"_a, nb::kw_only(), "prefix"_a, "source_language"_a.none(),
           "target_language"_a.none(), "edits"_a.none())
      .def("predicted_tokens", predicted_tokens, "ids"_a);
}

}  // namespace mh::python
