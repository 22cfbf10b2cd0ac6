#include "multihead/folders/sentence_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "multihead/base/file.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettings = "config_sentence_transformers.json";

KnownKeys keys_of_settings() {
  return {.obeyed = {"prompts", "prompts.*", "default_prompt_name", "similarity_fn_name", "truncate_dim"},
          .rules = {{.key = "__version__"},
                    {.key = "requirements"},
                    {.key = "model_type",
                     .harmless = R"(["SentenceTransformer"])",
                     .refused = "expected a SentenceTransformer"}}};
}

/// The first of sentence_bert_config.json and the names that older versions gave it.
std::optional<fs::path> transformer_settings(const fs::path& folder) {
  for (const char* kind : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    fs::path path = folder / fmt::format("sentence_{}_config.json", kind);
    if (is_there(path)) return path;
  }
  return std::nullopt;
}

constexpr const char* kNotDone = "this is not supported";

/// A value that is not harmless is refused, as is any argument that is not listed, since it may change anything. What tokens and
/// weights are loaded with has two names: that of older versions is the second.
constexpr KeyRule kTransformerRules[] = {
    {.key = "transformer_task", .harmless = R"(["feature-extraction"])", .refused = kNotDone},
    {.key = "module_output_name", .harmless = R"(["token_embeddings"])", .refused = kNotDone},
    {.key = "modality_config.text.method", .harmless = R"(["forward"])", .refused = kNotDone},
    {.key = "modality_config.text.method_output_name",
     .harmless = R"(["last_hidden_state"])",
     .refused = kNotDone},
    {.key = "modality_config.*"},  // of what is no text
    {.key = "processing_kwargs.text.padding"},
    {.key = "processing_kwargs.text.pad_to_multiple_of"},
    {.key = "processing_kwargs.text.return_*"},
    {.key = "processing_kwargs.text.add_special_tokens", .harmless = "[true]", .refused = kNotDone},
    {.key = "processing_kwargs.text.truncation",
     .harmless = R"([true, "longest_first", "only_first"])",
     .refused = kNotDone},
    {.key = "processing_kwargs.text.*", .harmless = "[]", .refused = kNotDone},
    {.key = "processing_kwargs.common.return_tensors"},
    {.key = "processing_kwargs.common.*", .harmless = "[]", .refused = kNotDone},
    {.key = "processing_kwargs.*"},  // of what is no text
    {.key = "tokenizer_name_or_path", .harmless = "[]", .refused = kNotDone},
    {.key = "unpad_inputs"},
    {.key = "processor_kwargs.trust_remote_code"},
    {.key = "processor_kwargs.use_fast"},
    {.key = "processor_kwargs.padding_side"},
    {.key = "processor_kwargs.truncation_side", .harmless = R"(["right"])", .refused = kNotDone},
    {.key = "processor_kwargs.*", .harmless = "[]", .refused = kNotDone},
    {.key = "tokenizer_args.trust_remote_code"},
    {.key = "tokenizer_args.use_fast"},
    {.key = "tokenizer_args.padding_side"},
    {.key = "tokenizer_args.truncation_side", .harmless = R"(["right"])", .refused = kNotDone},
    {.key = "tokenizer_args.*", .harmless = "[]", .refused = kNotDone},
    {.key = "config_kwargs.trust_remote_code"},
    {.key = "config_kwargs.use_cache"},
    {.key = "config_kwargs.*", .harmless = "[]", .refused = kNotDone},
    {.key = "config_args.trust_remote_code"},
    {.key = "config_args.use_cache"},
    {.key = "config_args.*", .harmless = "[]", .refused = kNotDone},
    // In what precision it is computed is not obeyed: here it is float32.
    {.key = "model_kwargs.dtype", .harmless = R"(["float32", "torch.float32", "auto"])"},
    {.key = "model_kwargs.torch_dtype", .harmless = R"(["float32", "torch.float32", "auto"])"},
    {.key = "model_kwargs.attn_implementation"},
    {.key = "model_kwargs.device_map"},
    {.key = "model_kwargs.low_cpu_mem_usage"},
    {.key = "model_kwargs.trust_remote_code"},
    {.key = "model_kwargs.use_safetensors"},
    {.key = "model_kwargs.add_pooling_layer"},
    {.key = "model_kwargs.*", .harmless = "[]", .refused = kNotDone},
    {.key = "model_args.dtype", .harmless = R"(["float32", "torch.float32", "auto"])"},
    {.key = "model_args.torch_dtype", .harmless = R"(["float32", "torch.float32", "auto"])"},
    {.key = "model_args.attn_implementation"},
    {.key = "model_args.trust_remote_code"},
    {.key = "model_args.add_pooling_layer"},
    {.key = "model_args.*", .harmless = "[]", .refused = kNotDone},
};

/// Members of members, as far as there are any.
std::optional<JsonNode> find_in(const JsonNode& root, std::initializer_list<const char*> path) {
  std::optional<JsonNode> node = root;
  for (const char* key : path) {
    if (node) node = node->find(key);
  }
  return node;
}

