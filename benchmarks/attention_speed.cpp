// The speed of attention beside a peer, on inputs that the peer's script chooses
// (benchmarks/peers/attention.py).
//
//   peak                                    -> GFLOP/s in a loop of multiply-adds on every thread at once
//   shape FOLDER H G D RATE none|causal     reads FOLDER/lengths (a line of queries', one of keys')
//                                           and FOLDER/{q,k,v,d_output}: float32, [N, heads * D] row by row
//                                           -> MiB this process holds at most so far
//   soft_cap CAP                            caps the scores from here on; 0: not -> 0
//   distances BUCKETS FARTHEST              adds T5's biases by buckets of distances from here on; 0 0: not -> 0
//   halves                                  keys and values are bfloat16 from here on: no backward pass -> 0
//   forward CALLS | both CALLS              -> median seconds of a call (forward; forward and backward)
//   write                                   the output and the gradients to FOLDER/{output,d_q,d_k,d_v} -> 0
//   memory                                  -> MiB this process held at most
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "benchmarks/peak.h"
#include "multihead/base/file.h"
#include "multihead/base/ragged.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/half_rows.h"
#include "multihead/nn/positions.h"

namespace {

std::vector<int32_t> numbers_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<int32_t> numbers;
  for (int32_t n = 0; words >> n;) numbers.push_back(n);
  return numbers;
}

struct Work {
  std::string folder;
  mh::Ragged queries, keys;
  std::vector<float> q, k, v, d_output, output, lse, d_q, d_k, d_v;
  std::vector<uint16_t> half_k, half_v;
  std::vector<int64_t> sentences;
  std::vector<float> by_bucket;
  std::vector<int32_t> buckets;
  mh::AttentionInputs in;
  mh::AttentionOutputs out;
  mh::AttentionGradients gradients;

