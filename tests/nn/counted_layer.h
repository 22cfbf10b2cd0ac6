// A layer of attention by its formula, in numbers that note what is done with them: the count that the ledger
// is checked against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "multihead/nn/multi_head_attention.h"

namespace mh::test {

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
inline Counted larger(Counted a, Counted b) {
  return ++Counted::others, a.value < b.value ? b : a;
}
inline Counted exponential(Counted a) {
  return ++Counted::exponentials, Counted{std::exp(a.value)};
}
inline Counted root(Counted a) {
  return ++Counted::others, Counted{std::sqrt(a.value)};
}
inline void multiply_add(Counted a, Counted b, Counted& sum) {
  ++Counted::products;
  sum.value += a.value * b.value;
}

using Rows = std::vector<std::vector<Counted>>;

inline Rows zeros(int64_t rows, int64_t cols) {
  return Rows(static_cast<size_t>(rows), std::vector<Counted>(static_cast<size_t>(cols), Counted{0.1f}));
}
inline Rows product(const Rows& a, const Rows& b) {
  Rows c = zeros(static_cast<int64_t>(a.size()), static_cast<int64_t>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t n = 0; n < b.size(); ++n) {
      for (size_t j = 0; j < b[0].size(); ++j) multiply_add(a[i][n], b[n][j], c[i][j]);
    }
  }
  return c;
}
inline void add_bias_to(Rows& a) {
  for (auto& row : a) {
    for (Counted& x : row) x = x + Counted{0.5f};
  }
}

/// One of the three projections of all heads, with weights of any value.
inline Rows projected(const HeadGeometry& g, int d, Rows x, int heads, int size) {
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
inline void normalise(Rows& rows, size_t size) {
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
inline void turn(Rows& rows) {
  for (auto& row : rows) {
    for (size_t c = 0; c + 1 < row.size(); c += 2) {
      const Counted a = row[c], b = row[c + 1];
      row[c] = a * Counted{0.5f} - b * Counted{0.5f};
      row[c + 1] = a * Counted{0.5f} + b * Counted{0.5f};
    }
  }
}

/// Matrices of all heads mixed.
inline std::vector<Rows> mixed(const std::vector<Rows>& maps) {
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
inline Rows difference(const HeadGeometry& g, const Rows& pairs) {
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
inline void PrintTo(const Count& c, std::ostream* out) {
  *out << c.part << ": " << c.products << " products, " << c.others << " others, " << c.exponentials
       << " exp";
}

/// The layer, word by word, and what each part of it did. own_rows: keys of the queries' rows.
inline std::vector<Count> counted(const HeadGeometry& g, int d, int64_t tokens_q, int64_t tokens_k,
                                  bool own_rows, const Mask& mask, Positions positions) {
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

}  // namespace mh::test
