// The ledger against counts: the layer's own parameters and memory, and the operations of a reference that
// runs the formula on numbers that count.
#include "multihead/nn/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  std::string name;
  HeadGeometry geometry;
  int d_model;
  Positions positions = Positions::kNone;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const GeometryName& named : geometry_names())
    all.push_back({std::string(named.name), geometry_preset(named.name, 2, 6), 6, Positions::kNone});
  const auto add = [&](const char* name, HeadGeometry geometry, int d_model,
                       Positions positions = Positions::kNone) {
    all.push_back({name, std::move(geometry), d_model, positions});
  };
  add("sizes that differ", {.heads = 3, .d_key = 5, .d_value = 2}, 7);
  add("groups of keys and of values",
      {.heads = 6, .d_key = 3, .d_value = 2, .key_heads = 3, .value_heads = 2}, 5);
  add("slices of uneven size", {.heads = 3, .d_key = 3, .input = HeadInput::slices()}, 7);
  add("overlapping columns", {.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 2, 3}, {2, 4}})},
      7);
  add("columns that stop early", {.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 1}, {2}})}, 7);
  add("fourth form, one for all",
      {.heads = 2, .input = HeadInput::projected_slices(true), .biases = Biases::kNone}, 6);
  add("collaborative of another size",
      {.heads = 2, .d_key = 2, .scores = Scores::kCollaborative, .shared_size = 5}, 4);
  add("merged of another size", {.heads = 3, .d_key = 2, .d_value = 4, .scores = Scores::kMerged}, 5);
  add("doubled groups", {.heads = 2, .key_heads = 1, .scores = Scores::kDoubled}, 4);
  const HeadGeometry groups = {.heads = 4, .d_key = 2, .d_value = 3, .key_heads = 2};
  HeadGeometry normed = groups, difference = groups, talking = groups;
  normed.query_key_norm = QueryKeyNorm::kL2;
  difference.weights = HeadWeights::kDifferential;
  talking.weights = HeadWeights::kTalking;
  add("normed groups", normed, 5);
  add("normed tied", {.heads = 2, .scores = Scores::kTied, .query_key_norm = QueryKeyNorm::kL2}, 6);
  add("differential groups", difference, 5);
  add("talking groups", talking, 5);
  add("rotary groups", groups, 5, Positions::kRotary);
  add("rotary differential", difference, 5, Positions::kRotary);
  add("alibi groups", groups, 5, Positions::kAlibi);
  add("t5 differential", difference, 5, Positions::kT5);
  add("shaw groups", groups, 5, Positions::kShaw);
  add("shaw collaborative", {.heads = 2, .d_key = 2, .scores = Scores::kCollaborative, .shared_size = 5}, 4,
      Positions::kShaw);
  return all;
}

/// A number that notes what is done with it.
struct Counted {
  static inline int64_t products = 0, others = 0, exponentials = 0;  // products: multiplications in a sum
  float value = 0;

  static void clear() { products = others = exponentials = 0; }
};

Counted operator+(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value + b.value};
}
Counted operator-(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value - b.value};
}
Counted operator*(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value * b.value};
}
Counted operator/(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value / b.value};
}
Counted larger(Counted a, Counted b) {
  return ++Counted::others, a.value < b.value ? b : a;
}
Counted exponential(Counted a) {
  return ++Counted::exponentials, Counted{std::exp(a.value)};
}
Counted root(Counted a) {
  return ++Counted::others, Counted{std::sqrt(a.value)};
}
void multiply_add(Counted a, Counted b, Counted& sum) {
  ++Counted::products;
  sum.value += a.value * b.value;
}

using Rows = std::vector<std::vector<Counted>>;

Rows zeros(int64_t rows, int64_t cols) {
  return Rows(static_cast<size_t>(rows), std::vector<Counted>(static_cast<size_t>(cols), Counted{0.1f}));
}
Rows product(const Rows& a, const Rows& b) {
  Rows c = zeros(static_cast<int64_t>(a.size()), static_cast<int64_t>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t n = 0; n < b.size(); ++n) {
      for (size_t j = 0; j < b[0].size(); ++j) multiply_add(a[i][n], b[n][j], c[i][j]);
    }
  }
  return c;
}
void add_bias_to(Rows& a) {
  for (auto& row : a) {
    for (Counted& x : row) x = x + Counted{0.5f};
  }
}

