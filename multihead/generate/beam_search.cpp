#include "multihead/generate/beam_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/generate/back_pointers.h"
#include "multihead/generate/forced_prefix.h"
#include "multihead/generate/repeated_ngrams.h"
#include "multihead/models/decoding.h"

namespace mh {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Why a hypothesis grows no more.
enum class Finish { kEndToken, kStopped, kLongest };

// A hypothesis that is finished: continue row `row` of step `step` by `last`.
struct Finished {
  int32_t step, row;
  Candidate last;
  Finish why;
  double log_probability, score;
};

// The hypotheses that grow: one row of the decoder each; rows of one sentence lie together, sentences rise.
struct Rows {
  std::vector<int32_t> tokens, parents, sources;
  std::vector<Candidate> chosen;  // the tokens with their log-probabilities
  std::vector<double> totals;     // log-probability so far

  size_t size() const { return tokens.size(); }
  void resize(size_t size) {
    tokens.resize(size), parents.resize(size), sources.resize(size), chosen.resize(size), totals.resize(size);
  }
  void clear() { resize(0); }
  void add(const Candidate& next, int32_t parent, int32_t source, double total) {
    tokens.push_back(next.token), parents.push_back(parent), sources.push_back(source);
    chosen.push_back(next), totals.push_back(total);
  }
};

class BeamSearch {
 public:
  BeamSearch(Decoding& decoding, const Sequences& source, const SearchOptions& options,
             std::span<const std::vector<int32_t>> prefixes, const StopRule& stops)
      : decoding_(decoding),
        model_(decoding.model()),
        facts_(model_.facts()),
        options_(options),
        beam_(static_cast<size_t>(options.beam())),
        causal_(facts_.source_vocabulary == 0),
        ends_(options.end_tokens),
        prefix_(model_, prefixes),
        stops_(stops),
        source_(source) {
    ends_.push_back(facts_.eos_id);
    never_ = options.suppressed;
    if (!causal_) never_.insert(never_.end(), {facts_.pad_id, facts_.start_id});
    for (std::vector<int32_t>* tokens : {&ends_, &never_}) {
      std::sort(tokens->begin(), tokens->end());
      tokens->erase(std::unique(tokens->begin(), tokens->end()), tokens->end());
      std::erase(*tokens, -1);
    }
    std::erase_if(never_, [&](int32_t token) { return is_end(token); });
    never_or_end_ = never_;
    never_or_end_.insert(never_or_end_.end(), ends_.begin(), ends_.end());

    const int32_t sentences = source.ragged->sequences();
    finished_.resize(static_cast<size_t>(sentences));
    for (int32_t s = 0; s < sentences; ++s) {
      longest_.push_back(longest(source.ragged->length(s)));
      prefix_.check(s, longest_.back(), options.forced_first);
      rows_.add({.token = facts_.start_id, .log_probability = 0}, 0, s, 0);
    }
    heads_.resize(beam_);
    if (causal_) {
      decoding_.read(source);
    } else {
      decoding_.start(source);
    }
  }

  std::vector<std::vector<Hypothesis>> run() {
    for (; rows_.size() > 0; ++step_) {
      history_.add_step(rows_.chosen, rows_.parents);
      const bool read = causal_ && step_ == 0;  // the prompts are what the first tokens follow
      if (!read) decoding_.step(rows_.tokens, rows_.parents, rows_.sources);
      name_candidates();
      grown_.clear();
      for (size_t begin = 0, end = 0; begin < rows_.size(); begin = end) {
        while (end < rows_.size() && rows_.sources[end] == rows_.sources[begin]) ++end;
        advance(begin, end);
      }
      std::swap(rows_, grown_);
    }
    std::vector<std::vector<Hypothesis>> results;
    results.reserve(finished_.size());
    for (auto& finished : finished_) results.push_back(best(finished));
    return results;
  }

