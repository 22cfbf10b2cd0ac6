#include "multihead/train/checkpoint_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kState = "training_state.json";
constexpr const char* kMoments = "training_state.safetensors";
constexpr const char* kWeights = "model.safetensors";

// Where a file's hard link stands before it is renamed.
fs::path link_beside(const fs::path& folder, const fs::path& name) {
  return folder / fmt::format(".{}.tmp", name.string());
}

// Runs `read`; when a file is damaged, says also how to go on without it.
template <class Read>
auto read_checkpoint(const fs::path& folder, Read read) {
  const auto remedy = [&](const std::exception& error) {
    const std::vector<int64_t> updates = checkpoint_updates(folder.parent_path().parent_path());
    const bool first = updates.empty() || checkpoint_of("", updates.front()).filename() == folder.filename();
    return fmt::format("{}; remove {} to {}", error.what(), folder.string(),
                       first ? "begin the training anew" : "go on from the checkpoint before it");
  };
  try {
    return read();
  } catch (const FormatError& error) {
    throw FormatError(remedy(error));
  } catch (const FileError& error) {
    throw FileError(remedy(error));
  }
}

void throw_if_any(const std::vector<std::string>& problems, const fs::path& file) {
  if (problems.empty()) return;
  constexpr size_t kMost = 20;
  std::string text = fmt::format(
      "{}", fmt::join(problems.begin(), problems.begin() + std::min(kMost, problems.size()), "; "));
  if (problems.size() > kMost) text += fmt::format("; and {} more", problems.size() - kMost);
  throw FormatError(fmt::format("{} is damaged: {}", file.string(), text));
}

// Adam's first moments are finite, and its second ones, means of squares, not below 0.
bool all_may_be_moments(const std::vector<float>& values, bool squares) {
  return std::all_of(values.begin(), values.end(),
                     [&](float value) { return std::isfinite(value) && (!squares || value >= 0); });
}

std::map<std::string, Parameter*> by_name(std::span<const NamedParameter> parameters) {
  std::map<std::string, Parameter*> found;
  for (const NamedParameter& named : parameters) found[named.name] = named.parameter;
  return found;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, const LockWait& wait)
    : folder_(std::move(folder)), checkpoints_(checkpoints_of(folder_)) {
  std::error_code code;
  fs::create_directories(checkpoints_, code);
  if (code) {
    throw FileError(fmt::format("cannot make folder {}: {}; choose a `model` folder this user may write",
                                checkpoints_.string(), code.message()));
  }
  lock_.emplace(checkpoints_ / ".lock", folder_, wait);
  for (const fs::path& where : {folder_, checkpoints_}) {
    if (::access(where.c_str(), W_OK | X_OK) != 0) {
      throw FileError(fmt::format("cannot write into {}: {}; choose a `model` folder this user may write",
                                  where.string(), std::strerror(errno)));
    }
  }
  // Nobody else writes in there, so whatever has a temporary name was left by a kill.
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints_, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") && name.find(".tmp") != std::string::npos) fs::remove_all(entry.path(), code);
  }
  remove_leftovers_of_publishing();
}

// In the final folder other hidden files may be somebody's: only what has the name of a model's file goes.
void CheckpointStore::remove_leftovers_of_publishing() const {
  std::set<fs::path> names{"config.json", kWeights, "tokenizer.json"};
  std::error_code code;
  for (const int64_t update : updates()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path(update), code))
      names.insert(entry.path().filename());
  }
  for (const fs::path& name : names) {
    fs::remove(link_beside(folder_, name), code);
    remove_leftovers(folder_ / name);
  }
}

std::vector<int64_t> CheckpointStore::updates() const {
  return checkpoint_updates(folder_);
}

fs::path CheckpointStore::path(int64_t update) const {
  return checkpoint_of(folder_, update);
}

