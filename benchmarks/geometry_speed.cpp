// The time of a layer of each geometry divided by the time of the canonical one, and by the same ratio of
// their operations in the ledger: 1 means that a layer is as fast as its operations allow. Geometries take
// turns; medians.
//
//   geometry_speed [OUT.json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/io/config.h"
#include "multihead/kernels/simd.h"
#include "multihead/nn/ledger.h"
#include "multihead/nn/multi_head_attention.h"

namespace {

constexpr int kModel = 256, kHeads = 8, kTokens = 32, kSentences = 64, kRepeats = 41;

struct Line {
  std::string geometry, path;
  int64_t flops = 0;  // of a forward pass, by the ledger
  double forward_us = 0, both_us = 0;
  double forward_scaled = 0, both_scaled = 0;  // (time / FLOPs) over the canonical one's

  template <class V>
  void visit(V& v) {
    v("geometry", geometry);
    v("path", path);
    v("flops", flops);
    v("forward_us", forward_us);
    v("forward_and_backward_us", both_us);
    v("forward_scaled", forward_scaled);
    v("forward_and_backward_scaled", both_scaled);
  }
};

struct Results {
  std::string what, machine;
  std::vector<Line> lines;

  template <class V>
  void visit(V& v) {
    v("what", what);
    v("machine", machine);
    v("geometries", lines);
  }
};

struct Timed {
  std::unique_ptr<mh::DropoutStreams> streams = std::make_unique<mh::DropoutStreams>();
  std::unique_ptr<mh::MultiHeadAttention> layer;
  std::vector<double> forward, both;
};

double median(std::vector<double> numbers) {
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(numbers.size() / 2),
                   numbers.end());
  return numbers[numbers.size() / 2];
}

void run_once(Timed& timed, const mh::Tensor& x, const mh::Ragged& ragged, const mh::Tensor& seed) {
  using Clock = std::chrono::steady_clock;
  mh::Tape tape(mh::Tape::Mode::kRecord);
  for (int pass = 0; pass < 2; ++pass) {  // the first one takes its memory from the system
    tape.clear();
    mh::Context context{.tape = tape};
    const auto start = Clock::now();
    const mh::Var input = tape.constant(const_cast<mh::Tensor&>(x).view(), mh::Tape::Gradient::kWants);
    const mh::Sequences rows{.ids = {}, .ragged = &ragged, .sentences = {}};
    const mh::Var heads = timed.layer->self_heads(context, input, rows, mh::Mask::none());
    const mh::Var y = timed.layer->output() ? mh::affine(tape, heads, *timed.layer->output()) : heads;
    const auto middle = Clock::now();
    tape.seed(y, seed.view());
    tape.backward();
    if (pass == 0) continue;
    timed.forward.push_back(std::chrono::duration<double>(middle - start).count());
    timed.both.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

int run(int argc, char** argv) {
  mh::Random random(1);
  const mh::Ragged ragged = mh::Ragged::from_lengths(std::vector<int32_t>(kSentences, kTokens));
  mh::Tensor x(ragged.rows(), kModel), seed(ragged.rows(), kModel);
  for (mh::Tensor* t : {&x, &seed}) {
    for (int64_t i = 0; i < t->size(); ++i) t->data()[i] = static_cast<float>(random.normal());
  }
  const auto names = mh::geometry_names();
  std::vector<Timed> all(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const mh::HeadGeometry geometry = mh::geometry_preset(names[i].name, kHeads, kModel);
    all[i].layer = std::make_unique<mh::MultiHeadAttention>(
        "layer", mh::MultiHeadAttentionConfig{.d_model = kModel, .geometry = geometry}, *all[i].streams);
    mh::Random own(2);
    all[i].layer->initialise(own);
  }
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (Timed& timed : all) run_once(timed, x, ragged, seed);
  }
  Results results{"one layer, d_model 256, 8 heads, 64 sentences of 32 tokens, forward and backward, float32",
                  mh::dispatch_target() + ", " + std::to_string(mh::thread_count()) + " threads",
                  {}};
  for (size_t i = 0; i < names.size(); ++i) {
    const mh::Ledger counted =
        mh::ledger(mh::geometry_preset(names[i].name, kHeads, kModel), kModel, kTokens, kTokens);
    Line line{.geometry = std::string(names[i].name),
              .path = counted.path == mh::AttentionPath::kFused ? "fused" : "composed",
              .flops = kSentences * counted.total().flops()};
    line.forward_us = 1e6 * median(all[i].forward);
    line.both_us = 1e6 * median(all[i].both);
    const Line& canonical = i == 0 ? line : results.lines[0];
    const double work = static_cast<double>(line.flops) / static_cast<double>(canonical.flops);
    line.forward_scaled = line.forward_us / canonical.forward_us / work;
    line.both_scaled = line.both_us / canonical.both_us / work;
    std::printf("%-22s %-8s %7.1f MFLOP  forward %7.0f us (%.2f)  both %7.0f us (%.2f)\n",
                line.geometry.c_str(), line.path.c_str(), 1e-6 * static_cast<double>(line.flops),
                line.forward_us, line.forward_scaled, line.both_us, line.both_scaled);
    results.lines.push_back(line);
  }
  if (argc > 1) mh::write_file_atomically(argv[1], mh::to_json(results));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