 private:
  int32_t longest(int32_t source_length) const {
    // A causal model's positions are those of its prompt, too.
    const int32_t room = facts_.max_positions - (causal_ ? source_length : 0);
    if (room < 1) {
      throw UsageError(fmt::format(
          "prompt of {} tokens: the model has {} positions, which leaves no room for another token",
          source_length, facts_.max_positions));
    }
    int32_t length = std::min(options_.longest(), room);
    if (options_.max_length_factor > 0) {
      const double by_source = std::ceil(options_.max_length_factor * source_length);
      const int32_t floor = std::max(1, options_.shortest());
      length = std::min(length, std::max(floor, static_cast<int32_t>(std::min(by_source, 1e9))));
    }
    return length;
  }

  void name_candidates() {
    const auto& suppressed = step_ < options_.shortest() ? never_or_end_ : never_;
    // The best beam_size continuations that do not end, and the ends. A greedy search is done once an end
    // comes first. Any token may stop a text: as many more may do so before fewer hypotheses grow.
    const int32_t possible = facts_.vocabulary - static_cast<int32_t>(suppressed.size());
    const int32_t grow = stops_ ? 2 * options_.beam() : options_.beam();
    const int32_t wanted = std::min(grow + static_cast<int32_t>(ends_.size()), kMaxCandidates);
    candidates_a_row_ = std::min(beam_ == 1 ? 1 : wanted, std::max(possible, 1));
    candidates_.resize(rows_.size() * static_cast<size_t>(candidates_a_row_));
    if (step_ == 0 && options_.forced_first) {
      for (size_t row = 0; row < rows_.size(); ++row) leave_one_candidate(row, *options_.forced_first);
    } else {
      if (!prefix_.holds_all(step_, rows_.sources)) {
        decoding_.next_words().best({.candidates = candidates_a_row_, .suppressed = suppressed}, candidates_,
                                    decoding_.scratch());
        forbid_repetitions(suppressed);
      }
      prefix_.force(step_, rows_.sources, decoding_, candidates_a_row_, candidates_);
    }
    for (size_t row = 0; options_.forced_last && row < rows_.size(); ++row) {
      if (is_last_step(rows_.sources[row]) && !prefix_.holds(step_, rows_.sources[row]))
        leave_one_candidate(row, *options_.forced_last);
    }
  }

  bool is_last_step(int32_t s) const { return step_ + 1 == longest_[static_cast<size_t>(s)]; }

  // A forced token is no choice: its probability is 1.
  void leave_one_candidate(size_t row, int32_t token) {
    const auto count = static_cast<size_t>(candidates_a_row_);
    const auto candidates = std::span(candidates_).subspan(row * count, count);
    std::fill(candidates.begin(), candidates.end(), Candidate{0, kImpossible});
    candidates[0] = {token, 0};
  }

  // Chooses again among the candidates of rows where some token would repeat an n-gram.
  void forbid_repetitions(std::span<const int32_t> suppressed) {
    const int32_t n = options_.no_repeat_ngram.value_or(0);
    if (n == 0) return;
    const auto count = static_cast<size_t>(candidates_a_row_);
    for (size_t row = 0; row < rows_.size(); ++row) {
      path_.clear();
      if (causal_) {
        const auto prompt = source_.ragged->begin(rows_.sources[row]);
        path_.assign(source_.ids.begin() + prompt,
                     source_.ids.begin() + prompt + source_.ragged->length(rows_.sources[row]));
      } else {
        path_.push_back(facts_.start_id);
      }
      for (const Candidate& earlier : history_.path(step_, static_cast<int32_t>(row)))
        path_.push_back(earlier.token);
      forbidden_.assign(suppressed.begin(), suppressed.end());
      tokens_that_repeat(path_, n, forbidden_);
      if (forbidden_.size() == suppressed.size()) continue;
      const ConstMatrixView logits = decoding_.next_words().logits().value();
      best_allowed({logits.row(static_cast<int64_t>(row)), static_cast<size_t>(logits.cols)},
                   std::span(candidates_).subspan(row * count, count));
    }
  }