void CheckpointStore::save(const Objective& objective, Adam& adam, const TrainingState& state) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < adam.parameters().size(); ++i) {
    const auto add = [&](std::string_view moment, const Tensor& tensor) {
      tensors.push_back({fmt::format("{}.{}", moment, adam.parameters()[i].name),
                         {tensor.rows(), tensor.cols()},
                         ConstMatrixView(tensor.view())});
    };
    add("first", adam.moments(i).first);
    add("second", adam.moments(i).second);
    if (objective.saved_apart(adam.parameters()[i].name))
      add("value", adam.parameters()[i].parameter->value.tensor());
  }
  SaveOptions options = common_;
  options.extra_files = {{kState, to_json(state)}, {kMoments, write_safetensors(tensors)}};
  objective.save_model(path(state.update), options);
}

Checkpoint CheckpointStore::load(int64_t update) const {
  return read_checkpoint(path(update), [&] {
    const fs::path file = path(update) / kState;
    TrainingState state;
    from_json(state, read_regular_file(file), file.string());
    if (state.update != update) {
      throw FormatError(fmt::format("{}: expected update {}, got {}", file.string(), update, state.update));
    }
    throw_if_any(problems_of(state), file);
    return Checkpoint{std::move(state), load_model_folder(path(update)),
                      SafetensorsFile::open(path(update) / kMoments)};
  });
}

ModelFolder CheckpointStore::load_model(int64_t update) const {
  return read_checkpoint(path(update), [&] { return load_model_folder(path(update)); });
}

void CheckpointStore::restore(const Checkpoint& checkpoint, Trainer& trainer) const {
  const int64_t update = checkpoint.state.update;
  read_checkpoint(path(update), [&] {
    throw_if_any(trainer.problems_with(checkpoint.state), path(update) / kState);
    Adam& adam = trainer.adam();
    const SafetensorsFile& file = checkpoint.moments;
    std::vector<std::string> problems;
    std::vector<std::pair<std::string, Tensor*>> wanted;
    std::vector<NamedParameter> of_folder = adam.parameters();
    const Model& model = *checkpoint.folder.model;
    std::set<std::string> in_folder;
    model.visit(
        ConstParameterVisitor([&](const std::string& name, const Parameter&) { in_folder.insert(name); }));
    std::erase_if(of_folder, [&](const NamedParameter& named) {
      return trainer.objective().saved_apart(named.name) && !in_folder.contains(named.name);
    });
    for (size_t i = 0; i < adam.parameters().size(); ++i) {
      wanted.emplace_back("first." + adam.parameters()[i].name, &adam.moments(i).first);
      wanted.emplace_back("second." + adam.parameters()[i].name, &adam.moments(i).second);
      if (trainer.objective().saved_apart(adam.parameters()[i].name))
        wanted.emplace_back("value." + adam.parameters()[i].name,
                            &adam.parameters()[i].parameter->value.tensor());
    }
    for (const auto& [name, tensor] : wanted) {
      if (!file.contains(name)) {
        problems.push_back("missing: " + name);
      } else if (file.shape(name) != std::vector<int64_t>{tensor->rows(), tensor->cols()}) {
        problems.push_back(fmt::format("shape of {}: expected [{},{}], got [{}]", name, tensor->rows(),
                                       tensor->cols(), fmt::join(file.shape(name), ",")));
      }
    }
    if (file.entries().size() > wanted.size()) problems.push_back("it has tensors that no parameter needs");
    throw_if_any(problems, path(update) / kMoments);
    for (const auto& [name, tensor] : wanted) {
      if (all_may_be_moments(file.floats(name), name.starts_with("second."))) continue;
      problems.push_back(
          fmt::format("{} holds what no training wrote (not a number, infinite or below 0)", name));
      break;
    }
    throw_if_any(problems, path(update) / kMoments);
    copy_parameters(named_parameters(*checkpoint.folder.model), of_folder, path(update).string());
    for (const auto& [name, tensor] : wanted) {
      file.read_floats(name, {tensor->data(), static_cast<size_t>(tensor->size())});
    }
    for (const NamedParameter& named : adam.parameters()) named.parameter->changed();
    adam.set_updates(update);
    trainer.state() = checkpoint.state;
  });
}

