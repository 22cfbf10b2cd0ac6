#include "lab/studies/telemetry.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "multihead/heads/measures/observe_corpus.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {
namespace {

/// Of the matrices as vectors.
double cosine_of(ConstMatrixView a, ConstMatrixView b) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t c = 0; c < a.cols; ++c) {
      const auto x = static_cast<double>(a(i, c)), y = static_cast<double>(b(i, c));
      ab += x * y, aa += x * x, bb += y * y;
    }
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double entropy_term(double p) {
  return p > 0 ? -p * std::log(p) : 0;
}

class Diversity : public CorpusObserver {
 public:
  bool wants_weights(std::string_view name) const override { return name.find("encoder") == 0; }

  void weights(const BatchWeights& batch) override {
    const int heads = batch.heads();
    const auto value_heads =
        static_cast<int>(batch.values.cols * heads / std::max<int64_t>(1, batch.outputs.cols));
    for (int s = 0; s < batch.sequences(); ++s) {
      const int32_t begin = batch.query_offsets[static_cast<size_t>(s)];  // of keys, too: self-attention
      const int64_t end = begin + batch.matrix(s, 0).rows;
      const auto head_cosine = [&](ConstMatrixView all, int i, int j, int parts) {
        const int64_t width = all.cols / parts;
        const auto part = [&, rows = all.rows_between(begin, end)](int index) {
          return rows.columns_between(index * width, (index + 1) * width);
        };
        return cosine_of(part(i), part(j));
      };
      DoubleMatrix alike(heads, heads);
      for (int i = 0; i < heads; ++i) {
        alike(i, i) = 1;
        add_entropy(batch.matrix(s, i));
        for (int j = 0; j < i; ++j) {
          sums_.output += alike(i, j) = alike(j, i) = head_cosine(batch.outputs, i, j, heads);
          sums_.subspace +=
              head_cosine(batch.values, i * value_heads / heads, j * value_heads / heads, value_heads);
          add_pair(batch.matrix(s, i), batch.matrix(s, j));
          ++pairs_;
        }
      }
      double spread = 0;
      for (const double value : symmetric_eigen(alike.view()).values)
        spread += entropy_term(std::max(0.0, value) / heads);
      sums_.effective += std::exp(spread);
      ++matrices_;
    }
  }

  HeadTelemetry result() const {
    const auto at_least_one = [](int64_t count) { return static_cast<double>(std::max<int64_t>(1, count)); };
    const double pairs = at_least_one(pairs_);
    HeadTelemetry mean = sums_;
    mean.subspace /= pairs, mean.positions /= pairs, mean.output /= pairs, mean.divergence /= pairs;
    mean.entropy /= at_least_one(rows_), mean.effective /= at_least_one(matrices_);
    return mean;
  }

 private:
  void add_entropy(ConstMatrixView a) {
    for (int64_t i = 0; i < a.rows && a.cols > 1; ++i, ++rows_) {
      double sum = 0;
      for (int64_t j = 0; j < a.cols; ++j) sum += entropy_term(static_cast<double>(a(i, j)));
      sums_.entropy += sum / std::log(static_cast<double>(a.cols));
    }
  }
  void add_pair(ConstMatrixView a, ConstMatrixView b) {
    double common = 0, divergence = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.cols; ++j) {
        const auto x = static_cast<double>(a(i, j)), y = static_cast<double>(b(i, j));
        common += x * y;
        divergence += entropy_term((x + y) / 2) - (entropy_term(x) + entropy_term(y)) / 2;
      }
    }
    sums_.positions += common / static_cast<double>(a.rows);
    sums_.divergence += divergence / static_cast<double>(a.rows);
  }

  HeadTelemetry sums_;
  int64_t pairs_ = 0, rows_ = 0, matrices_ = 0;
};

}  // namespace

HeadTelemetry head_telemetry(EncoderDecoder& model, const TrainingCorpus& corpus, size_t sentences) {
  const auto& sources = corpus.tokens.source;
  const std::span<const std::vector<int32_t>> some(sources.data(), std::min(sentences, sources.size()));
  Diversity diversity;
  CorpusObserver* const observers[] = {&diversity};
  observe_corpus(model, some, {}, observers);
  return diversity.result();
}

}  // namespace mh