  // The most probable tokens that are not forbidden_, best first; then impossible ones where there are not enough.
  void best_allowed(std::span<const float> logits, std::span<Candidate> out) {
    const double log_sum = log_sum_exp(logits);
    allowed_.clear();
    for (const float logit : logits)
      allowed_.push_back(
          {static_cast<int32_t>(allowed_.size()), static_cast<float>(static_cast<double>(logit) - log_sum)});
    for (const int32_t token : forbidden_) allowed_[static_cast<size_t>(token)].log_probability = kImpossible;
    std::partial_sort_copy(
        allowed_.begin(), allowed_.end(), out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
          return a.log_probability != b.log_probability ? a.log_probability > b.log_probability
                                                        : a.token < b.token;
        });
  }

  // All continuations of one sentence's rows [begin, end), the most probable first.
  void advance(size_t begin, size_t end) {
    const int32_t s = rows_.sources[begin];
    const bool last = is_last_step(s);
    const size_t grown_before = grown_.size();
    std::fill(heads_.begin(), heads_.end(), 0);
    for (size_t rank = 0; grown_.size() - grown_before < beam_ && !(last && rank == beam_); ++rank) {
      // Each row's candidates are sorted: merge them.
      size_t row = end;
      double total = kImpossible;
      for (size_t r = begin; r < end; ++r) {
        if (heads_[r - begin] == candidates_a_row_) continue;
        const double t =
            rows_.totals[r] + static_cast<double>(candidate(r, heads_[r - begin]).log_probability);
        if (t > total) row = r, total = t;
      }
      if (row == end) break;  // only impossible ones are left
      const Candidate& next = candidate(row, heads_[row - begin]++);
      const auto finish = [&](Finish why) {
        const double score = total / options_.length_penalty.factor(step_ + 1);
        if (rank < beam_) {
          finished_[static_cast<size_t>(s)].push_back(
              {step_, static_cast<int32_t>(row), next, why, total, score});
        }
      };
      if (is_end(next.token)) {
        finish(Finish::kEndToken);
      } else if (stops(s, static_cast<int32_t>(row), next.token)) {
        finish(Finish::kStopped);
      } else if (last) {
        finish(Finish::kLongest);
      } else {
        grown_.add(next, static_cast<int32_t>(row), s, total);
      }
    }
    if (grown_.size() > grown_before && done(s, grown_.totals[grown_before])) grown_.resize(grown_before);
  }

  bool is_end(int32_t token) const { return std::binary_search(ends_.begin(), ends_.end(), token); }

  const Candidate& candidate(size_t row, int32_t i) const {
    return candidates_[row * static_cast<size_t>(candidates_a_row_) + static_cast<size_t>(i)];
  }

  bool stops(int32_t s, int32_t row, int32_t token) {
    if (!stops_ || prefix_.holds(step_, s)) return false;
    path_.clear();
    for (const Candidate& earlier : history_.path(step_, row)) path_.push_back(earlier.token);
    path_.push_back(token);
    return stops_(s, path_);
  }

  // Whether sentence s needs no more steps; best_growing is the log-probability of its best hypothesis of
  // step_ + 1 tokens.
  bool done(int32_t s, double best_growing) {
    auto& finished = finished_[static_cast<size_t>(s)];
    const LengthPenalty& penalty = options_.length_penalty;
    const int32_t length = step_ + 1, longest = longest_[static_cast<size_t>(s)];
    if (finished.size() >= beam_) {
      const EarlyStopping stopping = options_.early_stopping.value_or(EarlyStopping::kTrue);
      if (beam_ == 1 || stopping == EarlyStopping::kTrue) return true;
      const bool reaches_longest = stopping == EarlyStopping::kNever && penalty.alpha.value_or(1) > 0;
      if (best_growing / penalty.factor(reaches_longest ? longest : length) <= score_of_rank(finished, beam_))
        return true;
    }
    const auto wanted = static_cast<size_t>(options_.n_best);
    if (finished.size() < wanted) return false;
    // What grows gets less probable; at best it stays as it is and gets the most favourable length.
    const double factor = std::max(penalty.factor(length + 1), penalty.factor(longest));
    return best_growing / factor < score_of_rank(finished, wanted);
  }

