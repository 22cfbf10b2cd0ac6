// NeedleWatch: where every head looks in the rows that predict an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/sites.h"

namespace mh {

/// Called at the weights of all heads. The rows of the steps alone are read, so a text should be read without it up to there.
class NeedleWatch final : public Sites {
 public:
  explicit NeedleWatch(const Model& model);

  const std::vector<HeadName>& heads() const { return heads_; }
  /// first: the position of the row that predicts the answer's first token; place, tokens: of the needle's sentence.
  void begin(int32_t first, int32_t steps, int32_t place, std::span<const int32_t> tokens);

  bool wants(const Site& site) const override;
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;

  /// Whether the key with the head's largest weight at this step is this token in the needle.
  bool copies(size_t head, int32_t step, int32_t token) const;
  /// The weight that it gives to the places of this token in the needle.
  double weight(size_t head, int32_t step, int32_t token) const;

 private:
  struct Look {
    int32_t key = -1;                   // with the largest weight; of equal ones the first
    std::vector<float> on_needle = {};  // the weight of each of the needle's tokens
  };
  const Look& look(size_t head, int32_t step) const {
    return looks_[head * static_cast<size_t>(steps_) + static_cast<size_t>(step)];
  }

  std::vector<HeadName> heads_;
  std::map<std::string, size_t, std::less<>> first_of_;  // of an attention: its first head in heads_
  int32_t first_ = 0, steps_ = 0, place_ = 0;
  std::vector<int32_t> tokens_;
  std::vector<Look> looks_;  // [heads][steps]
};

}  // namespace mh
