#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lab/studies/diversity/algebra.h"
#include "lab/studies/lab.h"

namespace mh::diversity {
namespace {

using lab::Matrix;

constexpr int kColumns = 24, kReaders = 4, kSlice = kColumns / kReaders;  // d, h, d/h
constexpr double kMoved = 1e-4;  // of a head's largest output; float32 rounds to about 1e-7 of it

/// Rows of the embedding matrix for the words of a sentence.
Matrix embedded(const Matrix& embedding, const std::vector<int>& words) {
  Matrix x(static_cast<int64_t>(words.size()), embedding.cols());
  for (size_t t = 0; t < words.size(); ++t)
    std::copy_n(&embedding(words[t], 0), embedding.cols(), &x(static_cast<int64_t>(t), 0));
  return x;
}

void exchange_columns(Matrix& m, int a, int b) {
  for (int64_t r = 0; r < m.rows(); ++r) std::swap(m(r, a), m(r, b));
}

/// How far each head's outputs are from `before`, as a part of its largest output.
std::vector<double> moves(lab::Layer& layer, const Matrix& x, const Matrix& before) {
  const Matrix after = layer.heads(x);
  std::vector<double> found;
  for (int h = 0; h < kReaders; ++h) {
    const Matrix old = lab::columns(before, h * kSlice, (h + 1) * kSlice);
    found.push_back(lab::largest_difference(lab::columns(after, h * kSlice, (h + 1) * kSlice), old) /
                    lab::largest(old));
  }
  return found;
}

lab::Layer layer_of(bool cut, uint64_t seed) {
  return {{.heads = kReaders, .input = cut ? HeadInput::slices() : HeadInput{}, .biases = Biases::kNone},
          kColumns,
          seed};
}

}  // namespace

/// mistake 1, 2: the layer cuts its input; 3: the layer that should cut its input does not; 4: nothing is
/// exchanged.
Claim not_segmented(const AlgebraCase& a) {
  Claim claim{
      .id = "001.6",
      .statement =
          "Canonical heads do not segment the embedding: exchange two columns of the embedding matrix, so "
          "two numbers of every row, and the output of every head changes.",
      .original_words =
          "\"The embedding vectors for the input gets 'segmented' across multiple heads and therefore "
          "different "
          "sections of the embedding can attend different per-head subspaces.\"",
      .original_remark =
          "In a program the projected row x W^Q is cut into h parts; that may have been meant."};
  Random random(a.seed, 16);
  const Matrix embedding = lab::random_matrix(11, kColumns, random);
  const std::vector<int> words = {3, 0, 7, 3, 10, 5};
  const Matrix x = embedded(embedding, words);
  double exchanged = 1, alone = 1, others = 0, own = 1;
  int pairs = 0;
  lab::Layer whole = layer_of(a.mistake == 1, a.seed), cut = layer_of(a.mistake != 3, a.seed);
  const Matrix whole_before = whole.heads(x), cut_before = cut.heads(x);
  for (int i = 0; i < kColumns; ++i) {
    for (int j = 0; j < i; ++j, ++pairs) {
      Matrix changed = embedding;
      exchange_columns(changed, i, j);
      const Matrix rows = embedded(changed, words);
      for (const double move : moves(whole, rows, whole_before)) exchanged = std::min(exchanged, move);
      const std::vector<double> cut_moves = moves(cut, a.mistake == 4 ? x : rows, cut_before);
      for (int h = 0; h < kReaders; ++h) {
        const double move = cut_moves[static_cast<size_t>(h)];
        if (i / kSlice == h || j / kSlice == h) {
          own = std::min(own, move);
        } else {
          others = std::max(others, move);
        }
      }
    }
  }
  lab::Layer reader = layer_of(a.mistake == 2, a.seed);
  const Matrix before = reader.heads(x);
  for (int i = 0; i < kColumns; ++i) {
    Matrix changed = embedding;
    for (int64_t word = 0; word < changed.rows(); ++word) changed(word, i) += 1;
    for (const double move : moves(reader, embedded(changed, words), before)) alone = std::min(alone, move);
  }
  const auto least = [](double move) {
    return fmt::format("the smallest change is {:.2g} of a head's largest output", move);
  };
  claim.clauses = {
      algebraic(
          "Exchanging any two numbers of every embedding changes the output of every canonical head.",
          fmt::format("at least 1e-4 of its largest output, for all {} pairs and {} heads", pairs, kReaders),
          least(exchanged), exchanged >= kMoved, OriginalSays::kOpposite),
      algebraic("Changing any one number of every embedding changes the output of every canonical head.",
                fmt::format("at least 1e-4 of its largest output, for all {} numbers and {} heads", kColumns,
                            kReaders),
                least(alone), alone >= kMoved, OriginalSays::kOpposite),
      algebraic("In a layer that does cut its input, exchanging two numbers of other slices leaves a head's "
                "output as it is.",
                "changes of exactly 0", fmt::format("the largest change is {:.2g}", others), others == 0),
      algebraic("In a layer that cuts its input, an exchange in which a head's own slice takes part changes "
                "that head's output.",
                "at least 1e-4 of its largest output for each such pair", least(own), own >= kMoved)};
  return claim;
}

}  // namespace mh::diversity
