// What is learned from what: the model's parameters, the examples, and the loss of a batch of them. The
// trainer knows nothing else about either.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/models/model_folder.h"
#include "multihead/nn/context.h"

namespace mh {

/// Sums over the batches of an update; means are made where they are shown.
struct LossSums {
  double smoothed_loss = 0;            // over target tokens, with label smoothing
  double negative_log_likelihood = 0;  // over target tokens, natural log, not smoothed
  double head_similarity = 0;          // the disagreement over rows, where the objective compares heads
  int64_t target_tokens = 0;
  int64_t source_tokens = 0;
  int64_t sentences = 0;

  LossSums& operator+=(const LossSums& other) {
    smoothed_loss += other.smoothed_loss;
    negative_log_likelihood += other.negative_log_likelihood;
    head_similarity += other.head_similarity;
    target_tokens += other.target_tokens;
    source_tokens += other.source_tokens;
    sentences += other.sentences;
    return *this;
  }
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// What is learned, in a fixed order, each under its name.
  virtual void visit(const ParameterVisitor& visitor) = 0;
  /// The batches of an epoch, each a list of examples. The same for the same epoch, whenever it is asked.
  virtual std::vector<std::vector<int64_t>> plan(uint64_t epoch) const = 0;
  /// What the mean loss of an update is taken over.
  virtual int64_t target_tokens(std::span<const int64_t> batch) const = 0;
  /// Where these examples stand in the training text, from 1: for messages.
  virtual std::vector<int64_t> lines(std::span<const int64_t> batch) const = 0;
  /// Forward: afterwards context.tape.backward() adds scale * the gradient of the sum over target tokens to
  /// the parameters' gradients. REQUIRES: a recording tape.
  virtual LossSums loss(Context& context, std::span<const int64_t> batch, float scale) = 0;
  /// Whether sums have head_similarity.
  virtual bool compares_heads() const { return false; }
  /// Writes the model as a folder that load_model_folder() reads.
  virtual void save_model(const std::filesystem::path& folder, const SaveOptions& options) const = 0;
  /// Gives back memory that the next loss() takes again.
  virtual void release_memory() {}
};

}  // namespace mh
