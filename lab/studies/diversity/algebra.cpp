// 001: diverse heads. What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lab/studies/claim_words.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/lab.h"

namespace mh::diversity {
namespace {

using namespace lab;

constexpr int kModel = 24, kHeads = 4, kSize = kModel / kHeads;

HeadGeometry plain(HeadInput input = {}) {
  return {.heads = kHeads, .input = std::move(input), .biases = Biases::kNone};
}

Matrix columns_of(const Matrix& packed, int h) {
  return columns(packed, h * kSize, (h + 1) * kSize);
}

double deviation(const Matrix& a) {
  return norm(a) / std::sqrt(static_cast<double>(a.size()));
}

struct Start {
  double deviation = 0;   // of w_q
  double similarity = 0;  // cosine of V_i W_i^O of heads 0 and 1
  double gradients = 0;   // largest difference of theirs
  double asymmetry = 0;   // largest |s_ij - s_ji| of head 0, as a part of the largest score
  bool symmetric() const { return asymmetry <= 1e-6; }
};
Start start_of(HeadInitialisation initialisation, uint64_t seed) {
  Random random(seed, 12);
  const Matrix x = random_matrix(9, kModel, random), towards = random_matrix(9, kModel, random);
  Layer layer({.heads = kHeads, .biases = Biases::kNone, .initialisation = initialisation}, kModel, seed);
  layer.output_gradients(x, towards);
  Start start{.deviation = deviation(layer.parameter("w_q"))};
  // What heads make of the values of all words, in the basis of the output, which is the same for all heads.
  const Matrix v = product(x, layer.parameter("w_v")), output = transposed(layer.parameter("w_o"));
  const auto made = [&](int h) { return product_transposed(columns_of(v, h), columns_of(output, h)); };
  start.similarity = cosine(made(0), made(1));
  for (const char* name : kProjections) {
    const Matrix g = layer.gradient(name);
    start.gradients = std::max(start.gradients, largest_difference(columns_of(g, 0), columns_of(g, 1)));
  }
  const Matrix s =
      scores(x, {columns_of(layer.parameter("w_q"), 0), columns_of(layer.parameter("w_k"), 0), {}, {}});
  start.asymmetry = largest_difference(s, transposed(s)) / largest(s);
  return start;
}

/// mistake 1: noise of 1e-6 is added to the equal heads; 2: the orthogonal start makes equal heads; 3: the W_i^O
/// are equal, too; 4: there is no noise; 5: Xavier's bound forgets the fan out; 6: the packed start is
/// compared with the fans (d, d_k); 7: W^K starts as it likes; 8: the start that is no copy is one.
Claim initialisations(const AlgebraCase& a) {
  using enum HeadInitialisation;
  struct Row {
    const char* name;
    HeadInitialisation initialisation;
    double fan_out;  // 0: not Xavier's
  };
  const auto unless = [&](int mistake, HeadInitialisation right, HeadInitialisation wrong) {
    return a.mistake == mistake ? wrong : right;
  };
  const Row rows[] = {{"Xavier, fans (d, d_k)", unless(8, kXavierHead, kCopiedKeys), kSize},
                      {"Xavier, fans (d, d)", kXavier, kModel},
                      {"Xavier, fans (d, 3 d)", kXavierPacked, 3 * kModel},
                      {"orthogonal by head", unless(2, kOrthogonal, kEqual), 0},
                      {"W^K a copy of W^Q", unless(7, kCopiedKeys, kXavier), 0},
                      {"all heads equal", unless(1, kEqual, kEqualWithNoise), 0},
                      {"equal but for W_i^O", unless(3, kEqualInput, kEqual), 0},
                      {"equal, noise of 1e-6", unless(4, kEqualWithNoise, kEqual), 0}};
  constexpr size_t kPerHead = 0, kWhole = 1, kPacked = 2, kCopy = 4, kTied = 5, kOtherOutput = 6, kNoise = 7;
  Claim claim = claim_without_figures("001.2");
  std::vector<Start> starts;
  double least = 1, off = 0;
  int symmetric = 0;
  for (const Row& row : rows) {
    const Start& start = starts.emplace_back(start_of(row.initialisation, a.seed));
    const size_t at = starts.size() - 1;
    if (at <= kCopy) least = std::min(least, start.gradients);
    if (at != kCopy) symmetric += start.symmetric();
    if (row.fan_out > 0) {  // of a uniform number within sqrt(6 / fans)
      const double expected = std::sqrt(2.0 / (kModel + (a.mistake == 5 ? 0 : row.fan_out)));
      off = std::max(off, std::abs(start.deviation / expected - 1));
    }
    claim.tables[0].rows.push_back(
        {row.name, fmt::format("{:.4f}", start.deviation), fmt::format("{:.3f}", start.similarity),
         fmt::format("{:.2g}", start.gradients), start.symmetric() ? "yes" : "no"});
  }
  const double smaller =
      starts[a.mistake == 6 ? kPerHead : kWhole].deviation / starts[kPacked].deviation / std::sqrt(2.0);
  const auto apart = [&](size_t at) {
    return fmt::format("largest difference of their gradients: {:.2g}", starts[at].gradients);
  };
  decide(claim, starts[kTied].gradients == 0, apart(kTied));
  decide(claim, least > 0, fmt::format("largest difference of their gradients: at least {:.2g}", least));
  decide(claim, starts[kOtherOutput].gradients > 0, apart(kOtherOutput));
  decide(claim, starts[kNoise].gradients > 0, apart(kNoise));
  decide(claim, off <= 0.05, fmt::format("at most {:.1f} % off", 100 * off));
  decide(claim, std::abs(smaller - 1) <= 0.05, fmt::format("{:.3f} times sqrt(2)", smaller));
  decide(claim, starts[kCopy].symmetric(),
         fmt::format("{:.2g} of the largest score", starts[kCopy].asymmetry));
  decide(claim, symmetric == 0, fmt::format("symmetric in {} of {} layers", symmetric, starts.size() - 1));
  return claim;
}

/// mistake 1: the rows are put one column further; 2: the rows outside the segments are 0 from the start.
Claim segments_are_canonical(const AlgebraCase& a) {
  Random random(a.seed, 14);
  const Matrix x = random_matrix(8, kModel, random);
  double worst = 0, least = 1;
  for (const HeadColumns& segments :
       {slice_columns(kHeads, kModel), permuted_slices(kHeads, kModel, a.seed),
        random_columns(kHeads, 9, kModel, a.seed), spread_segments(kHeads, 11, kModel)}) {
    Layer canonical(plain(), kModel, a.seed + 1), restricted(plain(), kModel, a.seed + 1);
    HeadGeometry geometry = plain(HeadInput::of_columns(segments));
    geometry.d_key = kSize;
    Layer segmented(geometry, kModel, a.seed);
    Matrix before = canonical.heads(x);
    for (const char* name : kProjections) {
      const Matrix w = segmented.parameter(name);  // [sum of segments, d_k]
      const Matrix free = canonical.parameter(name);
      Matrix whole(kModel, int64_t{kHeads} * kSize), kept = whole;
      int64_t row = 0;
      for (int h = 0; h < kHeads; ++h) {
        for (const int32_t c : segments[static_cast<size_t>(h)]) {
          for (int k = 0; k < kSize; ++k) {
            whole((c + (a.mistake == 1)) % kModel, h * kSize + k) = w(row, k);
            kept(c, h * kSize + k) = free(c, h * kSize + k);
          }
          ++row;
        }
      }
      canonical.set(name, whole);
      restricted.set(name, kept);
    }
    const Matrix expected = segmented.heads(x);
    worst = std::max(worst, relative_difference(canonical.heads(x), expected));
    const Matrix after = restricted.heads(x);
    if (a.mistake == 2) before = after;
    least = std::min(least, norm(sum(after, before, -1)) / norm(before));
  }
  Claim claim = claim_without_figures("001.4");
  decide(claim, worst <= 1e-6, fmt::format("largest relative difference {:.2g}", worst));
  decide(claim, least > 0.1, fmt::format("at least {:.2f} of the norm away", least));
  return claim;
}

constexpr double kMoved = 1e-4;  // of a head's largest output; float32 rounds to about 1e-7 of it

/// Rows of the embedding matrix for the words of a sentence.
Matrix embedded(const Matrix& embedding, const std::vector<int>& words) {
  Matrix x(static_cast<int64_t>(words.size()), embedding.cols());
  for (size_t t = 0; t < words.size(); ++t)
    std::copy_n(&embedding(words[t], 0), embedding.cols(), &x(static_cast<int64_t>(t), 0));
  return x;
}

/// How far each head's outputs are from `before`, as a part of its largest output.
std::vector<double> moves(Layer& layer, const Matrix& x, const Matrix& before) {
  const Matrix after = layer.heads(x);
  std::vector<double> found;
  for (int h = 0; h < kHeads; ++h) {
    const Matrix old = columns_of(before, h);
    found.push_back(relative_difference(columns_of(after, h), old));
  }
  return found;
}

Layer whole_or_cut(bool cut, uint64_t seed) {
  return Layer(plain(cut ? HeadInput::slices() : HeadInput{}), kModel, seed);
}

/// mistake 1, 2: the layer cuts its input; 3: the layer that should cut its input does not; 4: nothing is
/// exchanged.
Claim not_segmented(const AlgebraCase& a) {
  Random random(a.seed, 16);
  const Matrix embedding = random_matrix(11, kModel, random);
  const std::vector<int> words = {3, 0, 7, 3, 10, 5};
  const Matrix x = embedded(embedding, words);
  double exchanged = 1, alone = 1, others = 0, own = 1;
  Layer whole = whole_or_cut(a.mistake == 1, a.seed), cut = whole_or_cut(a.mistake != 3, a.seed);
  const Matrix whole_before = whole.heads(x), cut_before = cut.heads(x);
  for (int i = 0; i < kModel; ++i) {
    for (int j = 0; j < i; ++j) {
      Matrix changed = embedding;
      for (int64_t word = 0; word < changed.rows(); ++word) std::swap(changed(word, i), changed(word, j));
      const Matrix rows = embedded(changed, words);
      for (const double move : moves(whole, rows, whole_before)) exchanged = std::min(exchanged, move);
      const std::vector<double> cut_moves = moves(cut, a.mistake == 4 ? x : rows, cut_before);
      for (int h = 0; h < kHeads; ++h) {
        const double move = cut_moves[static_cast<size_t>(h)];
        if (i / kSize == h || j / kSize == h) {
          own = std::min(own, move);
        } else {
          others = std::max(others, move);
        }
      }
    }
  }
  Layer reader = whole_or_cut(a.mistake == 2, a.seed);
  const Matrix before = reader.heads(x);
  for (int i = 0; i < kModel; ++i) {
    Matrix changed = embedding;
    for (int64_t word = 0; word < changed.rows(); ++word) changed(word, i) += 1;
    for (const double move : moves(reader, embedded(changed, words), before)) alone = std::min(alone, move);
  }
  const auto least = [](double move) {
    return fmt::format("the smallest change is {:.2g} of a head's largest output", move);
  };
  Claim claim = claim_without_figures("001.6");
  decide(claim, exchanged >= kMoved, least(exchanged));
  decide(claim, alone >= kMoved, least(alone));
  decide(claim, others == 0, fmt::format("the largest change is {:.2g}", others));
  decide(claim, own >= kMoved, least(own));
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"001.2", initialisations},
                                    {"001.4", segments_are_canonical},
                                    {"001.6", not_segmented},
                                    {"001.7", merging}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::diversity
