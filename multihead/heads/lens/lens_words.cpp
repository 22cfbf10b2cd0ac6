#include "multihead/heads/lens/lens_words.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "multihead/base/thread_pool.h"
#include "multihead/batch/batch.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// Rows that the output layer multiplies at once: enough that its matrix is read seldom, few enough that their logits are small
/// beside it.
constexpr size_t kRowsAtOnce = 64;

class WordLens {
 public:
  WordLens(const Model& model, const Observation& seen, const StreamEnds& ends, const LensQuestion& question,
           LensReport& found)
      : model_(model), question_(question), found_(found), places_(ends.places().size()) {
    const ObservedTokens& text = model.kind() == ModelKind::kCausal ? seen.target : seen.source;
    text_.add(text.ids, 0, text.types);
    if (model.kind() == ModelKind::kTranslator) target_.add(seen.target.ids, 0);
    found.readings.resize(places_ * question.positions.size());
    ends.each(seen.values, question.sites, [&](size_t, Context& context) {
      const Var states =
          model.read(context, text_.view(), target_.ids.empty() ? Sequences() : target_.view());
      Tensor& rows = states_.emplace_back(std::ssize(question.positions), states.cols());
      for (int64_t i = 0; i < rows.rows(); ++i)
        std::copy_n(states.value().row(question.positions[static_cast<size_t>(i)]), rows.cols(),
                    rows.view().row(i));
    });
  }

  void read() {
    const size_t all = question_.positions.size(), at_once = std::max<size_t>(1, kRowsAtOnce / places_);
    for (size_t begin = 0; begin < all; begin += at_once) read_some(begin, std::min(at_once, all - begin));
  }

 private:
  /// Of so many positions, all places together: each is a copy of the text of which only these rows are there.
  void read_some(size_t begin, size_t count) {
    Tensor rows(static_cast<int64_t>(places_ * count), states_[0].cols());
    Ragged each_place;
    std::vector<int32_t> positions;
    for (size_t place = 0; place < places_; ++place) {
      each_place.add(static_cast<int32_t>(count));
      for (size_t i = 0; i < count; ++i) {
        std::copy_n(states_[place].view().row(static_cast<int64_t>(begin + i)), rows.cols(),
                    rows.view().row(static_cast<int64_t>(place * count + i)));
        positions.push_back(question_.positions[begin + i]);
      }
    }
    const std::vector<int64_t> first(places_, 0);
    const int64_t source = std::ssize(text_.ids),
                  target = target_.ids.empty() ? source : std::ssize(target_.ids);
    const ListOffsets offsets = ListOffsets::of_pairs(std::span(&source, 1), std::span(&target, 1));
    ListSites listed(question_.sites, {.texts = first, .count = 1, .offsets = &offsets});
    Context context{.tape = tape_, .sites = listed.sites()};
    const Var before = model_.word_states(context, tape_.constant(rows.view()));
    const Var words = NextWords(model_.vocabulary(), context, before,
                                {.offsets = each_place.offsets(), .positions = positions})
                          .logits();
    read_logits(std::as_const(words).value(), begin, count);
    tape_.clear();
  }

  void read_logits(ConstMatrixView logits, size_t begin, size_t count) {
    const auto row = [&](size_t place, size_t i) {
      return std::span(logits.row(static_cast<int64_t>(place * count + i)), static_cast<size_t>(logits.cols));
    };
    std::vector<EndRow> ends(count);
    std::vector<RankedWords> ranked(count);
    parallel_for(static_cast<int64_t>(count), [&](int64_t task) {
      const auto i = static_cast<size_t>(task);
      ends[i] = end_row(row(places_ - 1, i));
      LensPosition& position = found_.positions[begin + i];
      const int32_t best = best_of(ends[i].logits);
      position.predicted = {.id = best, .token = question_.name(best)};
      if (question_.answer) {
        ranked[i].answer = question_.answer;
      } else {
        if (position.actual) ranked[i].actual = position.actual->id;
        ranked[i].predicted = best;
      }
    });
    parallel_for(static_cast<int64_t>(places_ * count), [&](int64_t task) {
      const size_t place = static_cast<size_t>(task) / count, i = static_cast<size_t>(task) % count;
      found_.readings[place * found_.positions.size() + begin + i] =
          read_row(row(place, i), ends[i], question_.words, ranked[i], question_.name);
    });
  }

  const Model& model_;
  const LensQuestion& question_;
  LensReport& found_;
  size_t places_;
  Batch text_, target_;
  std::vector<Tensor> states_;  // [positions, d_model] of each place, at the end
  Tape tape_;
};

}  // namespace

void lens_words(const Model& model, const Observation& seen, const StreamEnds& ends,
                const LensQuestion& question, LensReport& found) {
  WordLens(model, seen, ends, question, found).read();
}

}  // namespace mh
