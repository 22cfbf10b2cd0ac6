// A layer of attention by its formula, in numbers that count the operations on them; the ledger is checked
// against it. The test file of each geometry has its own part (oracle.h).
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/nn/geometries/layer_in_double.h"

namespace mh::test {

struct Count {
  std::string part;
  int64_t products, others, exponentials;
  bool operator==(const Count&) const = default;
};
inline void PrintTo(const Count& c, std::ostream* out) {
  *out << c.part << ": " << c.products << " products, " << c.others << " others, " << c.exponentials
       << " exp";
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

/// What disentangled positions do before scores are added up; returns how many numbers they add to a score.
inline int count_distances(const Order& order, const HeadGeometry& g, int d, int64_t tokens_q,
                           int64_t tokens_k) {
  const DisentangledOptions& of = order.disentangled;
  const auto farthest = static_cast<int>(tokens_k - 1);
  Rows r = zeros(disentangled_column(farthest, of) - disentangled_column(-farthest, of) + 1, d);
  for (auto& row : r) {
    for (Counted& x : row) {
      for (int n = 0; n < 7 && of.normed; ++n) x = x + Counted{0.5f};  // of a norm with biases
    }
  }
  int count = 0;
  for (const auto& [wanted, rows] :
       {std::pair{of.content_to_position, tokens_q}, {of.position_to_content, tokens_k}}) {
    if (!wanted) continue;
    ++count;
    Rows vectors = product(r, zeros(d, int64_t{g.heads} * g.d_key));
    if (has_bias_of_heads(g.biases) || !of.shared_projections) add_bias_to(vectors);
    for (int h = 0; h < g.heads; ++h) {
      Rows met = product(zeros(rows, g.d_key), zeros(g.d_key, static_cast<int64_t>(r.size())));
      add_bias_to(met);  // in place of the scale
    }
  }
  return count;
}

/// The layer, word by word, and what each part of it did. own_rows: keys of the queries' rows.
inline std::vector<Count> counted(const HeadGeometry& g, int d, int64_t tokens_q, int64_t tokens_k,
                                  bool own_rows, const Mask& mask, const Order& order) {
  const Positions positions = order.positions;
  std::vector<Count> counts;
  const auto done = [&](const char* part) {
    counts.push_back({part, Counted::products, Counted::others, Counted::exponentials});
    Counted::clear();
  };
  Counted::clear();
  const Rows x = zeros(tokens_q, d), memory = zeros(tokens_k, d);
  const HeadOracle& heads = head_oracle(g);
  const WeightOracle& weighing = weight_oracle(g);
  const QueryKeyOracle& norm = query_key_oracle(g);
  const int size = heads.score_size(g, d), softmaxes = weighing.softmaxes() * g.heads;
  Rows q = heads.counted_queries(g, x, softmaxes);
  const Rows queries = q;
  norm.count(q, static_cast<size_t>(size));
  done("queries");
  const int key_heads = heads.key_heads(g, weighing.softmaxes());
  Rows k = heads.counted_keys(g, memory, key_heads, own_rows ? queries : Rows());
  norm.count(k, static_cast<size_t>(size));
  done("keys");
  const Rows v = heads.counted_values(g, memory);
  done("values");

  const int of_distances = positions == Positions::kDisentangled && tokens_k > 0
                               ? count_distances(order, g, d, tokens_q, tokens_k)
                               : 0;
  std::vector<Rows> scores;
  const auto sees = [&](size_t i, size_t j) {
    return mask.allows(0, static_cast<int64_t>(i), static_cast<int64_t>(j), tokens_q, tokens_k);
  };
  const auto computed = [&](size_t i, size_t j) { return weighing.composed() || sees(i, j); };
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
        for (int n = 0; n < of_distances; ++n) s[i][j] = s[i][j] + Counted{0.5f};
      }
    }
  }
  scores = weighing.counted_scores(std::move(scores));
  done("scores");
  for (Rows& head : scores) {
    for (size_t i = 0; i < q.size() && g.soft_cap; ++i) {
      for (size_t j = 0; j < k.size(); ++j) {
        if (computed(i, j))
          head[i][j] = Counted{0.5f} * exponential(Counted{2} * head[i][j]);  // in place of tanh
      }
    }
  }
  if (g.soft_cap) done("soft cap");
  for (Rows& head : scores) {
    for (size_t i = 0; i < q.size(); ++i) {
      Counted highest{-1e30f}, total{0};
      for (size_t j = 0; j < k.size(); ++j) {
        if (computed(i, j) && norm.scales_scores()) head[i][j] = head[i][j] * Counted{0.5f};
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
  scores = weighing.counted_weights(std::move(scores));
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
  together = weighing.counted_output(g, std::move(together));
  done("average");
  if (g.output == HeadOutput::kProjection) {
    Rows out = product(together, zeros(int64_t{g.heads} * g.d_value, d));
    if (g.biases == Biases::kAll) add_bias_to(out);
  }
  done("output");
  return counts;
}

}  // namespace mh::test
