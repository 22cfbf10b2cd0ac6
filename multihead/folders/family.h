// Family: the folder format of one kind of model, such as GPT-2's: how its config.json is read, and what
// its tensors are called in model.safetensors. Each family is one file in folders/families/, where families.cpp
// lists them all; folders are read through that list. docs/file-formats.md describes the folders.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/labels.h"
#include "multihead/folders/oracle_modules.h"
#include "multihead/folders/pruned_heads.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/models/model.h"
#include "multihead/models/own_heads.h"

namespace mh {

/// Where the numbers of a parameter are in the files. In this library a projection is [in, out], so that
/// y = x w, and a bias is a matrix of one row.
struct TensorPlace {
  enum class Layout {
    kMatrix,      // as in this library
    kTransposed,  // [out, in], as torch's Linear has it
    kVector,      // a vector, which is one row here
  };
  /// Possible names; the first one that a file has is read, and the first one is written.
  std::vector<std::string> names;
  Layout layout = Layout::kMatrix;
  bool may_be_missing = false;  // the parameter is then 0
  int part = 0, parts = 1;      // in a fused tensor, which has the columns of all its parts side by side
  int64_t block = 0;            // or block by block, each of so many columns of every part (part_columns.h)
  float offset =
      0;  // the parameter is the numbers in the file plus this: gains of norms that are stored as w of 1 + w
};

/// The shape in a file of a tensor that is [rows, cols] here.
std::vector<int64_t> shape_of(TensorPlace::Layout layout, int64_t rows, int64_t cols);

/// How to make the model that a config.json describes.
struct FolderPlan {
  std::string model_type;
  /// A lower bound of the number of parameters. It is compared with the files before memory is taken.
  double least_parameters = 0;
  /// Makes the model with all weights 0. It may look at the files for what config.json does not say, e.g.
  /// whether there is a pooler.
  std::function<std::unique_ptr<Model>(const TensorFiles& files)> make;
  std::function<TensorPlace(std::string_view parameter)> place;
  std::vector<std::string> prefixes = {""};  // tried before every name; the first that fits is used
  /// Whether a tensor (its name without prefix) is not a weight but e.g. a mask or a table of sinusoids;
  /// empty: there are none. It may check the tensor and add to `differences`.
  std::function<bool(const std::string& tensor, const TensorFiles& files, const Model& model,
                     Differences& differences)>
      no_weight = nullptr;
  /// How the names of tensors begin (without prefix) that are heads for tasks which are not done here, such as classification:
  /// they are left where they are, and named.
  std::vector<std::string> other_heads = {};
  std::vector<std::string> files = {};  // other files that must be in the folder
  /// Attentions whose heads are others than the family's config.json can say ("multihead_heads", docs/file-formats.md).
  std::vector<OwnHeads> own_heads = {};
  /// Whether Transformers 4 prunes heads of the family; and those that are gone by "pruned_heads", which counts where there are no
  /// own_heads (folders/pruned_heads.h).
  bool prunes_heads = false;
  PrunedHeads pruned_heads = {};
  /// Whether the files alone say that the output layer is tied, and tie_word_embeddings something else (T5).
  bool files_say_tied = false;
  /// The fields with which the family's config.json says that all attentions have these heads. Throws UsageError, saying
  /// why, when it cannot. Not set where Family::write is.
  std::function<std::map<std::string, int32_t>(const HeadGeometry& heads, int32_t d_model)> fields_of_heads =
      nullptr;
  /// The field with which that config.json says the longest sequence, of translators that may be trained on longer ones.
  std::string field_of_longest = {};
  /// Of a classifier whose layer of labels is read where the files have it.
  std::optional<Labels> labels = std::nullopt;
  /// What messages call the description that this plan was read from, and what to do if weights do not fit.
  std::string description = "config.json", remedy = "take both files from the same model";
  /// Lines for the user (ModelFolder::remarks): keys of config.json that were not used.
  std::vector<std::string> remarks = {};
};

struct FolderContents;
struct KnownKeys;
struct SavedModel;
struct SaveOptions;

/// Two names of one field of config.json, as the attribute_map of a class of Hugging Face has them: either may be in a file.
struct KeyAlias {
  std::string_view alias, field;
};

/// What the models of a family read: one text, or a source and a target, perhaps with codes of languages, of which one may stand
/// behind the end of a source.
enum class FamilyTexts { kOne, kSourceAndTarget, kManyLanguages };

struct Family {
  std::string_view model_type;  // as in config.json
  std::string_view what;        // in a few words, for messages
  /// Reads a config.json. Throws FormatError that starts with `name` and lists everything that is wrong
  /// with it.
  FolderPlan (*read)(std::string_view json, std::string_view name);
  /// What it knows about the keys of that file, besides those of every configuration (folders/known_keys.h).
  KnownKeys (*keys)();
  std::span<const KeyAlias> aliases = {};
  const OracleModules* oracle = nullptr;  // null: only states and logits are compared with transformers
  /// What its folder of a model holds (folders/folder_contents.h). Null: what was read, with what changed.
  FolderContents (*write)(const SavedModel& saved, const SaveOptions& options) = nullptr;
  FamilyTexts texts = FamilyTexts::kOne;
};

/// The key of config.json with the heads of attentions that the family itself cannot describe: FolderPlan::own_heads.
inline constexpr const char* kOwnHeads = "multihead_heads";
struct OwnHeadsField {
  std::vector<OwnHeads> heads;
  template <class V>
  void visit(V& v) {
    v(kOwnHeads, heads);
  }
};

std::span<const Family* const> families();
/// The family of this name in config.json; null: there is none.
const Family* family_named(std::string_view model_type);
/// Reads a config.json with the family that its model_type names. Throws FormatError.
FolderPlan read_plan(std::string_view json, std::string_view name);
/// Returns a config.json in which fields have the names that their family reads (Family::aliases), as it is when they have them
/// already. Throws FormatError, also when both names are there with different values.
std::string with_family_names(std::string_view json, std::string_view name);

}  // namespace mh
