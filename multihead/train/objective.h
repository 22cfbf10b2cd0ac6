// Objective: what a run trains. It has the parameters of a model, the training examples, and the loss of a
// batch. The trainer knows the model and the data only through this interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/nn/context.h"

namespace mh {

/// Sums over the batches of an update; whoever shows them divides.
struct LossSums {
  double smoothed_loss = 0;            // over target tokens, with label smoothing
  double negative_log_likelihood = 0;  // over target tokens, natural logarithm, not smoothed
  double head_similarity = 0;          // over rows; set if the objective has a disagreement
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

  /// Calls the visitor with every parameter to train and its name, in a fixed order.
  virtual void visit(const ParameterVisitor& visitor) = 0;
  /// Returns the batches of an epoch, each a list of example numbers; always the same for the same epoch.
  virtual std::vector<std::vector<int64_t>> plan(uint64_t epoch) const = 0;
  /// Returns the number of target tokens of a batch; the loss of an update is a mean over them.
  virtual int64_t target_tokens(std::span<const int64_t> batch) const = 0;
  /// Returns what an example costs to learn from, in multiply-adds or anything in proportion to them: so the
  /// examples of an update are shared among ranks.
  virtual double cost(int64_t example) const = 0;
  /// Returns the line numbers of these examples in the training text, from 1, for messages.
  virtual std::vector<int64_t> lines(std::span<const int64_t> batch) const = 0;
  /// Computes the loss of a batch. Then context.tape.backward() adds scale * (gradient of the loss summed
  /// over target tokens) to the parameters' gradients. REQUIRES: a recording tape.
  virtual LossSums loss(Context& context, std::span<const int64_t> batch, float scale) = 0;
  /// Whether LossSums::head_similarity is set.
  virtual bool compares_heads() const { return false; }
  /// How many heads are open, of an objective that learns it.
  struct OpenHeads {
    int64_t open = 0;     // by the gates without noise
    double expected = 0;  // sum of the probabilities of being open
  };
  virtual std::optional<OpenHeads> open_heads() const { return std::nullopt; }
  /// Whether save_model() writes other numbers of this parameter than those that are trained, or none: a checkpoint holds these beside
  /// Adam's moments.
  virtual bool saved_apart(std::string_view /*parameter*/) const { return false; }
  /// Writes the model as a folder that load_model_folder() reads.
  virtual void save_model(const std::filesystem::path& folder, const SaveOptions& options) const = 0;
  /// Frees memory that the next loss() will allocate again.
  virtual void release_memory() {}
};

}  // namespace mh
