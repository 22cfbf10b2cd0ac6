// Values that cannot be, passed at the library's door: each is an exception, and nothing is computed with it.
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "multihead/multihead.h"

namespace mh {
namespace {

constexpr int kModel = 12, kTokens = 5;

struct Layer {
  DropoutStreams streams;
  MultiHeadAttention layer{"layer", {.d_model = kModel, .geometry = {.heads = 3}}, streams};
  Batch rows{std::vector<std::vector<int32_t>>{{0, 1}, {2, 3, 4}}};
  Tape tape{Tape::Mode::kRecord};
  Context context{tape};

  Layer() {
    Random random(1);
    layer.initialise(random);
  }
  Var of_rows(int64_t tokens, int64_t columns) {
    kept.emplace_back(tokens, columns);
    return tape.constant(kept.back().view());
  }
  std::deque<Tensor> kept;
};

TEST(HostileValues, MasksAndThreads) {
  EXPECT_THROW(Mask::window(-1, 0), UsageError);
  EXPECT_THROW(Mask::window(0, -1), UsageError);
  EXPECT_THROW(Mask::dense({}), UsageError);
  for (const int threads : {-1, 0, kMostThreads + 1, std::numeric_limits<int>::max()}) {
    EXPECT_THROW(set_thread_count(threads), UsageError) << threads;
  }
}

TEST(HostileValues, RowsOfOtherShapes) {
  Layer x;
  EXPECT_NO_THROW(x.layer.self(x.context, x.of_rows(kTokens, kModel), x.rows.view(), Mask::none()));
  EXPECT_THROW(x.layer.self(x.context, x.of_rows(kTokens, kModel + 1), x.rows.view(), Mask::none()), Error);
  EXPECT_THROW(x.layer.self(x.context, x.of_rows(kTokens, kModel - 5), x.rows.view(), Mask::none()), Error);
  EXPECT_THROW(x.layer.self(x.context, x.of_rows(kTokens + 1, kModel), x.rows.view(), Mask::none()), Error);
  EXPECT_THROW(x.layer.self(x.context, x.of_rows(kTokens - 1, kModel), x.rows.view(), Mask::none()), Error);
  const std::vector<int32_t> offsets = {0, 3, 7}, too_few = {0, 7}, falling = {0, 9, 7};
  const auto cross = [&](int64_t rows, int64_t columns, const std::vector<int32_t>& at) {
    x.layer.cross(x.context, x.of_rows(kTokens, kModel), x.rows.view(), x.of_rows(rows, columns), at);
  };
  EXPECT_NO_THROW(cross(7, kModel, offsets));
  EXPECT_THROW(cross(7, kModel + 3, offsets), Error);
  EXPECT_THROW(cross(6, kModel, offsets), Error);
  EXPECT_THROW(cross(7, kModel, too_few), Error);
  EXPECT_THROW(cross(7, kModel, falling), Error);
}

TEST(HostileValues, Gradients) {
  Layer x;
  const Var y = x.layer.self(x.context, x.of_rows(kTokens, kModel), x.rows.view(), Mask::none());
  std::as_const(x.layer).visit("", ConstParameterVisitor([](const std::string&, const Parameter& parameter) {
                                 EXPECT_THROW(parameter.gradient.view(), UsageError);
                               }));
  EXPECT_THROW(x.tape.backward(), ShapeError);  // no single number, and no gradient to start from
  const Tensor wide(kTokens, kModel + 1), right(kTokens, kModel);
  EXPECT_THROW(x.tape.seed(y, wide.view()), ShapeError);
  EXPECT_THROW(x.tape.seed(x.of_rows(2, 2), Tensor(2, 2).view()), ShapeError);  // no gradient flows there
  EXPECT_NO_THROW(x.tape.seed(y, right.view()));
  EXPECT_NO_THROW(x.tape.backward());
  Tape evaluates;
  EXPECT_THROW(evaluates.backward(), UsageError);
}

TEST(HostileValues, Descriptions) {
  DropoutStreams streams;
  for (const HeadGeometry& heads :
       {HeadGeometry{.heads = 0}, HeadGeometry{.heads = -3}, HeadGeometry{.heads = 5},
        HeadGeometry{.d_key = -1}, HeadGeometry{.heads = 3, .key_heads = 2},
        HeadGeometry{.heads = 3, .d_key = 5000}}) {
    EXPECT_THROW(MultiHeadAttention("layer", {.d_model = kModel, .geometry = heads}, streams), UsageError);
    EXPECT_THROW(ledger(heads, kModel, 3, 3), UsageError);
  }
  EXPECT_THROW(MultiHeadAttention("layer", {.d_model = 0, .geometry = {.heads = 1}}, streams), UsageError);
  EXPECT_THROW(ledger({.heads = 3}, kModel, -1, 3), UsageError);
  EXPECT_THROW(random_columns(3, 0, kModel, 1), UsageError);
  EXPECT_THROW(spread_segments(3, kModel + 1, kModel), UsageError);
  EXPECT_THROW(named_geometry("no such heads", 3, kModel), Error);
}

TEST(HostileValues, ViewsAndLengths) {
  const Tensor x(3, 5);
  EXPECT_THROW(x.view().rows_between(1, 4), ShapeError);
  EXPECT_THROW(x.view().rows_between(-1, 2), ShapeError);
  EXPECT_THROW(x.view().columns_between(2, 1), ShapeError);
  Ragged lengths;
  EXPECT_THROW(lengths.add(-1), ShapeError);
  EXPECT_THROW(Tensor(-1, 3), ShapeError);
  EXPECT_THROW(Tensor(int64_t{1} << 40, int64_t{1} << 40), ShapeError);
}

TEST(HostileValues, Texts) {
  const std::vector<std::string> none, one = {"a dog"}, broken = {"\xff"};
  EXPECT_THROW(train_bpe(none), FormatError);
  EXPECT_THROW(train_bpe(broken), FormatError);
  EXPECT_THROW(train_bpe(one, {.vocabulary_size = -1}), UsageError);
  EXPECT_THROW(corpus_bleu(one, {}), FormatError);
  EXPECT_THROW(paired_bootstrap({}, {}), Error);
  EXPECT_THROW(train_translator({}), UsageError);
  EXPECT_THROW(load_model_folder("nowhere"), FileError);
  EXPECT_THROW(load_sentence_model("nowhere"), FileError);
  EXPECT_THROW(embed_text(SentenceModel(), one), UsageError);
  EXPECT_THROW(nearest_rows(Tensor(1, 2).view(), Tensor(1, 3).view(), 1), ShapeError);
  EXPECT_THROW(cosine(Tensor(1, 2).view(), 0, -1), UsageError);
  EXPECT_THROW(parse_head_name("encoder"), UsageError);
  EXPECT_THROW(heat_map(Tensor(1, 1).view(), one, one, {.columns = 3}), UsageError);
  EXPECT_THROW(heat_map(Tensor(2, 2).view(), one, one), ShapeError);  // a label for each row and column
}

}  // namespace
}  // namespace mh