/// One of the three projections of all heads, with weights of any value.
Rows projected(const HeadGeometry& g, int d, Rows x, int heads, int size) {
  const auto tokens = static_cast<int64_t>(x.size());
  if (g.scores == Scores::kDoubled || g.input.kind == HeadInput::Kind::kProjectedSlices)
    x = product(x, zeros(d, d));
  Rows out;
  if (g.input.kind == HeadInput::Kind::kWholeRow) {
    out = product(x, zeros(d, int64_t{heads} * size));
  } else {
    out = zeros(tokens, 0);
    const HeadColumns columns =
        g.input.kind == HeadInput::Kind::kColumns ? g.input.columns : slice_columns(g.heads, d);
    for (const auto& head : columns) {
      Rows part = zeros(tokens, 0);
      for (size_t i = 0; i < x.size(); ++i) {
        for (const int32_t column : head) part[i].push_back(x[i][static_cast<size_t>(column)]);
      }
      const Rows one = product(part, zeros(static_cast<int64_t>(head.size()), size));
      for (size_t i = 0; i < x.size(); ++i) out[i].insert(out[i].end(), one[i].begin(), one[i].end());
    }
  }
  if (g.biases == Biases::kAll) add_bias_to(out);
  return out;
}

/// Each head's numbers at length 1.
void normalise(Rows& rows, size_t size) {
  for (auto& row : rows) {
    for (size_t at = 0; at < row.size(); at += size) {
      Counted squares;
      for (size_t c = 0; c < size; ++c) squares = squares + row[at + c] * row[at + c];
      const Counted inverse = Counted{1} / root(squares);
      for (size_t c = 0; c < size; ++c) row[at + c] = row[at + c] * inverse;
    }
  }
}

/// Pairs of numbers of a row turned by an angle each.
void turn(Rows& rows) {
  for (auto& row : rows) {
    for (size_t c = 0; c + 1 < row.size(); c += 2) {
      const Counted a = row[c], b = row[c + 1];
      row[c] = a * Counted{0.5f} - b * Counted{0.5f};
      row[c + 1] = a * Counted{0.5f} + b * Counted{0.5f};
    }
  }
}

/// Matrices of all heads mixed.
std::vector<Rows> mixed(const std::vector<Rows>& maps) {
  std::vector<Rows> out;
  for (size_t g = 0; g < maps.size(); ++g) {
    Rows& to = out.emplace_back(
        zeros(static_cast<int64_t>(maps[0].size()), static_cast<int64_t>(maps[0][0].size())));
    for (const Rows& from : maps) {
      for (size_t i = 0; i < from.size(); ++i) {
        for (size_t j = 0; j < from[i].size(); ++j) multiply_add(Counted{0.1f}, from[i][j], to[i][j]);
      }
    }
  }
  return out;
}

/// lambda, and each pair of averages made one head with a norm.
Rows difference(const HeadGeometry& g, const Rows& pairs) {
  Counted first, second;
  for (int c = 0; c < g.d_key; ++c) {
    multiply_add(Counted{0.1f}, Counted{0.1f}, first);
    multiply_add(Counted{0.1f}, Counted{0.1f}, second);
  }
  const Counted lambda = exponential(first) - exponential(second) + Counted{0.8f};
  const auto size = static_cast<size_t>(g.d_value);
  Rows out = zeros(static_cast<int64_t>(pairs.size()), int64_t{g.heads} * g.d_value);
  for (size_t i = 0; i < pairs.size(); ++i) {
    for (size_t h = 0; h < static_cast<size_t>(g.heads); ++h) {
      Counted squares;
      for (size_t c = 0; c < size; ++c) {
        Counted& u = out[i][h * size + c];
        u = pairs[i][2 * h * size + c] - lambda * pairs[i][(2 * h + 1) * size + c];
        squares = squares + u * u;
      }
      const Counted factor =
          Counted{0.2f} / root(squares * Counted{1.0f / static_cast<float>(size)} + Counted{1e-5f});
      for (size_t c = 0; c < size; ++c) out[i][h * size + c] = out[i][h * size + c] * factor * Counted{1};
    }
  }
  return out;
}

