#include "multihead/folders/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/folders/adapter_config.h"
#include "multihead/folders/adapter_evidence.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/low_rank_sum.h"
#include "multihead/folders/parameters.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

/// A module with A and B: the names of these tensors in the adapter's file.
struct LowRankModule {
  std::string a, b;
  bool table = false;  // of embeddings
};

/// What the adapter's file has, by the names of modules and tensors as peft writes them, without "base_model.model.".
struct AdapterTensors {
  std::map<std::string, LowRankModule> modules;
  std::map<std::string, std::string> replaced;  // a tensor of the weights -> its name in the adapter's file
};

bool cut_end(std::string& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.resize(name.size() - end.size());
  return true;
}

AdapterTensors sort_tensors(const TensorFiles& adapter) {
  constexpr std::string_view kBefore = "base_model.model.";
  AdapterTensors sorted;
  for (const auto& [full, tensor] : adapter.tensors()) {
    std::string name = full.starts_with(kBefore) ? full.substr(kBefore.size()) : full;
    if (cut_end(name, ".lora_A.weight")) {
      sorted.modules[name].a = full;
    } else if (cut_end(name, ".lora_B.weight")) {
      sorted.modules[name].b = full;
    } else if (cut_end(name, ".lora_embedding_A")) {
      sorted.modules[name] = {.a = full, .b = sorted.modules[name].b, .table = true};
    } else if (cut_end(name, ".lora_embedding_B")) {
      sorted.modules[name] = {.a = sorted.modules[name].a, .b = full, .table = true};
    } else if (name.find(".lora_") != std::string::npos) {
      throw FormatError(fmt::format("{}: the tensor {} is not known; expected lora_A and lora_B of modules",
                                    adapter.name(), in_quotes(full, kWholeName)));
    } else {
      if (const size_t at = name.rfind(".base_layer."); at != std::string::npos)
        name.erase(at, std::string_view(".base_layer").size());
      sorted.replaced[name] = full;
    }
  }
  return sorted;
}

/// Whether a is b, or b behind one more name and a dot, such as "model." or "bert.".
bool is_behind_one_name(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const size_t dot = a.find('.');
  return dot != std::string_view::npos && a.substr(dot + 1) == b;
}

/// Puts one adapter on.
class AdapterPut {
 public:
  AdapterPut(TensorFiles& files, const FolderSource& folder)
      : files_(files),
        config_name_(folder.path_of(kAdapterConfigFile)),
        config_(read_adapter_config(folder.read(kAdapterConfigFile), config_name_)),
        adapter_(open(folder)),
        plan_(folder.plan()),
        model_(make_model(files, plan_)),
        sorted_(sort_tensors(adapter_)) {
    model_->visit([&](const std::string& name, Parameter&) {
      const std::string tensor = tensor_of(files, plan_, name);
      if (!tensor.empty()) parameters_[tensor] = name;
      has_output_ = has_output_ || name == "output";
    });
  }

  TensorFiles result() {
    for (const auto& [module, at] : sorted_.modules) add_sum(module, at);
    for (const auto& [tensor, full] : sorted_.replaced) add_replaced(tensor, full);
    if (sums_.empty() && changed_.empty()) return std::move(files_);
    const std::optional<bool> merged = has_product_already(sums_);
    // The modules that are replaced are, too, where it has been merged.
    if (merged && *merged && changed_.empty()) {
      files_.add_remark(fmt::format(
          "{}: the weights beside it have this adapter already; it was not put on again", config_name_));
      return std::move(files_);
    }
    if (!merged || *merged) {
      throw FormatError(
          fmt::format("{}: the files do not show whether {} has this adapter already; if it has, take the "
                      "adapter's files away, and else merge them with peft (merge_and_unload)",
                      config_name_, files_.name()));
    }
    if (!other_bases_.empty())
      refuse(fmt::format("it was trained beside other numbers of {} than those in {}", other_bases_.front(),
                         files_.name()));
    TensorFiles::Tensors tensors = files_.tensors();
    for (auto& [name, tensor] : changed_) tensors[name] = std::move(tensor);
    for (auto& [name, sum] : sums_) tensors[name] = tensor_of_sum(sum);
    return {std::move(tensors), files_.name()};
  }

