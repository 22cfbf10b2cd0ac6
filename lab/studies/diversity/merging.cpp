#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/studies/diversity/algebra.h"
#include "lab/studies/lab.h"
#include "multihead/base/ragged.h"
#include "multihead/heads/site_values.h"

namespace mh::diversity {
namespace {

using lab::Matrix;

constexpr int kWords = 5, kRowSize = 12, kMerged = 3, kHeadSize = kRowSize / kMerged;  // T, d, h, d_v

/// Columns of head h in a packed matrix.
Matrix of_head(const Matrix& packed, int h) {
  return lab::columns(packed, h * kHeadSize, (h + 1) * kHeadSize);
}

/// What each head computes in a layer of its own: [T, d_v] for each.
std::vector<Tensor> outputs_apart(lab::Layer& layer, const Matrix& x, uint64_t seed) {
  std::vector<Tensor> outputs;
  for (int h = 0; h < kMerged; ++h) {
    lab::Layer alone({.heads = 1, .d_key = kHeadSize, .biases = Biases::kNone}, kRowSize, seed);
    for (const char* name : {"w_q", "w_k", "w_v"}) alone.set(name, of_head(layer.parameter(name), h));
    outputs.push_back(lab::in_float(alone.heads(x)));
  }
  return outputs;
}

/// The same memory as [T, h d_v], after the outputs were written one after the other: as [T, h, d_v] word by
/// word, or as [h, T, d_v] head by head.
Matrix reshaped(const std::vector<Tensor>& outputs, bool word_by_word) {
  Tensor memory(int64_t{kWords} * kMerged, kHeadSize);
  int64_t row = 0;
  const int outer = word_by_word ? kWords : kMerged, inner = word_by_word ? kMerged : kWords;
  for (int i = 0; i < outer; ++i) {
    for (int j = 0; j < inner; ++j, ++row) {
      const int word = word_by_word ? i : j, head = word_by_word ? j : i;
      std::copy_n(outputs[static_cast<size_t>(head)].view().row(word), kHeadSize, memory.view().row(row));
    }
  }
  return in_double(ConstMatrixView(memory.data(), kWords, int64_t{kMerged} * kHeadSize));
}

/// A_h V_h from the layer's own weights A_h [T, T] and values V_h; with a shift V of a later head.
Matrix averaged(lab::Layer& layer, const Matrix& x, int shift) {
  Tensor rows = lab::in_float(x);
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
    parts.push_back(
        lab::product(in_double(seen.kept(fmt::format("{}.weights.{}", name, h)).sequence(0)),
                     of_head(in_double(seen.value(name + ".values").view()), (h + shift) % kMerged)));
  }
  return lab::beside(parts);
}

/// How many heads' outputs differ at all.
int heads_changed(const Matrix& a, const Matrix& b) {
  int changed = 0;
  for (int h = 0; h < kMerged; ++h) changed += lab::largest_difference(of_head(a, h), of_head(b, h)) > 0;
  return changed;
}

/// Of heads whose columns of W^Q, W^K and W^V are changed: how often that head changes, and how often another.
struct Changes {
  int own = 0, other = 0;
};
Changes change_stacked(lab::Layer& layer, const Matrix& x, int shift) {
  const Matrix before = layer.heads(x);
  Changes changes;
  for (int h = 0; h < kMerged; ++h) {
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      const Matrix kept = layer.parameter(name);
      Matrix w = kept;
      for (int r = 0; r < kRowSize; ++r) {
        for (int c = 0; c < kHeadSize; ++c) w(r, (h * kHeadSize + c + shift) % kRowSize) *= 2;
      }
      layer.set(name, w);
      const Matrix after = layer.heads(x);
      const bool own = lab::largest_difference(of_head(after, h), of_head(before, h)) > 0;
      changes.own += own;
      changes.other += heads_changed(after, before) - own;
      layer.set(name, kept);
    }
  }
  return changes;
}

/// The fewest heads that change when a part d/h of every embedding is set to 0.
int fewest_readers(lab::Layer& layer, const Matrix& x) {
  const Matrix before = layer.heads(x);
  int fewest = kMerged;
  for (int part = 0; part < kMerged; ++part) {
    Matrix without = x;
    for (int64_t t = 0; t < x.rows(); ++t) std::fill_n(&without(t, part * kHeadSize), kHeadSize, 0.0);
    fewest = std::min(fewest, heads_changed(layer.heads(without), before));
  }
  return fewest;
}

Table rows_of_first_words(const Matrix& concat, const Matrix& words, const Matrix& heads) {
  Table table{
      "the first number of each block of d_v, for the first two words", {"from", "word 0", "word 1"}, {}};
  const auto row = [](const Matrix& m, int t) {
    std::string text;
    for (int h = 0; h < kMerged; ++h)
      text += fmt::format("{}{:.3f}", h == 0 ? "" : "  ", m(t, h * kHeadSize));
    return text;
  };
  table.rows = {{"the layer's Concat(head_0, head_1, head_2)", row(concat, 0), row(concat, 1)},
                {"[T, h, d_v] reshaped", row(words, 0), row(words, 1)},
                {"[h, T, d_v] reshaped", row(heads, 0), row(heads, 1)}};
  return table;
}

}  // namespace

