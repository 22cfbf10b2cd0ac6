#include "multihead/heads/conversion/compare_speed.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"

namespace mh {
namespace {

double seconds_of_pass(const Model& model, const Batch& read, const Batch& written) {
  const auto start = std::chrono::steady_clock::now();
  Tape tape;
  Context context{.tape = tape};
  const bool translates = !written.ids.empty();
  const Sequences target = translates ? written.view() : Sequences();
  const Var states = model.read(context, read.view(), target);
  if (model.predicts()) model.logits(context, states, translates ? target : read.view());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

PassSeconds compare_speed(const Model& first, const Model& second,
                          const std::vector<std::vector<int32_t>>& sources,
                          const std::vector<std::vector<int32_t>>& targets, int rounds) {
  MH_ASSERT(rounds >= 1);
  const Batch read(sources), written(targets);
  PassSeconds found{.first = std::numeric_limits<double>::infinity(),
                    .second = std::numeric_limits<double>::infinity(),
                    .tokens = std::ssize(read.ids) + std::ssize(written.ids)};
  for (int i = -1; i < rounds; ++i) {  // the first packs weights, which is done once
    const double of_first = seconds_of_pass(first, read, written),
                 of_second = seconds_of_pass(second, read, written);
    if (i < 0) continue;
    found.first = std::min(found.first, of_first);
    found.second = std::min(found.second, of_second);
  }
  return found;
}

}  // namespace mh
