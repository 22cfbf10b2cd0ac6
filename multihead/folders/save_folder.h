// Writes a model as a folder that load_model_folder() reads and, where its format is a family's, Transformers opens.
//
//   mh::ModelFolder folder = mh::load_model_folder("bert");
//   ... other parameters, or other heads (heads/conversion/) ...
//   mh::save_model_folder("changed", folder);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/stored_matrix.h"
#include "multihead/folders/model_folder.h"
#include "multihead/nn/head_name.h"

namespace mh {

class EncoderDecoder;

/// Which folder of the same name may be replaced: one that this library wrote, or any model's.
enum class Replace { kOwnFolders, kAnyModel };

/// What a folder may be that Transformers cannot open, since its family's config.json cannot say which heads the model has.
enum class OwnFormat { kRefused, kAllowed };

/// How the matrices of a folder are written: as numbers, or those that products read as integers of 8 bits with a scale for each
/// row (docs/precision.md).
enum class SavedMatrices { kNumbers, kInt8 };

/// In which format a folder is written.
struct SavedFormat {
  enum class Kind {
    kFamily,  // the family's: Transformers opens it
    kPrunedHeads,  // the family's with "pruned_heads" (folders/pruned_heads.h): Transformers 4 opens it, 5 does not
    kOwn,          // "multihead_heads", which load_model_folder() reads and Transformers does not
  };
  Kind kind = Kind::kFamily;
  std::string why = {};  // with kOwn: why the family's format cannot hold the heads
  bool as_read = false;  // the format in which the heads were read, unchanged
};

struct SaveOptions {
  // Of a model that was not read from a folder: one that was keeps its own.
  const Tokenizer* tokenizer = nullptr;
  const Tokenizer* target_tokenizer = nullptr;          // only with separate vocabularies
  std::map<std::string, std::string> extra_files = {};  // name -> bytes, e.g. the training state
  NumberType type = NumberType::kFloat32;               // of the parameters: float32, or rounded to bfloat16
  int64_t largest_file = 5'000'000'000;  // bytes; more parameters become shards and their index
  /// Of models other than those encoder-decoders which are written anew, in our own format where they need it.
  OwnFormat own_format = OwnFormat::kRefused;
  /// Heads of the model that was read which this one does not have, where these are all that differs: families with "pruned_heads"
  /// say which they were.
  std::vector<HeadName> removed = {};
  Replace replace = Replace::kOwnFolders;
  SavedMatrices matrices = SavedMatrices::kNumbers;  // kInt8: `type` is that of all else
  /// Of an encoder-decoder that was made here and began with the weights of this folder: it is written in that folder's format, with
  /// its config.json, tokenizers and other small files (kept_folder.h). `tokenizer` is none then.
  const ModelFolder* begun_from = nullptr;
};

/// What is saved: a model that was read from files, or an encoder-decoder that was made here. It must outlive this.
struct SavedModel {
  SavedModel(const ModelFolder& read) : model(*read.model), model_type(read.model_type), folder(&read) {}
  SavedModel(const EncoderDecoder& made);

  const Model& model;
  std::string model_type;               // whose family writes it
  const ModelFolder* folder = nullptr;  // null: it was made here
};

/// Writes the folder in one step: after a kill at any moment there is either the old folder or the new one, and
/// when the caller's StopScope (base/stop.h) ends it, the old one.
///
/// An encoder-decoder of `marian` or `multihead`, or one that was made here, is written anew, in the format of MarianMTModel where
/// that can hold it and else in our own.
/// Every other model, and one with options.begun_from, is written as it was read, with the parameters and heads that it has
/// now: the folder's own config.json with what changed, its tokenizers and other small files, parameters under the names that
/// they were read by, and the tensors of heads that are not done here.
///
/// It replaces an older model folder of that name that this library wrote. Throws FileError, also when a folder of
/// that name has files that are not a model's, or a model that somebody else wrote and options.replace does not
/// allow to lose; Error on numbers that are not finite; and UsageError, before anything is written, when tokenizer
/// and model do not match, on the folder that the model was read from, on a model other than an encoder-decoder
/// that was not read from files, and when its family's format cannot hold its heads: it gives all layers the same
/// number, or heads of d_model / heads columns. OwnFormat::kAllowed writes these under "multihead_heads", which
/// load_model_folder() reads.
void save_model_folder(const std::filesystem::path& path, const SavedModel& saved,
                       const SaveOptions& options = {});

/// What save_model_folder() would write, before it does. removed: SaveOptions::removed. Throws UsageError on a model that was
/// not read from files.
SavedFormat format_when_saved(const ModelFolder& folder, std::span<const HeadName> removed = {});

/// The same in words, for people: "Transformers opens the folder".
std::string format_line(const SavedFormat& format, const std::string& model_type);

}  // namespace mh
