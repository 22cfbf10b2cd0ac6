#include "multihead/models/next_words.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/finite.h"

namespace mh {
namespace {

/// 0, 1, ..., count - 1.
std::vector<int32_t> numbers_below(int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

template <class Body>
auto NextWords::blaming(const Body& body) const {
  try {
    return body();
  } catch (const NotFinite& found) {
    throw_not_finite(found.numbers(), context_.blame());
  }
}

Var NextWords::logits() {
  if (!logits_) {
    const Var made = blaming([&] { return head_.logits(context_.tape, states_); });
    logits_ = context_.at(head_.site(), {.value = made, .rows = rows_});
    require_finite(logits_->value(), "logits", context_.blame());
  }
  return *logits_;
}

void NextWords::best(const NextOptions& options, std::span<Candidate> out, VocabularyScratch& scratch) {
  if (!wanted()) return blaming([&] { head_.best_next(states_.value(), options, out, scratch); });
  check_candidates(options);
  const ConstMatrixView logits = this->logits().value();
  const auto k = static_cast<size_t>(options.candidates);
  std::vector<float> left;  // the logits of a row; those of suppressed tokens are -infinity
  std::vector<int32_t> tokens = numbers_below(logits.cols);
  for (int64_t i = 0; i < logits.rows; ++i) {
    const std::span<const float> row(logits.row(i), static_cast<size_t>(logits.cols));
    const double log_sum = log_sum_exp(row);
    left.assign(row.begin(), row.end());
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    for (const int32_t token : options.suppressed) left[static_cast<size_t>(token)] = kNever;
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(k);
    std::partial_sort(tokens.begin(), end, tokens.end(), [&](int32_t a, int32_t b) {
      const float of_a = left[static_cast<size_t>(a)], of_b = left[static_cast<size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    std::transform(tokens.begin(), end, out.begin() + i * options.candidates, [&](int32_t token) {
      return Candidate{token,
                       static_cast<float>(static_cast<double>(row[static_cast<size_t>(token)]) - log_sum)};
    });
  }
}

std::vector<float> NextWords::log_probabilities(std::span<const int32_t> targets,
                                                VocabularyScratch& scratch) {
  if (!wanted()) return blaming([&] { return head_.log_probabilities(states_.value(), targets, scratch); });
  return log_probabilities(numbers_below(std::ssize(targets)), targets, scratch);
}

std::vector<float> NextWords::log_probabilities(std::span<const int32_t> rows,
                                                std::span<const int32_t> targets,
                                                VocabularyScratch& scratch) {
  if (!wanted()) {
    Tensor states(std::ssize(rows), states_.cols());
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(states_.value().row(rows[i]), states.cols(), states.view().row(static_cast<int64_t>(i)));
    return blaming([&] { return head_.log_probabilities(std::as_const(states).view(), targets, scratch); });
  }
  const ConstMatrixView logits = this->logits().value();
  std::vector<float> found;
  for (size_t i = 0; i < rows.size(); ++i)
    found.push_back(log_probability({logits.row(rows[i]), static_cast<size_t>(logits.cols)}, targets[i]));
  return found;
}

Var NextWords::cross_entropy(const CrossEntropyOptions& options, VocabularyScratch& scratch,
                             CrossEntropySums& sums) {
  Tape& tape = context_.tape;
  if (!wanted()) return blaming([&] { return head_.cross_entropy(tape, states_, options, scratch, sums); });
  const Var log_p = ops::log_softmax(tape, logits());
  const Var of_targets = ops::pick(tape, log_p, numbers_below(log_p.rows()), options.targets);
  const auto sum_of = [](Var x) {
    double sum = 0;
    for (int64_t i = 0; i < x.rows(); ++i)
      sum = std::accumulate(x.value().row(i), x.value().row(i) + x.cols(), sum);
    return sum;
  };
  const double e = static_cast<double>(options.label_smoothing),
               spread = e / static_cast<double>(head_.size());
  sums.negative_log_likelihood = -sum_of(of_targets);
  sums.smoothed = (1 - e) * sums.negative_log_likelihood - spread * sum_of(log_p);
  const auto by = [&](double share) {
    return static_cast<float>(-share * static_cast<double>(options.scale));
  };
  return ops::add(tape, ops::scale(tape, ops::sum(tape, of_targets), by(1 - e)),
                  ops::scale(tape, ops::sum(tape, log_p), by(spread)));
}

}  // namespace mh
