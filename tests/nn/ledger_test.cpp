// The ledger equals counts: of the layer's own parameters and memory, and of the operations of a reference
// that runs the formula on counting numbers.
#include "multihead/nn/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "multihead/nn/multi_head_attention.h"
#include "tests/nn/geometries/counted_layer.h"
#include "tests/nn/geometries/suites.h"

namespace mh {
namespace {

using test::Count;
using test::counted;
using testing::HasSubstr;
using testing::ThrowsMessage;

using test::Case;
using test::LedgerOf;

std::vector<Count> counts_of(const Ledger& ledger) {
  std::vector<Count> counts;
  for (const LedgerPart& p : ledger.parts)
    counts.push_back({p.name, p.multiply_adds, p.other_flops, p.exponentials});
  return counts;
}

MultiHeadAttentionConfig config_of(const test::Case& c) {
  return {.d_model = c.d_model,
          .geometry = c.geometry,
          .positions = c.order.positions,
          .disentangled = c.order.disentangled};
}

TEST_P(LedgerOf, HasTheLayersParameters) {
  DropoutStreams streams;
  MultiHeadAttention layer("layer", config_of(c), streams);
  int64_t all = 0, output = 0, values = 0;
  layer.visit("", [&](const std::string& name, Parameter& p) {
    all += p.value.size();
    if (name == ".w_o" || name == ".b_o") output += p.value.size();
    if (name == ".w_v" || name == ".b_v" || name == ".w_before_v") values += p.value.size();
  });
  const Ledger found = ledger(c.geometry, c.d_model, 3, 5,
                              {.positions = c.order.positions, .disentangled = c.order.disentangled});
  EXPECT_EQ(found.total().parameters, all);
  EXPECT_EQ(found.part("output").parameters, output);
  EXPECT_EQ(found.part("values").parameters, values);
  EXPECT_EQ(found.total().weight_bytes(), 4 * all);
}

TEST_P(LedgerOf, CountsTheOperationsOfTheFormula) {
  const auto expected = [&](int64_t tokens_q, int64_t tokens_k, bool own_rows, const Mask& mask) {
    return counted(completed_geometry, c.d_model, tokens_q, tokens_k, own_rows, mask, c.order);
  };
  const auto found = [&](int64_t tokens_q, int64_t tokens_k, LedgerOptions options = {}) {
    options.positions = c.order.positions;
    options.disentangled = c.order.disentangled;
    return counts_of(ledger(c.geometry, c.d_model, tokens_q, tokens_k, options));
  };
  EXPECT_EQ(found(3, 5), expected(3, 5, false, Mask::none()));
  EXPECT_EQ(found(5, 5), expected(5, 5, true, Mask::none()));
  EXPECT_EQ(found(5, 5, {.keys = LedgerOptions::Keys::kMemory}), expected(5, 5, false, Mask::none()));
  EXPECT_EQ(found(5, 5, {.mask = Mask::causal()}), expected(5, 5, true, Mask::causal()));
  EXPECT_EQ(found(3, 7, {.mask = Mask::window(2, 1)}), expected(3, 7, false, Mask::window(2, 1)));
}

// Of the tape's memory, all but its own notes and the last product is what the ledger says is kept.
TEST_P(LedgerOf, KeepsWhatTheTapeHolds) {
  // So that the notes are small beside it, and matrices of Tq x Tk are not too large.
  const int64_t tokens = test::weight_oracle(c.geometry).composed() ? 96 : 1536;
  DropoutStreams streams;
  MultiHeadAttention layer("layer", config_of(c), streams);
  Tensor x(tokens, c.d_model);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(tokens)});
  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape};
  const Var input = tape.constant(x.view());
  const size_t before = tape.arena().in_use();
  layer.self_heads(context, input, {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::window(1, 1));
  const auto used = static_cast<int64_t>(tape.arena().in_use() - before);
  const int64_t kept = ledger(c.geometry, c.d_model, tokens, tokens,
                              {.positions = c.order.positions, .disentangled = c.order.disentangled})
                           .total()
                           .kept_bytes;
  EXPECT_GE(used, kept);
  EXPECT_LT(used, kept + 4096) << kept;
}

INSTANTIATE_TEST_SUITE_P(Presets, LedgerOf, testing::ValuesIn(test::presets()), test::name_of_case);