 private:
  static TensorFiles open(const FolderSource& folder) {
    if (folder.has(kAdapterWeightsFile))
      return TensorFiles(folder.open_tensors(kAdapterWeightsFile), folder.path_of(kAdapterWeightsFile));
    throw FileError(fmt::format("there is no {}{}", folder.path_of(kAdapterWeightsFile),
                                folder.has("adapter_model.bin")
                                    ? "; adapter_model.bin is a pickle, which multihead does not read: save "
                                      "the adapter again with peft"
                                    : ", though there is an adapter_config.json; put both there, or neither"),
                    ENOENT);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw FormatError(fmt::format("{}: {}", adapter_.name(), what));
  }

  /// The tensor of the weights that the adapter calls so; empty: there is none.
  std::string tensor_called(const std::string& name) const {
    if (files_.contains(name)) return name;
    std::string found;
    for (const auto& [tensor, stored] : files_.tensors()) {
      if (!is_behind_one_name(tensor, name) && !is_behind_one_name(name, tensor)) continue;
      if (!found.empty()) refuse(fmt::format("{} may be {} or {} of {}", name, found, tensor, files_.name()));
      found = tensor;
    }
    return found;
  }
  bool is_of_other_head(std::string_view name) const {
    return std::any_of(plan_.other_heads.begin(), plan_.other_heads.end(),
                       [&](const std::string& begin) { return name.starts_with(begin); });
  }
  std::string parameter_of(const std::string& tensor) const {
    const auto found = parameters_.find(tensor);
    return found == parameters_.end() ? std::string() : found->second;
  }
  static bool is_table(std::string_view parameter) {
    return parameter == "embedding" || parameter == "embedding.types" || parameter == "positions" ||
           parameter == "target_embedding" || parameter == "target_positions";
  }
  /// peft changes the table that is looked up alone.
  void refuse_shared_table(const std::string& name, std::string_view parameter) const {
    const bool words = parameter == "embedding" || parameter == "target_embedding";
    if (words && model_->predicts() && !has_output_)
      refuse(fmt::format(
          "{} is the output layer, too, which the adapter does not change; this is not supported", name));
  }

  std::vector<float> numbers(const std::string& tensor) const {
    std::vector<float> found = adapter_.floats(tensor);
    if (!all_finite(found)) refuse(fmt::format("{} has numbers that are not finite", tensor));
    return found;
  }

