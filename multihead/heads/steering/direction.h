// SteerDirection: a vector that steers a model while it is added to the values at a site, at every position:
//
//   value = value + strength * direction
//
// Turner et al. 2023 ("Activation addition: steering language models without optimization"), Rimsky et al. 2024 ("Steering Llama 2
// via contrastive activation addition"), Todd et al. 2024 ("Function vectors in large language models"). make_direction.h makes one
// of texts; docs/heads/steer.md says what it means and what it does not.
//
//   const mh::SteerDirection direction = mh::read_direction("polite.safetensors");
//   mh::check_direction(direction, *folder.model, mh::weights_hash(folder));   // that it was made with this model
//   mh::SiteValues values;
//   values.add(direction.times(4));
//   mh::generate_text(folder, prompts, {.generate = {.sites = &values}});
//
// Its file is one of safetensors: the tensor "direction", float32 [columns], and metadata (docs/file-formats.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "multihead/heads/sites/site_replacement.h"
#include "multihead/models/model.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct SteerDirection {
  std::string site = {};               // the name of the site where it is added, "decoder.12.output"
  std::optional<int> head = {};        // of sites of heads side by side: whose columns; none: all
  std::string name = "the direction";  // what errors call it: its file
  Tensor numbers = {};                 // [1, columns], in units of the site's values
  std::string weights =
      {};  // SHA-256 of the files of the model that it was made with (folders/weights_hash.h); empty: not known
  std::string made = {};  // how, in words
  /// The mean length (root of the sum of squares) of the rows of which it was made; none: not known. A strength of row_length / length()
  /// adds as much as there is.
  std::optional<double> row_length = {};

  double length() const;
  /// What SiteValues::add() takes. Throws nothing; that refuses a strength that cannot be.
  SiteReplacement times(float strength) const;
};

/// Throws UsageError when the model has no such site or head, or its columns are others, and when the weights are others: each with
/// what to do. weights: weights_hash() of the model.
void check_direction(const SteerDirection& direction, const Model& model, const std::string& weights);

/// The bytes of its file.
std::string direction_file(const SteerDirection& direction);
/// Throws FileError, and FormatError on what is no direction.
SteerDirection read_direction(const std::filesystem::path& path);

}  // namespace mh