/// The first that says how many tokens are read; tokenizer_config.json says it, too, but only there may it be far too many.
std::optional<JsonNode> limit_of(const JsonNode& settings) {
  for (const auto path : {std::initializer_list<const char*>{"processing_kwargs", "text", "max_length"},
                          {"processor_kwargs", "model_max_length"},
                          {"tokenizer_args", "model_max_length"},
                          {"max_seq_length"}}) {
    if (auto found = find_in(settings, path)) return found;
  }
  return std::nullopt;
}

/// Of sentence_bert_config.json, since version 6 of sentence-transformers.
void refuse_messages(const JsonNode& settings) {
  if (const auto message = find_in(settings, {"modality_config", "message"})) {
    message->fail(
        "sentence-transformers puts every text into the chat template of the model, which is not supported; "
        "take this entry out for vectors of the bare text, which are others");
  }
}

/// Every prompt, one of them perhaps for all texts. Where one is null, sentence-transformers has an empty one.
void read_prompts(const JsonNode& settings, SentenceModel& model) {
  if (const auto prompts = settings.find("prompts")) {
    if (!prompts->value().is_object()) prompts->fail("expected an object of names and texts");
    for (const auto& [name, value] : prompts->value().items()) {
      if (!value.is_null() && !value.is_string())
        prompts->fail(fmt::format("expected a text for {}", in_quotes(name)));
      model.prompts.push_back({.name = name, .text = value.is_null() ? "" : value.get<std::string>()});
    }
  }
  const auto name = settings.find("default_prompt_name");
  if (!name) return;
  const auto found = std::find_if(model.prompts.begin(), model.prompts.end(),
                                  [&](const SentencePrompt& prompt) { return prompt.name == name->text(); });
  if (found == model.prompts.end())
    settings.fail(fmt::format("default_prompt_name: there is no prompt {}", in_quotes(name->text())));
  model.prompt = found->text;
}

}  // namespace

void remark_unknown_keys(const JsonFile& file, const KnownKeys& keys, std::vector<std::string>& remarks) {
  const KeyFindings found = keys.look_at(file.root().value(), file.name());
  found.throw_if_refused();
  if (std::string line = found.remark(); !line.empty()) remarks.push_back(std::move(line));
}

void read_sentence_settings(const fs::path& root, SentenceModel& model) {
  const fs::path path = root / kSettings;
  if (!is_there(path)) return;
  const JsonFile file(path);
  remark_unknown_keys(file, keys_of_settings(), model.remarks);
  if (const auto given = file.root().find("similarity_fn_name")) {
    const auto similarity = value_named(given->text(), kSimilarityNames);
    if (!similarity)
      given->fail(fmt::format("expected one of {}, got {}", names_listed(kSimilarityNames, ", "),
                              in_quotes(given->text())));
    model.similarity = *similarity;
  }
  read_prompts(file.root(), model);
}

void read_truncation(const fs::path& root, SentenceModel& model) {
  if (!is_there(root / kSettings)) return;
  const JsonFile file(root / kSettings);
  const auto given = file.root().find("truncate_dim");
  if (!given) return;
  const int32_t kept = given->number();
  if (kept < 1 || kept > model.dimension)
    given->fail(fmt::format("expected 1 to {}, the numbers of a vector, got {}", model.dimension, kept));
  model.truncate_dim = model.dimension = kept;
}

void read_transformer_settings(const fs::path& folder, SentenceModel& model) {
  const int32_t positions = model.folder.model->facts().max_positions;
  model.longest = positions;
  if (const auto path = transformer_settings(folder)) {
    const JsonFile file(*path);
    refuse_messages(file.root());
    const KnownKeys keys{.obeyed = {"max_seq_length", "do_lower_case", "processing_kwargs.text.max_length",
                                    "processor_kwargs.model_max_length", "tokenizer_args.model_max_length"},
                         .rules = {std::begin(kTransformerRules), std::end(kTransformerRules)}};
    remark_unknown_keys(file, keys, model.remarks);
    model.lowercase = file.root().flag("do_lower_case", false);
    if (const auto given = limit_of(file.root())) {
      if (given->number() < 1) given->fail("expected at least 1 token");
      model.longest = std::min(given->number(), positions);
      if (given->number() > positions) {
        model.remarks.push_back(fmt::format("{}: {} is {}; the model reads {} tokens", path->string(),
                                            given->path(), given->number(), positions));
      }
      return;
    }
  }
  if (!is_there(folder / "tokenizer_config.json")) return;
  const JsonFile file(folder / "tokenizer_config.json");
  const auto given = file.root().find("model_max_length");
  if (!given) return;
  // Where nothing limits it, transformers writes 10^30.
  if (!given->value().is_number() || !(given->value().get<double>() >= 1))
    given->fail("expected a number of at least 1");
  if (given->value().get<double>() < positions) model.longest = given->value().get<int32_t>();
}

}  // namespace mh