  void add_sum(const std::string& module, const LowRankModule& at) {
    if (at.a.empty() || at.b.empty())
      refuse(fmt::format("there is no {} of {}", at.a.empty() ? "lora_A" : "lora_B", module));
    if (!config_.adapts(module))
      refuse(fmt::format(
          "there are tensors of {}, which is none of the modules that adapter_config.json names", module));
    const std::string tensor = tensor_called(module + ".weight");
    if (tensor.empty()) {
      if (is_of_other_head(module + ".")) return;
      refuse(fmt::format("there are tensors of {}, but {} has no {}.weight", module, files_.name(), module));
    }
    const std::string parameter = parameter_of(tensor);
    if (parameter.empty()) return;  // of a head that is not done here, or not used: read_parameters() says it
    refuse_shared_table(module, parameter);
    if (at.table != is_table(parameter))
      refuse(fmt::format("{}: expected {}", module, at.table ? "lora_A" : "lora_embedding_A"));
    const FileTensor& weights = files_.tensor(tensor);
    const bool inputs_first =
        at.table || (parameter != "output" && plan_.place(parameter).layout == TensorPlace::Layout::kMatrix);
    const std::vector<int64_t>&a = adapter_.tensor(at.a).shape, &b = adapter_.tensor(at.b).shape;
    constexpr double kMostRanks = 1 << 20;
    const double said = config_.rank_of(module);
    const int64_t rank = said >= 1 && said <= kMostRanks ? static_cast<int64_t>(said) : 0;
    const bool matrix = weights.shape.size() == 2 && weights.numbers;
    const int64_t outputs = matrix ? weights.shape[inputs_first ? 1 : 0] : 0;
    const int64_t inputs = matrix ? weights.shape[inputs_first ? 0 : 1] : 0;
    if (!matrix || rank < 1 || static_cast<double>(rank) != said || a != std::vector<int64_t>{rank, inputs} ||
        b != std::vector<int64_t>{outputs, rank}) {
      refuse(fmt::format(
          "the shapes of {}: expected lora_A [{},{}] and lora_B [{},{}] by adapter_config.json and {}",
          module, rank, inputs, outputs, rank, files_.name()));
    }
    const auto scale = static_cast<float>(config_.scale_of(module));
    const std::vector<float> left = numbers(at.a), right = numbers(at.b);
    // [out, in]: s B times A. [in, out]: s A^T times B^T.
    const auto transposed = [](const std::vector<float>& from, int64_t rows, int64_t cols) {
      std::vector<float> to(from.size());
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j)
          to[static_cast<size_t>(j * rows + i)] = from[static_cast<size_t>(i * cols + j)];
      }
      return to;
    };
    std::vector<float> narrow = inputs_first ? transposed(left, rank, inputs) : right;
    for (float& number : narrow) number *= scale;
    std::vector<float> wide = inputs_first ? transposed(right, outputs, rank) : left;
    if (!sums_
             .emplace(tensor, std::make_shared<const LowRankSum>(weights, std::move(narrow), std::move(wide)))
             .second)
      refuse(fmt::format("{} is there twice", module));
  }

  void add_replaced(const std::string& name, const std::string& full) {
    const std::string tensor = tensor_called(name);
    const FileTensor& stored = adapter_.tensor(full);
    if (tensor.empty()) {
      if (is_of_other_head(name)) {
        changed_.emplace(name, stored);  // which read_parameters() names as not read
        return;
      }
      refuse(fmt::format("there is {}, but {} has no such tensor", name, files_.name()));
    }
    const FileTensor& now = files_.tensor(tensor);
    if (now.shape != stored.shape)
      refuse(fmt::format("{} has another shape than in {}", name, files_.name()));
    if (numbers(full) == files_.floats(tensor)) return;
    if (full.find(".base_layer.") != std::string::npos && sums_.contains(tensor)) {
      other_bases_.push_back(name);
      return;
    }
    const std::string module = "." + name.substr(0, name.rfind('.')) + ".";
    const bool saved = std::any_of(config_.saved.begin(), config_.saved.end(), [&](const std::string& part) {
      return module.find("." + part + ".") != std::string::npos;
    });
    if (!saved) {
      refuse(
          fmt::format("{} has other numbers than in {}, but modules_to_save does not name it; "
                      "merge the adapter into the weights with peft (merge_and_unload)",
                      name, files_.name()));
    }
    refuse_shared_table(name, parameter_of(tensor));
    changed_.emplace(tensor, stored);
  }

  TensorFiles& files_;
  std::string config_name_;
  AdapterConfig config_;
  TensorFiles adapter_;
  FolderPlan plan_;
  std::unique_ptr<Model> model_;  // its parameters take no memory
  AdapterTensors sorted_;
  std::map<std::string, std::string> parameters_;  // by their tensors; of a fused one any
  bool has_output_ = false;
  LowRankSums sums_;  // by the tensors of the weights
  TensorFiles::Tensors changed_;
  std::vector<std::string> other_bases_;  // of sums: W as the adapter has it, where the weights have another
};

}  // namespace

TensorFiles with_adapter(TensorFiles files, const FolderSource& folder) {
  if (folder.has(kAdapterConfigFile)) return AdapterPut(files, folder).result();
  if (folder.has(kAdapterWeightsFile)) {
    files.add_remark(fmt::format("{} has no adapter_config.json beside it and was not used",
                                 folder.path_of(kAdapterWeightsFile)));
  }
  return files;
}

}  // namespace mh
