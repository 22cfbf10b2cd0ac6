#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/studies/claim_words.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/lab.h"
#include "multihead/base/ragged.h"
#include "multihead/heads/sites/site_values.h"

namespace mh::diversity {
namespace {

using namespace lab;

constexpr int kWords = 5, kRowSize = 12, kMerged = 3, kHeadSize = kRowSize / kMerged;  // T, d, h, d_v

/// Columns of head h in a packed matrix.
Matrix of_head(const Matrix& packed, int h) {
  return columns(packed, h * kHeadSize, (h + 1) * kHeadSize);
}

/// What each head computes in a layer of its own: [T, d_v] for each.
std::vector<Matrix> outputs_apart(Layer& layer, const Matrix& x, uint64_t seed) {
  std::vector<Matrix> outputs;
  for (int h = 0; h < kMerged; ++h) {
    Layer alone({.heads = 1, .d_key = kHeadSize, .biases = Biases::kNone}, kRowSize, seed);
    for (const char* name : kProjections) alone.set(name, of_head(layer.parameter(name), h));
    outputs.push_back(alone.heads(x));
  }
  return outputs;
}

/// The memory of [T, h, d_v], written word by word, or of [h, T, d_v], written head by head, as [T, h d_v].
Matrix reshaped(const std::vector<Matrix>& outputs, bool word_by_word) {
  Matrix memory(kWords, kRowSize);
  double* at = memory.data();
  for (int i = 0; i < kWords * kMerged; ++i) {
    const int head = word_by_word ? i % kMerged : i / kWords;
    at = std::copy_n(&outputs[static_cast<size_t>(head)](word_by_word ? i / kMerged : i % kWords, 0),
                     kHeadSize, at);
  }
  return memory;
}

/// A_h V_h from the layer's own weights A_h [T, T] and values V_h; with a shift V of a later head.
Matrix averaged(Layer& layer, const Matrix& x, int shift) {
  Tensor rows = in_float(x);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{kWords});
  const std::string name = layer.attention().name();
  SiteValues seen;
  for (const char* part : {".weights.*", ".values"}) seen.keep(name + part);
  Tape tape;
  Context context{.tape = tape, .sites = &seen};
  layer.attention().self_heads(context, tape.constant(rows.view()),
                               {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::none());
  std::vector<Matrix> parts;
  for (int h = 0; h < kMerged; ++h) {
    parts.push_back(product(in_double(seen.kept(fmt::format("{}.weights.{}", name, h)).sequence(0)),
                            of_head(in_double(seen.value(name + ".values").view()), (h + shift) % kMerged)));
  }
  return beside(parts);
}

/// How many heads' outputs differ at all.
int heads_changed(const Matrix& a, const Matrix& b) {
  int changed = 0;
  for (int h = 0; h < kMerged; ++h) changed += largest_difference(of_head(a, h), of_head(b, h)) > 0;
  return changed;
}

/// Of heads whose columns of W^Q, W^K and W^V are changed: how often that head changes, and how often another.
struct Changes {
  int own = 0, other = 0;
};
Changes change_stacked(Layer& layer, const Matrix& x, int shift) {
  const Matrix before = layer.heads(x);
  Changes changes;
  for (int h = 0; h < kMerged; ++h) {
    for (const char* name : kProjections) {
      const Matrix kept = layer.parameter(name);
      Matrix w = kept;
      for (int r = 0; r < kRowSize; ++r) {
        for (int c = 0; c < kHeadSize; ++c) w(r, (h * kHeadSize + c + shift) % kRowSize) *= 2;
      }
      layer.set(name, w);
      const Matrix after = layer.heads(x);
      const bool own = largest_difference(of_head(after, h), of_head(before, h)) > 0;
      changes.own += own;
      changes.other += heads_changed(after, before) - own;
      layer.set(name, kept);
    }
  }
  return changes;
}

/// The fewest heads that change when a part d/h of every embedding is set to 0.
int fewest_readers(Layer& layer, const Matrix& x) {
  const Matrix before = layer.heads(x);
  int fewest = kMerged;
  for (int part = 0; part < kMerged; ++part) {
    Matrix without = x;
    for (int64_t t = 0; t < x.rows(); ++t) std::fill_n(&without(t, part * kHeadSize), kHeadSize, 0.0);
    fewest = std::min(fewest, heads_changed(layer.heads(without), before));
  }
  return fewest;
}

}  // namespace

/// mistake 1: the outputs are laid out head by head; 2: the outputs are laid out word by word; 3: the blocks of
/// row 0 are taken for those of word 0; 4: each head averages the values of the next; 5: W^O is left out; 6: the
/// columns that are changed begin one column later; 7: the layer cuts its input.
Claim merging(const AlgebraCase& a) {
  Random random(a.seed, 17);
  const Matrix x = random_matrix(kWords, kRowSize, random);
  const HeadGeometry geometry{.heads = kMerged, .biases = Biases::kNone};
  Layer layer(geometry, kRowSize, a.seed);
  const Matrix concat = layer.heads(x);
  const std::vector<Matrix> apart = outputs_apart(layer, x, a.seed);
  const Matrix from_words = reshaped(apart, a.mistake != 1), from_heads = reshaped(apart, a.mistake == 2);
  const double by_words = relative_difference(from_words, concat),
               by_heads = norm(sum(from_heads, concat, -1)) / norm(concat);

  // Block b of row 0 is head 0 of word b.
  const Matrix rows = reshaped(apart, false);
  double first_row = 0;
  for (int c = 0; c < kRowSize; ++c) {
    const double expected = a.mistake == 3 ? concat(0, c) : apart[0](c / kHeadSize, c % kHeadSize);
    first_row = std::max(first_row, std::abs(rows(0, c) - expected));
  }
  const double average = relative_difference(averaged(layer, x, a.mistake == 4), concat);
  const double projected =
      relative_difference(a.mistake == 5 ? concat : product(concat, layer.parameter("w_o")), layer.output(x));
  const Changes changes = change_stacked(layer, x, a.mistake == 6);
  HeadGeometry reads = geometry;
  if (a.mistake == 7) reads.input = HeadInput::slices();
  Layer reader(reads, kRowSize, a.seed);
  const int readers = fewest_readers(reader, x);

  const auto relative = [](double difference) {
    return fmt::format("largest relative difference {:.2g}", difference);
  };
  Claim claim = claim_without_figures("001.7");
  decide(claim, by_words <= 1e-6, relative(by_words));
  decide(claim, by_heads > 0.1, fmt::format("{:.2f} of the norm away", by_heads));
  decide(claim, first_row == 0, fmt::format("largest difference {:.2g}", first_row));
  decide(claim, average <= 1e-5,
         fmt::format("{}; A_i is [{}, {}], its merged block [{}, {}]", relative(average), kWords, kWords,
                     kWords, kHeadSize));
  decide(claim, projected <= 1e-5, relative(projected));
  decide(claim, changes.own == 3 * kMerged && changes.other == 0,
         fmt::format("head i changed in {} cases, another one in {}", changes.own, changes.other));
  decide(claim, readers == kMerged, fmt::format("each part changes {} heads or more", readers));
  const auto row = [&](const char* from, const Matrix& m) {
    const auto first_of_blocks = [&](int word) {
      return fmt::format("{:.3f}  {:.3f}  {:.3f}", m(word, 0), m(word, kHeadSize), m(word, 2 * kHeadSize));
    };
    claim.tables[0].rows.push_back({from, first_of_blocks(0), first_of_blocks(1)});
  };
  row("the layer's Concat(head_0, head_1, head_2)", concat);
  row("[T, h, d_v] reshaped", from_words);
  row("[h, T, d_v] reshaped", from_heads);
  return claim;
}

}  // namespace mh::diversity
