#include "multihead/folders/saved_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/generation_config.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/pruned_heads.h"
#include "multihead/folders/write_parameters.h"
#include "multihead/io/config.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr const char* kPrunedHeadsField = "pruned_heads";
constexpr const char* kOneTable = "share_encoder_decoder_embeddings";
constexpr const char* kOwnFilesField =
    "multihead_files";  // of families that name the files beside their config.json

void put_number_type(OrderedJson& config, NumberType type) {
  config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = saved_type_name(type);
}

/// The heads of attentions that are not those which the folder was read with.
HeadsOfAttentions changed_heads_of(const Model& as_read, const Model& now) {
  HeadsOfAttentions changed;
  for (const Model::Attention& named : now.attentions()) {
    const HeadGeometry& heads = now.attention(named.name).geometry();
    if (heads != as_read.attention(named.name).geometry()) changed[named.name] = heads;
  }
  return changed;
}

/// The fields of config.json that say so. Throws UsageError when the family's format cannot.
std::map<std::string, int32_t> fields_for(const FolderPlan& plan, const Model& as_read, const Model& now,
                                          const HeadsOfAttentions& changed) {
  const auto& [first, heads] = *changed.begin();
  for (const Model::Attention& named : now.attentions()) {
    const HeadGeometry& others = now.attention(named.name).geometry();
    if (others == heads) continue;
    throw UsageError(fmt::format("it gives all layers the same heads, but {} has {} and {} has {}", first,
                                 heads.heads, named.name, others.heads));
  }
  HeadGeometry before = as_read.attention(first).geometry(), after = heads;
  const auto numbers = [](HeadGeometry& g) { g.heads = g.key_heads = g.value_heads = 0; };
  numbers(before), numbers(after);
  if (before != after) throw UsageError("it has heads of one kind only");
  return plan.fields_of_heads(heads, now.facts().d_model);
}

bool has_parameter(const Model& model, std::string_view wanted) {
  bool found = false;
  model.visit(ConstParameterVisitor(
      [&](const std::string& name, const Parameter&) { found = found || name == wanted; }));
  return found;
}

OrderedJson own_heads_of(const Model& model) {
  OwnHeadsField own;
  for (const Model::Attention& named : model.attentions())
    own.heads.push_back({.attention = named.name, .geometry = model.attention(named.name).geometry()});
  return OrderedJson::parse(to_json(own))[kOwnHeads];
}

/// In which format, and where it is our own, why the family's cannot hold the heads.
SavedFormat saved_format(const FolderPlan& plan, const Model& as_read, const Model& now,
                         std::span<const HeadName> removed) {
  using enum SavedFormat::Kind;
  const HeadsOfAttentions changed = changed_heads_of(as_read, now);
  if (changed.empty()) {
    if (!plan.own_heads.empty())
      return {.kind = kOwn, .why = "its heads were our own already", .as_read = true};
    return {.kind = plan.pruned_heads.empty() ? kFamily : kPrunedHeads, .as_read = true};
  }
  try {
    fields_for(plan, as_read, now, changed);
    return {};
  } catch (const UsageError& error) {
    if (plan.prunes_heads && plan.own_heads.empty() &&
        pruned_heads_after(plan.pruned_heads, as_read, now, removed))
      return {.kind = kPrunedHeads};
    return {.kind = kOwn, .why = error.what()};
  }
}

/// config.json. as_read: the model that the folder's files describe.
std::string saved_config(const FolderPlan& plan, const Model& as_read, const SavedModel& saved,
                         const SavedFormat& format, const SaveOptions& options,
                         const std::vector<std::string>& own_files) {
  const FolderSource& source = *saved.folder->source;
  const Model& now = saved.model;
  OrderedJson config =
      OrderedJson::parse(with_family_names(source.read(kConfigFile), source.path_of(kConfigFile)));
  // The files had an output layer of their own, whatever their configuration says.
  if (!plan.files_say_tied && has_parameter(now, "output")) config["tie_word_embeddings"] = false;
  // Of two tables that were read from one, which training makes differ.
  if (config.contains(kOneTable) && has_parameter(now, "target_embedding")) config[kOneTable] = false;
  if (const int32_t longest = now.facts().max_positions; longest != as_read.facts().max_positions)
    config[plan.field_of_longest] = longest;
  if (config.contains(kOwnFilesField)) config[kOwnFilesField] = own_files;
  const HeadsOfAttentions changed = changed_heads_of(as_read, now);
  if (!changed.empty()) {
    config.erase(kOwnHeads);
    config.erase(kPrunedHeadsField);
    switch (format.kind) {
      case SavedFormat::Kind::kFamily:
        for (const auto& [field, value] : fields_for(plan, as_read, now, changed)) config[field] = value;
        break;
      case SavedFormat::Kind::kPrunedHeads: {
        const PrunedHeads gone = pruned_heads_after(plan.pruned_heads, as_read, now, options.removed).value();
        for (const auto& [layer, heads] : gone) config[kPrunedHeadsField][std::to_string(layer)] = heads;
        break;
      }
      case SavedFormat::Kind::kOwn:
        config[kOwnHeads] = own_heads_of(now);
    }
  }
  config.erase(kQuantisation);  // its matrices are numbers here
  put_number_type(config, options.type);
  return config.dump(2) + "\n";
}

