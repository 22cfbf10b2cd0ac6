// The time of attention on what translation usually has: many short sentences, a few heads.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "multihead/base/ragged.h"
#include "multihead/base/random.h"
#include "multihead/kernels/attention.h"

namespace mh {
namespace {

/// A batch of sentences whose lengths are spread as in Multi30k: mean 15, longest 42.
std::vector<int32_t> sentence_lengths(int sentences, Random& random) {
  std::vector<int32_t> lengths;
  for (int s = 0; s < sentences; ++s) {
    const double length = std::exp(2.62 + 0.34 * random.normal()) + 0.3;
    lengths.push_back(static_cast<int32_t>(std::min(42.0, std::max(4.0, length))));
  }
  lengths[0] = 42;
  return lengths;
}

struct Batch {
  Batch(std::vector<int32_t> query_lengths, std::vector<int32_t> key_lengths, int heads, int d, bool packed)
      : queries(Ragged::from_lengths(query_lengths)), keys(Ragged::from_lengths(key_lengths)) {
    const int64_t width = int64_t{heads} * d, nq = queries.rows(), nk = keys.rows();
    const int64_t stride = packed ? 3 * width : width;  // q, k and v side by side
    Random random(3);
    for (auto* data : {&q_data, &k_data, &v_data, &d_output_data}) {
      data->resize(static_cast<size_t>(std::max(nq, nk) * stride));
      for (float& x : *data) x = static_cast<float>(random.normal());
    }
    d_data.resize(static_cast<size_t>(std::max(nq, nk) * 3 * width));
    output_data.resize(static_cast<size_t>(nq * width));
    lse.resize(static_cast<size_t>(nq * heads));
    in.q = {q_data.data(), nq, width, stride};
    in.k = packed ? ConstMatrixView(q_data.data() + width, nk, width, stride)
                  : ConstMatrixView(k_data.data(), nk, width);
    in.v = packed ? ConstMatrixView(q_data.data() + 2 * width, nk, width, stride)
                  : ConstMatrixView(v_data.data(), nk, width);
    in.heads = in.key_heads = in.value_heads = heads;
    in.d_key = in.d_value = d;
    in.query_offsets = queries.offsets();
    in.key_offsets = keys.offsets();
    in.scale = attention_scale(d);
    output = {output_data.data(), nq, width};
    gradients.output = output;
    gradients.lse = lse.data();
    gradients.d_output = {d_output_data.data(), nq, width};
    const int64_t d_stride = 3 * width;
    gradients.d_q = {d_data.data(), nq, width, d_stride};
    gradients.d_k = {d_data.data() + width, nk, width, d_stride};
    gradients.d_v = {d_data.data() + 2 * width, nk, width, d_stride};
    for (int32_t s = 0; s < queries.sequences(); ++s) {
      multiply_adds += double{2} * queries.length(s) * keys.length(s) * d * heads;
      sentences.push_back(s);
    }
    in.dropout.stream = dropout_stream(1, 2, 3);
    in.dropout.offsets = in.query_offsets;
    in.dropout.sentences = sentences;
  }

  Ragged queries, keys;
  std::vector<float> q_data, k_data, v_data, d_output_data, d_data, output_data, lse;
  std::vector<int64_t> sentences;
  AttentionInputs in;
  MatrixView output;
  AttentionGradients gradients;
  double multiply_adds = 0;  // of the forward pass
};

void run(benchmark::State& state, Batch& batch, bool backward) {
  for (auto _ : state) {
    attention_forward(batch.in, {batch.output, batch.lse.data()});
    if (backward) attention_backward(batch.in, batch.gradients);
    benchmark::ClobberMemory();
  }
  const double flops = 2 * batch.multiply_adds * (backward ? 3.5 : 1);
  state.SetItemsProcessed(state.iterations() * batch.queries.sequences());
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

enum Kind { kSelf, kCausal, kCross };

void short_sentences(benchmark::State& state, Kind kind, bool backward, float rate) {
  Random random(1);
  const auto queries = sentence_lengths(256, random);
  const auto keys = kind == kCross ? sentence_lengths(256, random) : queries;
  Batch batch(queries, keys, 4, 32, kind != kCross);
  if (kind == kCausal) batch.in.mask = Mask::causal();
  batch.in.dropout.rate = rate;
  run(state, batch, backward);
}
BENCHMARK_CAPTURE(short_sentences, self_forward, kSelf, false, 0)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(short_sentences, self_both, kSelf, true, 0)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(short_sentences, causal_forward, kCausal, false, 0)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(short_sentences, causal_both, kCausal, true, 0)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(short_sentences, cross_forward, kCross, false, 0)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(short_sentences, cross_both, kCross, true, 0)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(short_sentences, self_both_dropout, kSelf, true, 0.1f)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

/// Beam search: `queries` rows for each of 250 sentences, all of them reading the same 15 keys by their rows;
/// and the same number of rows with keys of their own.
void decoding(benchmark::State& state) {
  const auto queries = static_cast<int32_t>(state.range(0));
  const int sequences = 1250 / queries;
  Batch batch(std::vector<int32_t>(static_cast<size_t>(sequences), queries),
              std::vector<int32_t>(static_cast<size_t>(sequences), 15), 4, 32, false);
  std::vector<int32_t> rows;
  Random random(1);
  for (int64_t i = 0; i < batch.keys.rows(); ++i) rows.push_back(static_cast<int32_t>(i));
  for (int64_t i = 0; i + 15 <= batch.keys.rows(); i += 15) std::swap(rows[static_cast<size_t>(i)], rows[0]);
  batch.in.key_rows = rows;
  run(state, batch, false);
}
BENCHMARK(decoding)->Arg(1)->Arg(5)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// B sequences of T tokens, H heads of D.
void equal_lengths(benchmark::State& state, bool causal, bool backward) {
  const std::vector<int32_t> lengths(static_cast<size_t>(state.range(0)),
                                     static_cast<int32_t>(state.range(2)));
  Batch batch(lengths, lengths, static_cast<int>(state.range(1)), static_cast<int>(state.range(3)), false);
  if (causal) batch.in.mask = Mask::causal();
  run(state, batch, backward);
}
void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"B", "H", "T", "D"})->Unit(benchmark::kMicrosecond)->UseRealTime();
  b->Args({32, 8, 32, 64})->Args({8, 12, 128, 64})->Args({8, 12, 512, 64})->Args({1, 16, 4096, 64});
}
BENCHMARK_CAPTURE(equal_lengths, forward, false, false)->Apply(shapes);
BENCHMARK_CAPTURE(equal_lengths, both, false, true)->Apply(shapes);
BENCHMARK_CAPTURE(equal_lengths, causal_both, true, true)->Apply(shapes);

}  // namespace
}  // namespace mh
