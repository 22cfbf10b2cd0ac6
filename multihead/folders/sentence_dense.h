// SentenceDense: the Dense module of sentence-transformers, activation(x W + b) of a pooled vector.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/parameter.h"

namespace mh {

/// An activation of torch.nn without arguments, and its derivative.
struct SentenceActivation {
  std::string_view name;  // of the class in torch.nn
  double (*value)(double);
  double (*slope)(double);
};

class SentenceDense {
 public:
  /// w [in, out], b [1, out]; activation: null is the identity.
  SentenceDense(Weight w, std::optional<Weight> b, const SentenceActivation* activation);
  SentenceDense(const SentenceDense&) = delete;
  SentenceDense& operator=(const SentenceDense&) = delete;

  int64_t inputs() const { return affine_.inputs(); }
  int64_t outputs() const { return affine_.outputs(); }
  /// [N, in] -> [N, out]. Throws Error when x W + b is not finite.
  Var of(Tape& tape, Var rows) const;

 private:
  Parameter w_, b_;
  Affine affine_;
  const SentenceActivation* activation_;
};

/// Reads config.json and model.safetensors of a module's folder; `inputs`: the numbers of a vector before it; remarks: gets a
/// line where there are keys that are not known. Throws FileError, FormatError.
std::shared_ptr<const SentenceDense> load_sentence_dense(const std::filesystem::path& folder, int64_t inputs,
                                                         std::vector<std::string>& remarks);

}  // namespace mh
