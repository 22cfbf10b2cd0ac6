// CheckpointStore: the checkpoints of a training run in DIR/checkpoints. Each is a complete model folder,
// with the files that resuming needs.
//
//   update-500/   config.json, model.safetensors, tokenizer.json, ...   opens like any model folder
//                 training_state.json                                   TrainingState
//                 training_state.safetensors                            Adam's moments: first.NAME,
//                                                                       second.NAME; value.NAME of what the
//                                                                       model's file does not hold as trained
//
// A folder appears as a whole (FolderWriter), so after a kill at any moment the newest checkpoint is
// complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/adam.h"
#include "multihead/train/folder_lock.h"
#include "multihead/train/objective.h"
#include "multihead/train/trainer.h"
#include "multihead/train/training_state.h"

namespace mh {

/// An open checkpoint: everything that a run resumes from. The weights and moments are open files;
/// CheckpointStore::restore() reads their numbers.
struct Checkpoint {
  TrainingState state;
  ModelFolder folder;
  SafetensorsFile moments;
};

class CheckpointStore {
 public:
  /// For the run whose final model is `folder`. Makes folder/checkpoints and removes half-written files of
  /// a killed run. Throws FileError; Error when another process is training there and does not end in time.
  explicit CheckpointStore(std::filesystem::path folder, const LockWait& wait = {});

  /// What every checkpoint gets besides the model. REQUIRES: it outlives this.
  void set_tokenizers(const Tokenizer* tokenizer, const Tokenizer* target_tokenizer) {
    common_.tokenizer = tokenizer;
    common_.target_tokenizer = target_tokenizer;
  }
  /// The same of a model that began with the weights of a folder (SaveOptions::begun_from).
  void set_folder(const ModelFolder* begun_from) { common_.begun_from = begun_from; }

  /// The updates that have a checkpoint, rising.
  std::vector<int64_t> updates() const;
  std::filesystem::path path(int64_t update) const;

  void save(const Objective& objective, Adam& adam, const TrainingState& state);
  /// Throws FormatError or FileError on a damaged file, naming it and how to resume without it; so do the
  /// functions below.
  Checkpoint load(int64_t update) const;
  /// Sets weights, moments and state of the trainer to those of the checkpoint. When it throws, nothing has
  /// changed.
  void restore(const Checkpoint& checkpoint, Trainer& trainer) const;

  /// Sets `parameters` to the mean of those of the chosen checkpoints. Throws UsageError when none is
  /// chosen.
  void average(std::span<const int64_t> chosen, std::span<const NamedParameter> parameters) const;

  void remove(int64_t update);
  void drop_moments(int64_t update);
  /// Makes a checkpoint the final model: links its files into the final folder (or copies them, where a
  /// file system has no hard links). Each file is replaced in one step, the weights last.
  void publish(int64_t update);
  /// The same for a model that is not a checkpoint, e.g. an average.
  void publish(const Objective& objective);

 private:
  /// Opens the folder of a checkpoint as a model.
  ModelFolder load_model(int64_t update) const;
  void publish_folder(const std::filesystem::path& from);
  void remove_leftovers_of_publishing() const;

  std::filesystem::path folder_;       // the final model's
  std::filesystem::path checkpoints_;  // folder_/checkpoints
  SaveOptions common_;                 // of all that is saved
  std::optional<FolderLock> lock_;
};

/// Copies the values of one model's parameters into another's of the same names. Throws FormatError listing
/// all names and shapes that differ; `name` says where `from` came from.
void copy_parameters(std::span<const NamedParameter> from, std::span<const NamedParameter> to,
                     std::string_view name);

}  // namespace mh