struct Count {
  std::string part;
  int64_t products, others, exponentials;
  bool operator==(const Count&) const = default;
};
void PrintTo(const Count& c, std::ostream* out) {
  *out << c.part << ": " << c.products << " products, " << c.others << " others, " << c.exponentials
       << " exp";
}

/// The layer, word by word, and what each part of it did. own_rows: keys of the queries' rows.
std::vector<Count> counted(const HeadGeometry& g, int d, int64_t tokens_q, int64_t tokens_k, bool own_rows,
                           const Mask& mask, Positions positions) {
  std::vector<Count> counts;
  const auto done = [&](const char* part) {
    counts.push_back({part, Counted::products, Counted::others, Counted::exponentials});
    Counted::clear();
  };
  Counted::clear();
  const Rows x = zeros(tokens_q, d), memory = zeros(tokens_k, d);
  const bool merged = g.scores == Scores::kMerged, shared = g.scores == Scores::kCollaborative;
  const int size = merged ? d : shared ? g.shared_size : g.d_key;
  const int softmaxes = maps_per_head(g) * g.heads;
  const bool normed = g.query_key_norm == QueryKeyNorm::kL2, talking = g.weights == HeadWeights::kTalking;
  Rows q = projected(g, d, x, shared ? 1 : softmaxes, size);
  if (shared) {
    Rows mixed = zeros(tokens_q, 0);
    for (size_t i = 0; i < q.size(); ++i) {
      for (int h = 0; h < g.heads; ++h) {
        for (const Counted n : q[i]) mixed[i].push_back(n * Counted{2});
      }
    }
    q = mixed;
  }
  const Rows queries = q;
  if (normed) normalise(q, static_cast<size_t>(size));
  done("queries");
  const bool tied = g.scores == Scores::kTied;
  const int key_heads = merged || shared ? 1 : maps_per_head(g) * g.key_heads;
  Rows k = merged ? memory : tied && own_rows ? queries : projected(g, d, memory, key_heads, size);
  if (normed) normalise(k, static_cast<size_t>(size));
  done("keys");
  const Rows v = projected(g, d, memory, g.value_heads, g.d_value);
  done("values");

  std::vector<Rows> scores;
  const auto sees = [&](size_t i, size_t j) {
    return mask.allows(0, static_cast<int64_t>(i), static_cast<int64_t>(j), tokens_q, tokens_k);
  };
  // The composed path, which talking heads take, multiplies and mixes what is hidden, too.
  const auto computed = [&](size_t i, size_t j) { return talking || sees(i, j); };
  if (positions == Positions::kRotary) {
    turn(q);
    turn(k);
  }
  for (int h = 0; h < softmaxes; ++h) {
    Rows& s = scores.emplace_back(zeros(tokens_q, tokens_k));
    for (size_t i = 0; i < q.size(); ++i) {
      const auto number = [&](int c) { return q[i][static_cast<size_t>(h * size + c)]; };
      std::vector<Counted> met;  // the query and each vector of distances
      for (int n = 0; n < 33 && positions == Positions::kShaw; ++n) {
        Counted& sum = met.emplace_back();
        for (int c = 0; c < size; ++c) multiply_add(number(c), Counted{0.1f}, sum);
        sum = sum * Counted{0.5f};
      }
      for (size_t j = 0; j < k.size(); ++j) {
        for (int c = 0; c < size && computed(i, j); ++c)
          multiply_add(number(c), k[j][static_cast<size_t>(h * key_heads / softmaxes * size + c)], s[i][j]);
        if (!sees(i, j)) continue;
        if (positions == Positions::kAlibi) s[i][j] = s[i][j] - Counted{0.5f} * Counted{1};
        if (positions == Positions::kT5) s[i][j] = s[i][j] + Counted{0.5f};
        if (positions == Positions::kShaw) s[i][j] = s[i][j] + met[0];
      }
    }
  }
  if (talking) scores = mixed(scores);
  done("scores");
  for (Rows& head : scores) {
    for (size_t i = 0; i < q.size(); ++i) {
      Counted highest{-1e30f}, total{0};
      for (size_t j = 0; j < k.size(); ++j) {
        if (computed(i, j) && !normed) head[i][j] = head[i][j] * Counted{0.5f};
        if (sees(i, j)) highest = larger(highest, head[i][j]);
      }
      for (size_t j = 0; j < k.size(); ++j) {
        if (sees(i, j)) total = total + (head[i][j] = exponential(head[i][j] - highest));
      }
      for (size_t j = 0; j < k.size(); ++j) {
        if (sees(i, j)) head[i][j] = head[i][j] / total;
      }
    }
  }
  done("softmax");
  if (talking) scores = mixed(scores);
  Rows together = zeros(tokens_q, int64_t{softmaxes} * g.d_value);
  for (int h = 0; h < softmaxes; ++h) {
    for (size_t i = 0; i < q.size(); ++i) {
      for (size_t j = 0; j < k.size(); ++j) {
        for (int c = 0; c < g.d_value && computed(i, j); ++c) {
          multiply_add(scores[static_cast<size_t>(h)][i][j],
                       v[j][static_cast<size_t>(h * g.value_heads / softmaxes * g.d_value + c)],
                       together[i][static_cast<size_t>(h * g.d_value + c)]);
        }
      }
    }
  }
  if (g.weights == HeadWeights::kDifferential) together = difference(g, together);
  done("average");
  if (g.output == HeadOutput::kProjection) {
    Rows out = product(together, zeros(int64_t{g.heads} * g.d_value, d));
    if (g.biases == Biases::kAll) add_bias_to(out);
  }
  done("output");
  return counts;
}

