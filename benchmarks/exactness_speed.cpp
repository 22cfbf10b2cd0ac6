// How much of what a causal model says a precision changes, or a cache (benchmarks/precision.py, benchmarks/cache.py):
// exactness_speed MODEL, and then
//
//   lines FILE COUNT        reads the first lines with at least two tokens -> how many tokens they have
//   text FILE TOKENS COUNT  reads the first lines as COUNT texts of so many tokens -> how many tokens they have
//   keep                    -> perplexity of the lines; what the model says is what compare compares with
//   precision NAME          -> 0; products are of this precision from now on (docs/precision.md)
//   cache NAME              -> 0; texts are read through such a cache from now on (docs/precision.md#the-cache)
//   compare                 -> perplexity of the lines now
//   divergence              -> mean KL divergence, in nats, of the next token's probabilities from those kept
//   first                   -> the share of places with the same most probable token
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "benchmarks/precision_command.h"
#include "multihead/batch/batch.h"
#include "multihead/generate.h"
#include "multihead/io/lines.h"
#include "multihead/models/next_words.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/stack_cache.h"

namespace {

using Rows = std::vector<std::vector<float>>;  // log-probabilities of the vocabulary

class Exactness {
 public:
  explicit Exactness(const char* model) : folder_(mh::load_model_folder(model)) {}

  double answer(const std::string& what, std::istringstream& rest) {
    std::string file;
    size_t count = 0, tokens = 0;
    if (what == "text" && rest >> file >> tokens >> count) return read_as_texts(file, tokens, count);
    if (what == "cache") {
      cache_ = mh::cache_type_named(rest);
      return 0;
    }
    if (what == "lines" && rest >> file >> count) return read(file, count);
    if (what == "precision") return mh::use_precision_named(*folder_.model, rest);
    if (what == "keep") return run([&](size_t text, Rows rows) { kept_[text] = std::move(rows); });
    if (what == "compare") return compare();
    if (what == "divergence") return divergence_ / places_;
    if (what == "first") return first_ / places_;
    throw mh::UsageError("unknown command: " + what);
  }

 private:
  double read(const std::string& file, size_t count) {
    int64_t tokens = 0;
    for (const std::string& line : mh::read_lines(file)) {
      std::vector<int32_t> ids = folder_.source_tokens().encode_ids(line);
      if (ids.size() < 2) continue;
      if (texts_.size() == count) break;
      tokens += std::ssize(ids);
      texts_.push_back(std::move(ids));
    }
    kept_.resize(texts_.size());
    return static_cast<double>(tokens);
  }

  double read_as_texts(const std::string& file, size_t tokens, size_t count) {
    std::vector<int32_t> text;
    for (const std::string& line : mh::read_lines(file)) {
      if (texts_.size() == count) break;
      const std::vector<int32_t> ids = folder_.source_tokens().encode_ids(line + "\n");
      text.insert(text.end(), ids.begin(), ids.end());
      if (text.size() < tokens) continue;
      text.resize(tokens);
      texts_.push_back(std::exchange(text, {}));
    }
    kept_.resize(texts_.size());
    return static_cast<double>(tokens * texts_.size());
  }

  /// The states of a text: all at once, or through a cache.
  mh::Var states_of(mh::Context& context, const mh::Sequences& text) const {
    const mh::LanguageModel& model = folder_.language_model();
    if (!cache_) return model.read(context, text, {});
    mh::StackCache cache(*cache_);
    model.start(context, {}, cache);
    return model.extend(context, text.ids, {.rows = text.ragged}, cache);
  }

  /// use(text, rows) for each text -> perplexity of all tokens but the first ones.
  template <class Use>
  double run(const Use& use) {
    const mh::LanguageModel& model = folder_.language_model();
    double sum = 0, tokens = 0;
    mh::Tape tape;
    for (size_t t = 0; t < texts_.size(); ++t) {
      tape.clear();
      mh::Context context{.tape = tape};
      const mh::Batch batch({texts_[t]});
      const mh::Sequences text = batch.view();
      const mh::Var states = states_of(context, text);
      const mh::Var logits = model.logits(context, model.word_states(context, states), text);
      Rows rows;
      for (int64_t i = 0; i + 1 < logits.rows(); ++i) {
        const float* const from = logits.value().row(i);
        auto& row = rows.emplace_back(from, from + logits.cols());
        const auto whole = static_cast<float>(mh::log_sum_exp(row));
        for (float& logit : row) logit -= whole;
        sum -= row[static_cast<size_t>(texts_[t][static_cast<size_t>(i) + 1])];
        tokens += 1;
      }
      use(t, std::move(rows));
    }
    return std::exp(sum / tokens);
  }

  double compare() {
    divergence_ = first_ = places_ = 0;
    return run([&](size_t text, const Rows& rows) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const std::vector<float>&right = kept_[text][i], &now = rows[i];
        for (size_t w = 0; w < now.size(); ++w)
          divergence_ += std::exp(static_cast<double>(right[w])) * (static_cast<double>(right[w]) - now[w]);
        first_ += std::max_element(right.begin(), right.end()) - right.begin() ==
                          std::max_element(now.begin(), now.end()) - now.begin()
                      ? 1
                      : 0;
        places_ += 1;
      }
    });
  }

  mh::ModelFolder folder_;
  std::vector<std::vector<int32_t>> texts_;
  std::vector<Rows> kept_;
  std::optional<mh::CacheType> cache_;
  double divergence_ = 0, first_ = 0, places_ = 0;
};

int run(int argc, char** argv) {
  if (argc != 2) throw mh::UsageError("usage: exactness_speed MODEL");
  Exactness exactness(argv[1]);
  return mh::answer_commands(
      [&](const std::string& what, std::istringstream& rest) { return exactness.answer(what, rest); });
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("exactness_speed", run, argc, argv);
}
