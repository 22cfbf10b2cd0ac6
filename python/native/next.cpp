// What a model says of the next token of a text, or of the token in a mask's place.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "model.h"
#include "multihead/autograd/tape.h"
#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/next_words.h"
#include "multihead/tasks/prompt_tokens.h"

namespace mh::python {
namespace {

using Ids = std::vector<int32_t>;

/// Where the token is asked for: the sequences that the model reads, and the row whose state says it.
struct Place {
  Batch text, target;  // target: of a translator what its decoder reads
  int32_t row = 0;
};

Place place_of(const LoadedModel& loaded, const std::string& text, const std::string& prefix,
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

NumpyFloats next_logits(const LoadedModel& loaded, const std::string& text, const std::string& prefix,
                        const std::optional<std::string>& source_language,
                        const std::optional<std::string>& target_language, Edits* edits) {
  Tensor logits = long_call([&] {
    Sites* changed = sites_of(edits, loaded);
    const Place place = place_of(loaded, text, prefix, {source_language, target_language});
    return logits_at(loaded.model(), place, changed);
  });
  const int64_t words = logits.cols();
  return numpy_of(std::move(logits), {words});
}

/// Tokens of the vocabulary that a model predicts, as people read them; a number that is no token's is "".
std::vector<std::string> predicted_tokens(const LoadedModel& loaded, const Ids& ids) {
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