void CheckpointStore::average(std::span<const int64_t> chosen,
                              std::span<const NamedParameter> parameters) const {
  if (chosen.empty()) throw UsageError("there is no checkpoint to average; name at least one");
  const auto means = by_name(parameters);
  for (size_t k = 0; k < chosen.size(); ++k) {
    const ModelFolder saved = load_model(chosen[k]);
    if (k == 0) {
      copy_parameters(named_parameters(*saved.model), parameters, path(chosen[k]).string());
      continue;
    }
    const auto share = static_cast<float>(1.0 / static_cast<double>(k + 1));
    for (const auto& [name, parameter] : named_parameters(*saved.model)) {
      Weight& mean = means.at(name)->value;  // mean of k + 1 = mean of k + (x - mean of k) / (k + 1)
      const float* x = parameter->value.data();
      for (int64_t i = 0; i < mean.size(); ++i) mean.data()[i] += share * (x[i] - mean.data()[i]);
    }
  }
  for (const NamedParameter& named : parameters) named.parameter->changed();
}

void CheckpointStore::remove(int64_t update) {
  // First out of sight in one step: a half-removed folder must not look like a checkpoint.
  const fs::path out_of_sight = checkpoints_ / fmt::format(".{}.tmp", path(update).filename().string());
  std::error_code code;
  fs::rename(path(update), out_of_sight, code);
  fs::remove_all(out_of_sight, code);
}

void CheckpointStore::drop_moments(int64_t update) {
  std::error_code code;
  fs::remove(path(update) / kMoments, code);
}

void CheckpointStore::publish(int64_t update) {
  publish_folder(path(update));
}

void CheckpointStore::publish(const Objective& objective) {
  const fs::path made = checkpoints_ / ".published.tmp";
  std::error_code code;
  fs::remove_all(made, code);
  objective.save_model(made, common_);
  publish_folder(made);
  fs::remove_all(made, code);
}

void CheckpointStore::publish_folder(const fs::path& from) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (name != kState && name != kMoments) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename() == kWeights, a) < std::pair(b.filename() == kWeights, b);
  });
  for (const fs::path& file : files) {
    const fs::path final_name = folder_ / file.filename();
    const fs::path temporary = link_beside(folder_, file.filename());
    std::error_code code;
    fs::remove(temporary, code);
    fs::create_hard_link(file, temporary, code);
    if (code) {
      write_file_atomically(final_name, read_regular_file(file));
      continue;
    }
    fs::rename(temporary, final_name, code);
    if (code) throw FileError(fmt::format("cannot write {}: {}", final_name.string(), code.message()));
    // Renaming one hard link over another of the same file does nothing: then the temporary name is still
    // there.
    fs::remove(temporary, code);
  }
}

void copy_parameters(std::span<const NamedParameter> from, std::span<const NamedParameter> to,
                     std::string_view name) {
  const auto source = by_name(from);
  const auto target = by_name(to);
  std::vector<std::string> problems;
  for (const auto& [key, parameter] : target) {
    const auto found = source.find(key);
    if (found == source.end()) {
      problems.push_back("missing: " + key);
    } else if (const Weight& value = found->second->value;
               value.rows() != parameter->value.rows() || value.cols() != parameter->value.cols()) {
      problems.push_back(fmt::format("shape of {}: expected [{},{}], got [{},{}]", key,
                                     parameter->value.rows(), parameter->value.cols(), value.rows(),
                                     value.cols()));
    }
  }
  for (const auto& [key, parameter] : source) {
    if (!target.contains(key)) problems.push_back("not used: " + key);
  }
  if (!problems.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(problems, "; ")));
  for (const auto& [key, parameter] : target) {
    const Weight& value = source.at(key)->value;
    std::copy_n(value.data(), value.size(), parameter->value.data());
    parameter->changed();
  }
}

}  // namespace mh
