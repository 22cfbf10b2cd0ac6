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

struct Products {
  double ab = 0, aa = 0, bb = 0;
  double cosine() const { return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0; }
};
Products products(ConstMatrixView a, ConstMatrixView b) {
  Products sum;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t c = 0; c < a.cols; ++c) {
      const double x = static_cast<double>(a(i, c)), y = static_cast<double>(b(i, c));
      sum.ab += x * y, sum.aa += x * x, sum.bb += y * y;
    }
  }
  return sum;
}

double entropy_term(double p) {
  return p > 0 ? -p * std::log(p) : 0;
}

ConstMatrixView head_columns(ConstMatrixView all, int64_t begin, int64_t rows, int head, int heads) {
  const int64_t width = all.cols / heads;
  return {all.data + begin * all.stride + head * width, rows, width, all.stride};
}

class Diversity : public CorpusObserver {
 public:
  bool wants_weights(std::string_view name) const override { return name.find("encoder") == 0; }

  void weights(const BatchWeights& batch) override {
    const int heads = batch.heads();
    const auto value_heads =
        static_cast<int>(batch.values.cols * heads / std::max<int64_t>(1, batch.outputs.cols));
    for (int s = 0; s < batch.sequences(); ++s) {
      const int64_t query = batch.query_offsets[static_cast<size_t>(s)], key = query;  // self-attention
      const int64_t rows = batch.matrix(s, 0).rows;
      DoubleMatrix alike(heads, heads);
      for (int i = 0; i < heads; ++i) {
        alike(i, i) = 1;
        add_entropy(batch.matrix(s, i));
        for (int j = 0; j < i; ++j) {
          const double output = products(head_columns(batch.outputs, query, rows, i, heads),
                                         head_columns(batch.outputs, query, rows, j, heads))
                                    .cosine();
          alike(i, j) = alike(j, i) = output;
          sums_.output += output;
          sums_.subspace +=
              products(head_columns(batch.values, key, rows, i * value_heads / heads, value_heads),
                       head_columns(batch.values, key, rows, j * value_heads / heads, value_heads))
                  .cosine();
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
    const double pairs = std::max<double>(1, static_cast<double>(pairs_)),
                 rows = std::max<double>(1, static_cast<double>(rows_));
    HeadTelemetry mean = sums_;
    mean.subspace /= pairs, mean.positions /= pairs, mean.output /= pairs, mean.divergence /= pairs;
    mean.entropy /= rows, mean.effective /= std::max<double>(1, static_cast<double>(matrices_));
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
        const double x = static_cast<double>(a(i, j)), y = static_cast<double>(b(i, j));
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
