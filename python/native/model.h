// A model as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "functions.h"
#include "multihead/base/precision.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/heads/steering/heads_steer.h"
#include "multihead/nn/head_name.h"

namespace mh::python {

namespace nb = nanobind;

/// A loaded model, and how its sentences become vectors where the folder says so or the mean of the states will do.
class LoadedModel {
 public:
  /// What load_model_folder() takes. Throws what that throws.
  LoadedModel(const std::string& path, PrecisionChoice precision);
  /// A folder that was read from there, whose model has lost some heads. Throws nothing.
  LoadedModel(const std::string& path, ModelFolder folder, std::vector<HeadName> removed,
              PrecisionChoice precision);

  const std::string& path() const { return path_; }
  /// The same from wherever the process is then: an absolute path; "demo" of the shipped model.
  const std::string& place() const { return place_; }
  PrecisionChoice precision() const { return precision_; }
  const ModelFolder& folder() const { return model_.folder(); }
  const Model& model() const { return *folder().model; }
  /// What load_scored_model() gives. Throws as sentences() does where vectors are all that can be scored.
  const ScoredModel& scored() const;
  /// The same without a question whether its sentences can become vectors.
  const ScoredModel& unscored() const { return model_; }
  /// Throws UsageError, with the reason that its folder gives, when its sentences cannot become vectors.
  const SentenceModel& sentences() const;
  /// Whether they can.
  bool embeds() const { return no_vectors_.empty(); }
  /// Whether texts can become tokens.
  bool tokenizes() const { return folder().tokenizer.has_value(); }
  const std::vector<HeadName>& removed() const { return removed_; }
  /// weights_hash() of the folder, computed once.
  const std::string& weights() const;
  /// Lines worth knowing of the folder.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Those that only concern vectors, where the folder is not one of sentence-transformers.
  const std::vector<std::string>& vector_remarks() const { return vector_remarks_; }

 private:
  std::string path_, place_;
  PrecisionChoice precision_;
  std::string no_vectors_;  // why; empty: there are
  ScoredModel model_;       // a folder alone where there are none
  std::vector<std::string> remarks_, vector_remarks_;
  std::vector<HeadName> removed_;
  mutable std::once_flag hashed_;
  mutable std::string weights_;
};

/// What a with-block changes inside a model. The calls in it may run at once; none of them keeps or watches values.
struct Edits {
  SiteValues values;
  SiteFunctions functions = {};  // called with what `values` made of a value
  SitesInTurn both{&values, functions};
  std::vector<SteerDirection> directions = {};  // that are added: they are for models of some weights alone
};

/// Null where there are none. Throws UsageError on sites and heads that the model does not have, and on directions of another one.
Sites* sites_of(Edits* edits, const LoadedModel& model);

/// Adds what a model does with texts to the class Model.
void add_tasks(nb::class_<LoadedModel>& model);
void add_translate(nb::class_<LoadedModel>& model);
/// Adds next_logits and predicted_tokens to Model.
void add_next(nb::class_<LoadedModel>& model);
/// Adds parameters, and matrices of heads, to Model.
void add_parameters(nb::class_<LoadedModel>& model);
/// Adds Observation, and observe to Model.
void add_observation(nb::module_& module, nb::class_<LoadedModel>& model);
/// Adds gradient to Model.
void add_gradient(nb::class_<LoadedModel>& model);
/// Adds site_gradients to Model.
void add_site_gradients(nb::class_<LoadedModel>& model);
/// Adds the analyses of heads to Model, as JSON.
void add_analyses(nb::class_<LoadedModel>& model);
/// Adds Direction, and direction and steer to Model.
void add_steering(nb::module_& module, nb::class_<LoadedModel>& model);
/// Adds check to Model, and site_oracle.
void add_check(nb::module_& module, nb::class_<LoadedModel>& model);
/// Adds the page of heads, and write_file.
void add_view(nb::module_& module, nb::class_<LoadedModel>& model);

}  // namespace mh::python