std::map<std::string, std::string> small_files_of(const FolderSource& source) {
  std::map<std::string, std::string> files;
  for (const std::string& name : source.small_files()) {
    if (name != kConfigFile) files[name] = source.read(name);
  }
  return files;
}

}  // namespace

FolderContents contents_as_read(const SavedModel& saved, const SaveOptions& options) {
  if (saved.folder == nullptr || !saved.folder->source)
    throw UsageError("this model was not read from a folder, whose format it could be written in; load one");
  const ModelFolder& folder = *saved.folder;
  const FolderSource& source = *folder.source;
  const auto plan =
      std::make_shared<const FolderPlan>(read_plan(source.read(kConfigFile), source.path_of(kConfigFile)));
  const auto files = std::make_shared<const TensorFiles>(source.tensors());
  const std::shared_ptr<const Model> as_read = make_model(*files, *plan);  // its parameters take no memory
  const SavedFormat format = saved_format(*plan, *as_read, saved.model, options.removed);
  FolderContents contents{
      .format = format, .prefixes = plan->prefixes, .read_from = files, .copied = folder.not_read};
  if (format.kind == SavedFormat::Kind::kOwn && !format.as_read) {
    contents.refusal = fmt::format(
        "the config.json of {} cannot hold these heads: {}; allow a folder in our own "
        "format, which Transformers does not open: `own_format`",
        folder.model_type, format.why);
  }
  // Where several were read from one tensor, each is written under its own first name.
  std::map<std::string, int> parts_of;
  saved.model.visit(ConstParameterVisitor([&](const std::string& parameter, const Parameter&) {
    if (plan->place(parameter).parts == 1) ++parts_of[tensor_of(*files, *plan, parameter)];
  }));
  contents.place = [plan, files, parts_of](std::string_view parameter) {
    TensorPlace at = plan->place(parameter);
    std::string name = tensor_of(*files, *plan, parameter);
    if (const auto of_one = parts_of.find(name); of_one != parts_of.end() && of_one->second > 1) name.clear();
    if (name.empty()) name = plan->prefixes.front() + at.names.front();
    at.names = {std::move(name)};
    return at;
  };
  contents.small_files = [saved] {
    auto small = small_files_of(*saved.folder->source);
    if (small.contains(kGenerationConfigFile))
      small[kGenerationConfigFile] = saved_generation_config(*saved.folder, saved.model);
    return small;
  };
  contents.config = [plan, as_read, saved, format, options](const std::vector<std::string>& own_files) {
    return saved_config(*plan, *as_read, saved, format, options, own_files);
  };
  return contents;
}

std::string saved_generation_config(const ModelFolder& read, const Model& now) {
  const FolderSource& source = *read.source;
  std::string text = source.read(kGenerationConfigFile);
  const bool names_heads =
      read_generation_config(text, source.path_of(kGenerationConfigFile), now.facts()).alignment.has_value();
  if (!names_heads) return text;
  const std::unique_ptr<Model> as_read = make_model(source.tensors(), source.plan());
  const HeadsOfAttentions changed = changed_heads_of(*as_read, now);
  const bool crosses = std::any_of(changed.begin(), changed.end(), [&](const auto& one) {
    return now.place(one.first).kind == AttentionKind::kCross;
  });
  return crosses || !read.generation.alignment
             ? without_alignment_heads(text, source.path_of(kGenerationConfigFile))
             : text;
}

std::string with_number_type(std::string config, NumberType type) {
  if (type == NumberType::kFloat32) return config;  // as it was written
  OrderedJson document = OrderedJson::parse(config);
  put_number_type(document, type);
  return document.dump(2) + "\n";
}

}  // namespace mh