// Claim 003.3: d = 512, h = 8, W^Q, W^K, W^V and W^O, no biases.
TEST(Ledger, BloemsNumbers) {
  const auto parameters = [](const char* name) {
    HeadGeometry geometry = geometry_preset(name, 8, 512);
    EXPECT_EQ(geometry.biases, Biases::kNone);
    return ledger(geometry, 512, 1, 1).total().parameters;
  };
  EXPECT_EQ(parameters("bloem-narrow-shared"), 12'288);
  EXPECT_EQ(parameters("bloem-narrow"), 98'304);
  EXPECT_EQ(parameters("bloem-narrow-output"), 98'304 + 262'144);
  EXPECT_EQ(parameters("tensor2tensor"), 1'048'576);
  EXPECT_EQ(parameters("bloem-wide"), 8'388'608);
  EXPECT_EQ(parameters("bloem-fourth"), 3 * 262'144 + 98'304 + 262'144);
}

// Claim 000.3: at d_k = d / h only the exponentials know how many heads there are.
TEST(Ledger, HeadsCostExponentialsOnly) {
  const LedgerPart one = ledger({.heads = 1, .biases = Biases::kNone}, 64, 31, 31).total();
  for (const int heads : {2, 4, 8, 16}) {
    const LedgerPart many = ledger({.heads = heads, .biases = Biases::kNone}, 64, 31, 31).total();
    EXPECT_EQ(many.parameters, one.parameters);
    EXPECT_EQ(many.multiply_adds, one.multiply_adds);
    EXPECT_EQ(many.exponentials, heads * one.exponentials);
    EXPECT_EQ(many.exponentials, heads * 31 * 31);
  }
}

// Claim 002.3: merged has fewer parameters iff d_k > d / 2, and fewer multiplications iff T (d - d_k) < d (2
// d_k - d).
TEST(Ledger, MergedAgainstFactored) {
  constexpr int kWidth = 12;
  for (const int d_key : {1, 5, 6, 7, 11, 12}) {
    for (const int64_t tokens : {1, 4, 13, 60}) {
      const auto cost = [&](Scores scores) {
        const Ledger all = ledger({.heads = 1, .d_key = d_key, .scores = scores, .biases = Biases::kNone},
                                  kWidth, tokens, tokens);
        LedgerPart part = all.part("queries");
        part += all.part("keys");
        return part += all.part("scores");
      };
      const LedgerPart merged = cost(Scores::kMerged), factored = cost(Scores::kQueryKey);
      EXPECT_EQ(merged.parameters<factored.parameters, 2 * d_key> kWidth);
      EXPECT_EQ(merged.multiply_adds < factored.multiply_adds,
                tokens * (kWidth - d_key) < kWidth * (2 * d_key - kWidth))
          << d_key << " " << tokens;
    }
  }
}

// Claim 004.5: h T^2 weights if kept, rows if fused.
TEST(Ledger, TheComposedPathKeepsTheWeights) {
  const HeadGeometry geometry{.heads = 3, .d_key = 4};
  const Ledger fused = ledger(geometry, 7, 11, 11, {.mask = Mask::causal()});
  const Ledger composed =
      ledger(geometry, 7, 11, 11, {.mask = Mask::causal(), .path = AttentionPath::kComposed});
  EXPECT_EQ(fused.path, AttentionPath::kFused);
  EXPECT_EQ(composed.path, AttentionPath::kComposed);
  EXPECT_EQ(composed.total().kept_bytes - fused.total().kept_bytes, 4 * (3 * 11 * 11 - 3 * 11));
  EXPECT_EQ(composed.part("scores").multiply_adds, 3 * 11 * 11 * 4);
  EXPECT_EQ(fused.part("scores").multiply_adds, 3 * (11 * 12 / 2) * 4);
  EXPECT_EQ(composed.part("softmax").exponentials, fused.part("softmax").exponentials);
}

TEST(Ledger, CountsRowsThatComeOutInAnotherWidth) {
  const HeadGeometry geometry = {.heads = 3, .d_key = 5, .d_value = 2};
  const Ledger found = ledger(geometry, 7, 4, 4, {.d_out = 11}), usual = ledger(geometry, 7, 4, 4);
  DropoutStreams streams;
  MultiHeadAttention layer("layer", {.d_model = 7, .d_out = 11, .geometry = geometry}, streams);
  int64_t all = 0;
  layer.visit("", [&](const std::string&, Parameter& p) { all += p.value.size(); });
  EXPECT_EQ(found.total().parameters, all);
  EXPECT_EQ(found.part("output").multiply_adds, 4 * 3 * 2 * 11);
  EXPECT_EQ(found.part("output").other_flops, 4 * 11);
  for (size_t i = 0; i + 1 < found.parts.size(); ++i) EXPECT_EQ(found.parts[i], usual.parts[i]);
}

TEST(Ledger, RefusesWhatCannotBe) {
  EXPECT_THAT(
      [] { ledger({.heads = 2, .output = HeadOutput::kConcatenation}, 6, 1, 1, {.d_out = 7}); },
      ThrowsMessage<UsageError>("ledger: d_out is 7, but the output is the concatenation of 2 heads of 3; "
                                "use a projection or d_out 6"));
  EXPECT_THAT([] { ledger({.heads = 2}, 6, 1, 1, {.d_out = -1}); },
              ThrowsMessage<UsageError>("ledger: d_out is -1; expected at least 1"));
  EXPECT_THAT(
      [] {
        ledger({.heads = 1, .weights = HeadWeights::kTalking}, 7, 1, 1, {.path = AttentionPath::kFused});
      },
      ThrowsMessage<UsageError>("the fused kernel cannot compute talking heads; take the composed path"));
  EXPECT_THAT([] { ledger({.heads = 3}, 7, 1, 1); },
              ThrowsMessage<UsageError>(HasSubstr("ledger: heads is 3, which does not divide d_model 7")));
  EXPECT_THAT([] { ledger({.heads = 1}, 7, int64_t{1} << 20, int64_t{1} << 20).total().repeated(1 << 30); },
              ThrowsMessage<UsageError>(HasSubstr("beyond 2^63; give fewer tokens")));
  EXPECT_THAT(
      [] { ledger({.heads = 1}, 7, 1, 1).part("query"); },
      ThrowsMessage<UsageError>("the ledger has no part 'query'; it has queries, keys, values, scores, "
                                "softmax, average, output"));
  const uint64_t bits = 1;
  EXPECT_THAT(
      [&] {
        ledger({.heads = 1}, 7, 1, 1, {.mask = Mask::dense({&bits, 1})});
      },
      ThrowsMessage<UsageError>(HasSubstr("no dense masks")));
}

}  // namespace
}  // namespace mh