  std::vector<float> read(const std::string& name, int64_t rows, int64_t columns) const {
    const std::string bytes = mh::read_file(folder + "/" + name);
    const auto size = static_cast<size_t>(rows * columns);
    if (bytes.size() != size * sizeof(float))
      throw mh::FormatError(folder + "/" + name + ": not of the shape's size");
    std::vector<float> numbers(size);
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  void write(const std::string& name, const std::vector<float>& numbers) const {
    mh::write_file_atomically(folder + "/" + name,
                              {reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4});
  }

  Work(std::string in_folder, int heads, int key_heads, int d, float rate, bool causal)
      : folder(std::move(in_folder)) {
    std::istringstream lengths(mh::read_file(folder + "/lengths"));
    std::string line;
    std::getline(lengths, line);
    queries = mh::Ragged::from_lengths(numbers_of(line));
    std::getline(lengths, line);
    keys = mh::Ragged::from_lengths(numbers_of(line));
    const int64_t nq = queries.rows(), nk = keys.rows(), width = int64_t{heads} * d,
                  key_width = int64_t{key_heads} * d;
    q = read("q", nq, width);
    k = read("k", nk, key_width);
    v = read("v", nk, key_width);
    d_output = read("d_output", nq, width);
    output.resize(q.size());
    lse.resize(static_cast<size_t>(nq * heads));
    in.q = {q.data(), nq, width};
    in.k = {k.data(), nk, key_width};
    in.v = {v.data(), nk, key_width};
    in.heads = heads;
    in.key_heads = in.value_heads = key_heads;
    in.d_key = in.d_value = d;
    in.query_offsets = queries.offsets();
    in.key_offsets = keys.offsets();
    in.scale = mh::attention_scale(d);
    if (causal) in.mask = mh::Mask::causal();
    for (int32_t s = 0; s < queries.sequences(); ++s) sentences.push_back(s);
    in.dropout = {.rate = rate,
                  .stream = mh::dropout_stream(1, 2, 3),
                  .offsets = queries.offsets(),
                  .sentences = sentences};
    out.output = {output.data(), nq, width};
  }

  void round() {
    const auto rounded = [](mh::ConstHeadsView& from, std::vector<uint16_t>& memory) {
      memory.resize(static_cast<size_t>(from.size()));
      const mh::HalfView to(memory.data(), from.rows, from.cols);
      mh::round_to_halves(from, to);
      from = {};
      return to;
    };
    in.half_k = rounded(in.k, half_k);
    in.half_v = rounded(in.v, half_v);
  }
  void add_distances(const mh::T5Buckets& of) {
    const bool causal = in.mask.kind() == mh::Mask::Kind::kBand;
    const auto direction = causal ? mh::AttentionDirection::kCausal : mh::AttentionDirection::kBidirectional;
    in.bias = {};
    if (of.count == 0) return;
    by_bucket.resize(static_cast<size_t>(in.heads * of.count));
    for (size_t i = 0; i < by_bucket.size(); ++i) by_bucket[i] = 0.1f * static_cast<float>(i % 17);
    buckets.clear();
    for (int distance = -of.farthest; distance <= of.farthest; ++distance)
      buckets.push_back(mh::t5_bucket(distance, direction, of));
    in.bias = {.by_distance = by_bucket,
               .distance_clip = of.farthest,
               .distance_columns = of.count,
               .buckets = buckets};
  }
  void forward() { mh::attention_forward(in, out); }
  void both() {
    if (d_q.empty()) {
      d_q.resize(q.size());
      d_k.resize(k.size());
      d_v.resize(v.size());
      out.lse = lse.data();
      gradients = {.output = out.output,
                   .lse = lse.data(),
                   .d_output = {d_output.data(), in.q.rows, in.q.cols},
                   .d_q = {d_q.data(), in.q.rows, in.q.cols},
                   .d_k = {d_k.data(), in.k.rows, in.k.cols},
                   .d_v = {d_v.data(), in.v.rows, in.v.cols}};
    }
    mh::attention_forward(in, out);
    mh::attention_backward(in, gradients);
  }
};

double answer(const std::string& what, std::istringstream& rest, std::unique_ptr<Work>& work) {
  if (what == "peak") return mh::peak_gflops();
  if (what == "memory") return mh::peak_mebibytes();
  if (what == "shape") {
    std::string folder, mask;
    int heads = 0, key_heads = 0, d = 0;
    float rate = 0;
    if (!(rest >> folder >> heads >> key_heads >> d >> rate >> mask))
      throw mh::UsageError("shape: bad arguments");
    work.reset();
    work = std::make_unique<Work>(folder, heads, key_heads, d, rate, mask == "causal");
    return mh::peak_mebibytes();
  }
  if (!work) throw mh::UsageError(what + ": give a shape first");
  if (what == "write") {
    work->write("output", work->output);
    if (!work->d_q.empty()) {
      work->write("d_q", work->d_q);
      work->write("d_k", work->d_k);
      work->write("d_v", work->d_v);
    }
    return 0;
  }
  if (what == "halves") {
    work->round();
    return 0;
  }
  if (what == "soft_cap") {
    float cap = 0;
    if (!(rest >> cap)) throw mh::UsageError("soft_cap: expected a number");
    work->in.soft_cap = cap > 0 ? std::optional(cap) : std::nullopt;
    return 0;
  }
  if (what == "distances") {
    mh::T5Buckets of;
    if (!(rest >> of.count >> of.farthest)) throw mh::UsageError("distances: expected two numbers");
    work->add_distances(of);
    return 0;
  }
  int calls = 0;
  if ((what != "forward" && what != "both") || !(rest >> calls))
    throw mh::UsageError("unknown command: " + what);
  std::vector<double> seconds;
  for (int i = 0; i < calls; ++i) {
    const mh::Stopwatch watch;
    what == "both" ? work->both() : work->forward();
    seconds.push_back(watch.seconds());
  }
  return mh::median(std::move(seconds));
}

int run(int, char**) {
  std::unique_ptr<Work> work;
  return mh::answer_commands(
      [&](const std::string& what, std::istringstream& rest) { return answer(what, rest, work); });
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("attention_speed", run, argc, argv);
}
