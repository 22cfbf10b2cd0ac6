#include "multihead/heads/retrieval/heads_retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/retrieval/cached_text.h"
#include "multihead/heads/retrieval/limited_heads.h"
#include "multihead/heads/retrieval/needle_texts.h"
#include "multihead/heads/retrieval/needle_watch.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

constexpr size_t kStretches = 20;  // of ordinary text, between which the interval is

double sum_of(std::span<const float> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

void check_retrieval(const RetrievalOptions& options) {
  check_settings(options);
  for (const auto& [empty, name] :
       {std::pair(options.lengths.empty(), "lengths"), std::pair(options.depths.empty(), "depths")}) {
    if (empty) throw UsageError(fmt::format("`{}`: there are none; give at least one", name));
  }
  if (!options.heads.empty() && options.limit == LimitedRows::kNone)
    throw UsageError("`heads` are those that are limited; say in which rows: `limit` answer or all");
  for (const int32_t length : options.lengths) check_option("lengths", length, {.low = 1});
  for (const double depth : options.depths) check_option("depths", depth, {.low = 0, .high = 1});
}

class Retrieval {
 public:
  Retrieval(const ModelFolder& folder, const RetrievalTexts& texts, const RetrievalOptions& options)
      : model_(folder.causal_model()),
        options_(options),
        most_positions_(model_.facts().max_positions),
        units_(options.limit == LimitedRows::kNone
                   ? decltype(units_)()
                   : limited_together(model_, options.heads, options.by_group)),
        texts_(folder, texts, most_filler(options)),
        read_(model_, options.sites),
        watch_(model_) {
    if (options.sites != nullptr) model_.check(*options.sites);
    check_lengths();
    const Tokenizer& tokenizer = folder.source_tokens();
    for (size_t n = 0; n < texts.needles.size(); ++n) {
      NeedleTokens& needle = found_.needles.emplace_back();
      needle.text = texts.needles[n];
      needle.tokens = static_cast<int32_t>(texts_.needles()[n].sentence.size());
      for (const int32_t id : texts_.needles()[n].answer) needle.answer.push_back(tokenizer.shown(id));
    }
    const size_t needles = found_.needles.size();
    scores_.assign(watch_.heads().size(), std::vector<double>(needles));
    weights_ = scores_;
    by_place_.resize(watch_.heads().size());
    falls_.assign(units_.size(), std::vector<double>(needles));
    for (const std::vector<HeadName>& heads : units_)
      limits_.emplace_back(model_, heads, options.sinks, options.window);
  }

  RetrievalReport run() {
    const int64_t trials = std::ssize(options_.lengths) * std::ssize(options_.depths) *
                           std::ssize(texts_.needles()),
                  units = std::ssize(units_);
    all_ = trials * (1 + units) + (measures_text() ? 1 + units : 0);
    for (const int32_t length : options_.lengths) {
      for (const double depth : options_.depths) {
        for (std::vector<double>& scores : by_place_) scores.push_back(0);
        for (size_t needle = 0; needle < texts_.needles().size(); ++needle)
          add_trial({.needle = needle, .length = length, .depth = depth}, trials);
      }
    }
    const auto of_needle = static_cast<double>(options_.lengths.size() * options_.depths.size());
    const auto interval = [&](std::vector<double>& sums) {
      for (double& sum : sums) sum /= of_needle;
      return interval_of(sums);
    };
    for (size_t h = 0; h < watch_.heads().size(); ++h)
      found_.heads.push_back(
          {watch_.heads()[h], interval(scores_[h]), interval(weights_[h]), std::move(by_place_[h])});
    for (size_t u = 0; u < units_.size(); ++u)
      found_.needs.push_back({.heads = units_[u], .fall = interval(falls_[u])});
    if (measures_text()) measure_text();
    return std::move(found_);
  }

 private:
  bool measures_text() const { return !units_.empty() && options_.text_tokens > 0; }

  int32_t most_filler(const RetrievalOptions& options) const {
    const int32_t longest = *std::max_element(options.lengths.begin(), options.lengths.end());
    if (longest > most_positions_)
      throw UsageError(
          fmt::format("`lengths`: {} tokens are more than the {} that the model has positions for", longest,
                      most_positions_));
    return std::max(longest, options.limit == LimitedRows::kNone ? 1 : text_tokens(options) + 1);
  }
  /// Of ordinary text, as many as there are positions for.
  int32_t text_tokens(const RetrievalOptions& options) const {
    return std::min(options.text_tokens, most_positions_ - 1);
  }

  void check_lengths() const {
    size_t answer = 0;
    for (const NeedleTexts::Needle& needle : texts_.needles())
      answer = std::max(answer, needle.answer.size());
    const int32_t least = texts_.least_length(), most = most_positions_ - static_cast<int32_t>(answer) + 1;
    for (const int32_t length : options_.lengths) {
      if (length < least)
        throw UsageError(fmt::format(
            "`lengths`: a text of {} has no room for the longest needle and its question; the least is {}",
            length, least));
      if (length > most)
        throw UsageError(
            fmt::format("`lengths`: with an answer of {} tokens a text has at most {} of the model's "
                        "{} positions, not {}",
                        answer, std::max(most, 0), most_positions_, length));
    }
  }

  void advance() {
    if (options_.progress) options_.progress(++done_, all_);
  }

  void add_trial(RetrievalTrial trial, int64_t trials) {
    const NeedleTexts::Needle& needle = texts_.needles()[trial.needle];
    const NeedleText made = texts_.text(trial.needle, trial.length, trial.depth);
    trial.place = made.place;
    const auto number = std::ssize(found_.trials);
    read_.begin(number, trials);
    read_.read(made.text);
    const auto steps = static_cast<int32_t>(needle.answer.size());
    watch_.begin(trial.length - 1, steps, made.place, needle.sentence);
    std::vector<int32_t> question = needle.question;
    const int32_t last = question.back();
    question.pop_back();
    read_.read(question);
    const bool greedy = options_.answers == AnswerDecoding::kGreedy;
    read_answer(needle, last, greedy ? nullptr : &watch_, trial);
    if (greedy) {
      read_.cut(trial.length - 1);
      count_steps(trial.needle, written(last, steps));
    } else {
      count_steps(trial.needle, needle.answer);
    }
    advance();
    for (size_t u = 0; u < units_.size(); ++u) {
      falls_[u][trial.needle] += trial.log_probability - limited(made, needle, number, trials, limits_[u]);
      advance();
    }
    found_.trials.push_back(trial);
  }

  /// The rows that predict the answer, all at once.
  void read_answer(const NeedleTexts::Needle& needle, int32_t last, Sites* watch, RetrievalTrial& trial) {
    std::vector<int32_t> rows{last};
    rows.insert(rows.end(), needle.answer.begin(), needle.answer.end() - 1);
    const PredictedTokens said = read_.read(rows, watch, {.targets = needle.answer, .best = true});
    trial.log_probability = sum_of(said.log_probabilities);
    trial.exact = said.best == needle.answer;
  }

  /// What the model writes, token by token.
  std::vector<int32_t> written(int32_t last, int32_t steps) {
    std::vector<int32_t> tokens;
    for (int32_t step = 0; step < steps; ++step) {
      last = read_.read({&last, 1}, &watch_, {.best = true}).best[0];
      tokens.push_back(last);
    }
    return tokens;
  }

  /// Adds what the heads copy where these tokens come.
  void count_steps(size_t number, std::span<const int32_t> tokens) {
    const std::vector<int32_t>& words = texts_.needles()[number].words;
    const auto steps = static_cast<int32_t>(tokens.size());
    std::vector<char> copied(words.size());
    for (size_t head = 0; head < watch_.heads().size(); ++head) {
      std::fill(copied.begin(), copied.end(), '\0');
      double weight = 0;
      for (int32_t step = 0; step < steps; ++step) {
        const int32_t token = tokens[static_cast<size_t>(step)];
        const auto word = std::lower_bound(words.begin(), words.end(), token);
        if (word == words.end() || *word != token) continue;
        weight += watch_.weight(head, step, token);
        if (watch_.copies(head, step, token)) copied[static_cast<size_t>(word - words.begin())] = 1;
      }
      const double score = static_cast<double>(std::count(copied.begin(), copied.end(), '\1')) /
                           static_cast<double>(words.size());
      scores_[head][number] += score;
      by_place_[head].back() += score / static_cast<double>(found_.needles.size());
      weights_[head][number] += weight / static_cast<double>(steps);
    }
  }

  /// log p of the answer with limited heads.
  double limited(const NeedleText& made, const NeedleTexts::Needle& needle, int64_t number, int64_t trials,
                 LimitedHeads& limits) {
    if (options_.limit == LimitedRows::kAll) {
      read_.begin(number, trials);
      read_.read(made.text, &limits);
    } else {
      read_.cut(static_cast<int32_t>(made.text.size()));
    }
    std::vector<int32_t> tokens = needle.question;
    tokens.insert(tokens.end(), needle.answer.begin(), needle.answer.end());
    const size_t rows = tokens.size() - 1;
    // One pass, which also says what the question's rows predict: cheaper than two.
    const PredictedTokens said = read_.read(std::span(tokens).first(rows), &limits,
                                            {.targets = std::span<const int32_t>(tokens).subspan(1)});
    return sum_of(std::span(said.log_probabilities).subspan(needle.question.size() - 1));
  }

  /// -log p of each token of ordinary text.
  std::vector<float> losses(Sites* limits) {
    std::vector<int32_t> text = texts_.begin();
    // Of a text without special tokens the first has nothing before it.
    const size_t first = text.empty() ? 1 : 0;
    // Text that begins again is no ordinary text.
    const auto tokens = static_cast<size_t>(
        std::max(1, std::min(text_tokens(options_), texts_.filler_once() - static_cast<int32_t>(first))));
    const std::span<const int32_t> filler = std::span(texts_.filler()).first(tokens + first);
    if (first == 1) text.push_back(filler[0]);
    const size_t before = text.size() - 1;
    text.insert(text.end(), filler.begin() + static_cast<std::ptrdiff_t>(first), filler.end() - 1);
    read_.begin();
    read_.read(std::span(text).first(before), limits);
    std::vector<float> found =
        read_.read(std::span(text).subspan(before), limits, {.targets = filler.subspan(first)})
            .log_probabilities;
    for (float& p : found) p = -p;
    advance();
    return found;
  }

  void measure_text() {
    const std::vector<float> whole = losses(nullptr);
    const size_t tokens = whole.size(), stretches = std::min(kStretches, tokens);
    found_.text_loss = sum_of(whole) / static_cast<double>(tokens);
    for (size_t u = 0; u < units_.size(); ++u) {
      const std::vector<float> now = losses(&limits_[u]);
      std::vector<double> rises(stretches), counts(stretches);
      for (size_t i = 0; i < tokens; ++i) {
        const size_t stretch = i * stretches / tokens;
        rises[stretch] += static_cast<double>(now[i]) - static_cast<double>(whole[i]);
        counts[stretch] += 1;
      }
      found_.needs[u].loss_rise = jackknife(rises, counts);
    }
  }

  const LanguageModel& model_;
  const RetrievalOptions& options_;
  int32_t most_positions_;
  std::vector<std::vector<HeadName>> units_;
  NeedleTexts texts_;
  CachedText read_;
  NeedleWatch watch_;
  std::vector<LimitedHeads> limits_;                   // of each unit
  std::vector<std::vector<double>> scores_, weights_;  // [heads][needles], sums over trials
  std::vector<std::vector<double>> by_place_;          // [heads][lengths and depths so far]
  std::vector<std::vector<double>> falls_;             // [units][needles], likewise
  RetrievalReport found_;
  int64_t done_ = 0, all_ = 0;
};

}  // namespace

RetrievalReport heads_retrieval(const ModelFolder& folder, const RetrievalTexts& texts,
                                const RetrievalOptions& options) {
  folder.causal_model();
  check_retrieval(options);
  return Retrieval(folder, texts, options).run();
}

}  // namespace mh