  // The score of the one that is the `rank`th best, from 1.
  static double score_of_rank(std::vector<Finished>& finished, size_t rank) {
    const auto nth = finished.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(finished.begin(), nth, finished.end(), better);
    return nth->score;
  }

  static bool better(const Finished& a, const Finished& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.step != b.step) return a.step < b.step;  // ties: the earlier
    return a.row != b.row ? a.row < b.row : a.last.token < b.last.token;
  }

  std::vector<Hypothesis> best(std::vector<Finished>& finished) const {
    const size_t count = std::min(finished.size(), static_cast<size_t>(options_.n_best));
    std::partial_sort(finished.begin(), finished.begin() + static_cast<std::ptrdiff_t>(count), finished.end(),
                      better);
    std::vector<Hypothesis> hypotheses(count);
    for (size_t i = 0; i < count; ++i) {
      const Finished& from = finished[i];
      Hypothesis& to = hypotheses[i];
      for (const Candidate& token : history_.path(from.step, from.row)) {
        to.tokens.push_back(token.token);
        to.log_probabilities.push_back(token.log_probability);
      }
      to.log_probabilities.push_back(from.last.log_probability);
      to.ended = from.why == Finish::kEndToken;
      to.stopped = from.why == Finish::kStopped;
      if (!to.ended) to.tokens.push_back(from.last.token);
      to.log_probability = from.log_probability;
      to.score = from.score;
    }
    return hypotheses;
  }

  Decoding& decoding_;
  const LanguageModel& model_;
  const ModelFacts facts_;
  const SearchOptions& options_;
  const size_t beam_;
  const bool causal_;
  std::vector<int32_t> ends_;  // rising
  ForcedPrefix prefix_;
  const StopRule& stops_;
  const Sequences& source_;
  std::vector<int32_t> path_;  // of the hypothesis that is looked at
  std::vector<int32_t> forbidden_;
  std::vector<Candidate> allowed_;             // [vocabulary]
  int32_t candidates_a_row_ = 0;               // in this step
  std::vector<int32_t> never_, never_or_end_;  // tokens that may not come next, from and before min_length
  std::vector<int32_t> longest_;               // tokens, of each sentence
  std::vector<std::vector<Finished>> finished_;
  BackPointers history_;
  int32_t step_ = 0;  // tokens that the growing hypotheses have
  Rows rows_, grown_;
  std::vector<Candidate> candidates_;  // [rows, candidates_a_row]
  std::vector<int32_t> heads_;         // of the merge: each row's next candidate
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(Decoding& decoding, const Sequences& source,
                                                 const SearchOptions& options,
                                                 std::span<const std::vector<int32_t>> prefixes,
                                                 const StopRule& stops) {
  check_search(options);
  for (const auto* list : {&options.suppressed, &options.end_tokens}) {
    check_ids({list, 1},
              {.what = "suppressed and end tokens", .vocabulary = decoding.model().facts().vocabulary});
  }
  for (const auto& [forced, name] :
       {std::pair{options.forced_first, "forced_first"}, std::pair{options.forced_last, "forced_last"}}) {
    const std::vector<int32_t> ids(forced ? 1 : 0, forced.value_or(0));
    check_ids({&ids, 1}, {.what = name, .vocabulary = decoding.model().facts().vocabulary});
  }
  if (!prefixes.empty() && prefixes.size() != static_cast<size_t>(source.ragged->sequences())) {
    throw ShapeError(fmt::format("beam search: {} prefixes for {} sources; give one each or none",
                                 prefixes.size(), source.ragged->sequences()));
  }
  if (source.ragged->sequences() == 0) return {};
  return BeamSearch(decoding, source, options, prefixes, stops).run();
}

}  // namespace mh