std::vector<Count> counts_of(const Ledger& ledger) {
  std::vector<Count> counts;
  for (const LedgerPart& p : ledger.parts)
    counts.push_back({p.name, p.multiply_adds, p.other_flops, p.exponentials});
  return counts;
}

class LedgerOf : public testing::TestWithParam<Case> {
 protected:
  const Case& c = GetParam();
  HeadGeometry completed_geometry = completed(c.geometry, c.d_model, "case");
};

TEST_P(LedgerOf, HasTheLayersParameters) {
  DropoutSites sites;
  MultiHeadAttention layer("layer", {.d_model = c.d_model, .geometry = c.geometry, .positions = c.positions},
                           sites);
  int64_t all = 0, output = 0, values = 0;
  layer.visit("", [&](const std::string& name, Parameter& p) {
    all += p.value.size();
    if (name == ".w_o" || name == ".b_o") output += p.value.size();
    if (name == ".w_v" || name == ".b_v" || name == ".w_before_v") values += p.value.size();
  });
  const Ledger found = ledger(c.geometry, c.d_model, 3, 5, {.positions = c.positions});
  EXPECT_EQ(found.total().parameters, all);
  EXPECT_EQ(found.part("output").parameters, output);
  EXPECT_EQ(found.part("values").parameters, values);
  EXPECT_EQ(found.total().weight_bytes(), 4 * all);
}

TEST_P(LedgerOf, CountsTheOperationsOfTheFormula) {
  const auto expected = [&](int64_t tokens_q, int64_t tokens_k, bool own_rows, const Mask& mask) {
    return counted(completed_geometry, c.d_model, tokens_q, tokens_k, own_rows, mask, c.positions);
  };
  const auto found = [&](int64_t tokens_q, int64_t tokens_k, LedgerOptions options = {}) {
    options.positions = c.positions;
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
  const int64_t tokens = c.geometry.weights == HeadWeights::kTalking ? 96 : 1536;
  DropoutSites sites;
  MultiHeadAttention layer("layer", {.d_model = c.d_model, .geometry = c.geometry, .positions = c.positions},
                           sites);
  Tensor x(tokens, c.d_model);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(tokens)});
  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape};
  const Var input = tape.constant(x.view());
  const size_t before = tape.arena().mark().used;
  layer.self(context, input, {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::window(1, 1));
  ASSERT_EQ(tape.arena().mark().block, 0u);
  const auto used = static_cast<int64_t>(tape.arena().mark().used - before);
  const int64_t kept =
      ledger(c.geometry, c.d_model, tokens, tokens, {.positions = c.positions}).total().kept_bytes;
  EXPECT_GE(used, kept);
  EXPECT_LT(used, kept + 4096) << kept;
}

INSTANTIATE_TEST_SUITE_P(Geometries, LedgerOf, testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

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
  DropoutSites sites;
  MultiHeadAttention layer("layer", {.d_model = 7, .d_out = 11, .geometry = geometry}, sites);
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
