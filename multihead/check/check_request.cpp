#include "multihead/check/check_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/folders/family.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/gguf_split.h"
#include "multihead/models/label_head.h"
#include "multihead/nn/stack_config.h"

namespace mh {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const OracleAttention& attention) {
  return {{"site", attention.site},
          {"module", attention.module},
          {"queries", attention.queries},
          {"keys", attention.keys},
          {"by_head", attention.by_head},
          {"output", attention.output},
          {"added", attention.added.empty() ? attention.module : attention.added},
          {"sum", attention.sum},
          {"sum_norm", attention.sum_norm},
          {"scaled_queries", attention.scaled_queries},
          {"float32_softmax", attention.float32_softmax},
          {"own_function", attention.own_function}};
}

/// Whether the norms of the stack are behind the sums.
bool has_norms_after_sums(const Model& model, std::string_view stack) {
  for (const StackConfig* config : model.stack_configs()) {
    if (config->name == stack) return config->norm.placement == NormPlacement::kPost;
  }
  return false;
}

/// What the model calls it: the layers of a decoder are an encoder where tokens see both sides. Empty: the model has not this one of
/// the stacks.
std::string name_in(const Model& model, std::span<const OracleStack> stacks, const OracleStack& stack) {
  const auto configs = model.stack_configs();
  if (stacks.size() == 1) return configs.front()->name;
  const bool has = std::any_of(configs.begin(), configs.end(),
                               [&](const StackConfig* config) { return config->name == stack.name; });
  return has ? std::string(stack.name) : std::string();
}

/// Null: the family has none.
Json modules_of(const ModelFolder& folder) {
  const Family* const family = family_named(folder.model_type);
  if (family == nullptr || family->oracle == nullptr) return nullptr;
  Json stacks = Json::array();
  for (const OracleStack& stack : family->oracle->stacks) {
    const std::string stack_name = name_in(*folder.model, family->oracle->stacks, stack);
    if (stack_name.empty()) continue;
    Json attentions = Json::array();
    for (const OracleAttention& attention : stack.attentions) attentions.push_back(json_of(attention));
    stacks.push_back({{"name", stack_name},
                      {"layers", stack.layers},
                      {"states", stack.states},
                      {"norms_after_sums", has_norms_after_sums(*folder.model, stack_name)},
                      {"attentions", attentions},
                      {"second_linear", stack.second_linear}});
  }
  return {{"stacks", stacks}, {"pooler", family->oracle->pooler}};
}

/// Null: the model is a folder.
Json gguf_of(const ModelFolder& folder) {
  if (!is_gguf(folder.path)) return nullptr;
  Json files = Json::array();
  for (const std::filesystem::path& file : gguf_files(folder.path))
    files.push_back(std::filesystem::absolute(file).string());
  return {{"files", files}, {"config", Json::parse(folder.source->read(kConfigFile))}};
}

/// The site of a classifier's logits; null where the model is none.
Json labels_site(const ModelFolder& folder) {
  const LabelHead* const head = folder.model->label_head();
  return head == nullptr ? Json() : Json(head->site().name());
}

}  // namespace

std::string check_request(const ModelFolder& folder, const CheckTexts& texts, int threads) {
  if (folder.shipped || !(is_gguf(folder.path) || std::filesystem::is_directory(folder.path))) {
    throw Error(
        fmt::format("transformers opens folders, and {} is none; write it as one first: multihead "
                    "convert",
                    folder.shipped ? "demo" : folder.path.string()));
  }
  const ModelFacts facts = folder.model->facts();
  const bool translates = folder.model->kind() == ModelKind::kTranslator;
  std::vector<int32_t> suppressed;
  if (translates) {
    for (const int32_t id : {facts.pad_id, facts.start_id}) {
      if (id >= 0 && id != facts.eos_id) suppressed.push_back(id);
    }
  }
  const Json request = {{"folder", std::filesystem::absolute(folder.path).string()},
                        {"gguf", gguf_of(folder)},
                        {"kind", name_of(folder.model->kind(), kModelKindNames)},
                        {"logits", folder.model->predicts()},
                        {"labels", labels_site(folder)},
                        {"threads", threads},
                        {"texts", texts.ids},
                        {"targets", texts.targets},
                        {"start", facts.start_id},
                        {"new_tokens", texts.new_tokens},
                        {"suppressed", suppressed},
                        {"modules", modules_of(folder)}};
  return request.dump(1) + "\n";
}

}  // namespace mh