/// mistake 1: the outputs are laid out head by head; 2: the outputs are laid out word by word; 3: the blocks of
/// row 0 are taken for those of word 0; 4: each head averages the values of the next; 5: W^O is left out; 6: the
/// columns that are changed begin one column later; 7: the layer cuts its input.
Claim merging(const AlgebraCase& a) {
  Claim claim{
      .id = "001.7",
      .statement =
          "The weights of all heads lie side by side in W^Q, W^K and W^V, not in the embedding matrix; what "
          "is merged in the end are the heads' outputs, not their scores.",
      .original_words =
          "\"At the input embedding layer weights for each head are stacked together in the single "
          "embedding matrix.\" \"The attention score of each head is merged by simply reshaping the full "
          "attention score matrix\" (after Doshi).",
      .original_remark = "The answer leaves out W^O, which follows the merge."};
  Random random(a.seed, 17);
  const Matrix x = lab::random_matrix(kWords, kRowSize, random);
  const HeadGeometry geometry{.heads = kMerged, .biases = Biases::kNone};
  lab::Layer layer(geometry, kRowSize, a.seed);
  const Matrix concat = layer.heads(x);
  const auto distance = [&](const Matrix& m) {
    return lab::largest_difference(m, concat) / lab::largest(concat);
  };
  const std::vector<Tensor> apart = outputs_apart(layer, x, a.seed);
  const Matrix from_words = reshaped(apart, a.mistake != 1), from_heads = reshaped(apart, a.mistake == 2);
  const double by_words = distance(from_words),
               by_heads = lab::norm(lab::sum(from_heads, concat, -1)) / lab::norm(concat);

  double first_row = 0;
  for (int block = 0; block < kMerged; ++block) {
    for (int c = 0; c < kHeadSize; ++c) {
      const double expected =
          a.mistake == 3 ? concat(0, block * kHeadSize + c) : apart[0](block, c);  // head 0 of word `block`
      first_row = std::max(first_row, std::abs(reshaped(apart, false)(0, block * kHeadSize + c) - expected));
    }
  }
  const double average = distance(averaged(layer, x, a.mistake == 4));
  const Matrix output = layer.output(x);
  const double projected =
      lab::largest_difference(a.mistake == 5 ? concat : lab::product(concat, layer.parameter("w_o")),
                              output) /
      lab::largest(output);
  const Changes changes = change_stacked(layer, x, a.mistake == 6);
  HeadGeometry reads = geometry;
  if (a.mistake == 7) reads.input = HeadInput::slices();
  lab::Layer reader(reads, kRowSize, a.seed);
  const int readers = fewest_readers(reader, x);

  claim.clauses = {
      algebraic(
          "Outputs of the heads that lie as [T, h, d_v] are merged by a bare reshape: it is the layer's "
          "Concat(head_1, ..., head_h).",
          "largest relative difference at most 1e-6",
          fmt::format("largest relative difference {:.2g}", by_words), by_words <= 1e-6, OriginalSays::kSame),
      algebraic("Outputs that lie as [h, T, d_v] are not merged by a bare reshape: it mixes the words.",
                "more than 0.1 of the norm away from the layer's Concat",
                fmt::format("{:.2f} of the norm away", by_heads), by_heads > 0.1, OriginalSays::kOpposite),
      algebraic(
          "After a bare reshape of [h, T, d_v] the row of word 0 holds head 0 of words 0, 1, ..., h - 1.",
          "differences of exactly 0", fmt::format("largest difference {:.2g}", first_row), first_row == 0),
      algebraic("What is merged are not the scores but the outputs A_i V_i of the heads.",
                "the layer's weights times its values equal its Concat; relative difference at most 1e-5",
                fmt::format("largest relative difference {:.2g}; A_i is [{}, {}], its merged block [{}, {}]",
                            average, kWords, kWords, kWords, kHeadSize),
                average <= 1e-5, OriginalSays::kOpposite),
      algebraic("After the merge the layer multiplies with W^O.",
                "Concat W^O equals the layer's output; relative difference at most 1e-5",
                fmt::format("largest relative difference {:.2g}", projected), projected <= 1e-5),
      algebraic(
          "The weights of all heads do lie side by side, in W^Q, W^K and W^V: columns i d_k to (i + 1) d_k "
          "belong to head i alone.",
          fmt::format("doubling them changes head i and no other, in all of {} cases", 3 * kMerged),
          fmt::format("head i changed in {} cases, another one in {}", changes.own, changes.other),
          changes.own == 3 * kMerged && changes.other == 0, OriginalSays::kSame),
      algebraic("The weights of heads do not lie in the embedding matrix: no part d/h of an embedding "
                "belongs to one head.",
                fmt::format("setting any of the {} parts to 0 changes all {} heads", kMerged, kMerged),
                fmt::format("each part changes {} heads or more", readers), readers == kMerged,
                OriginalSays::kOpposite)};
  claim.tables.push_back(rows_of_first_words(concat, from_words, from_heads));
  return claim;
}

}  // namespace mh::diversity
