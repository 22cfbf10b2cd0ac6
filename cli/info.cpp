// multihead info: what a model folder holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/info_parts.h"
#include "cli/info_stack.h"
#include "cli/load_model.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/terminal_text.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/in_quotes.h"

namespace mh::cli {
namespace {

using nlohmann::ordered_json;

struct InfoFlags {
  std::string model;
  bool json = false;
};

ordered_json tokenizer_json(const Tokenizer& tokenizer, const ModelFacts& facts) {
  ordered_json json{{"tokens", tokenizer.size()}};
  json["end"] = tokenizer.token_of(facts.eos_id);
  json["pad"] = tokenizer.token_of(facts.pad_id);
  if (const auto unknown = tokenizer.unknown_id()) json["unknown"] = tokenizer.token_of(*unknown);
  return json;
}

/// How translate searches where the call says nothing.
SearchOptions search_of(const ModelFolder& folder) {
  SearchOptions options;
  folder.generation.complete(options);
  options.beam_size = options.beam();
  options.min_length = options.shortest();
  options.max_length = std::min(options.longest(), folder.model->facts().max_positions);
  options.length_penalty.alpha = options.length_penalty.alpha.value_or(1);
  options.no_repeat_ngram = options.no_repeat_ngram.value_or(0);
  return options;
}

std::string search_text(const SearchOptions& options) {
  if (options.beam() == 1)
    return fmt::format("greedy, {} to {} tokens", options.shortest(), options.longest());
  return fmt::format("beam of {}, {} to {} tokens, length penalty {:g}, early stopping {}", options.beam(),
                     options.shortest(), options.longest(), *options.length_penalty.alpha,
                     name_of(*options.early_stopping, kEarlyStoppingNames));
}

ordered_json describe(const ModelFolder& folder) {
  const EncoderDecoderConfig& config = dynamic_cast<const EncoderDecoder&>(*folder.model).config();
  const TranslatorShape c = shape_of(config);
  ordered_json json;
  json["folder"] = folder.path.string();
  json["model_type"] = folder.model_type;
  json["norm"] = name_of(c.norm, kNormPlacementNames);
  json["norm_kind"] = c.norm_kind == NormKind::kRms ? "rms" : "layer";
  json["parameters"] = folder.model->parameter_count();
  json["d_model"] = c.d_model;
  json["encoder"] = {
      {"layers", c.encoder_layers}, {"heads", heads_of_each(config.encoder)}, {"d_ff", c.encoder_ff}};
  json["decoder"] = {
      {"layers", c.decoder_layers}, {"heads", heads_of_each(config.decoder)}, {"d_ff", c.decoder_ff}};
  json["head_geometry"] = unusual_heads(c.geometry);
  json["activation"] = name_of(c.activation, kActivationNames);
  json["gated"] = c.gated;
  json["positions"] = name_of(c.positions, kPositionNames);
  json["max_positions"] = c.max_positions;
  json["vocabulary"] = {{"source", c.vocabulary_size},
                        {"target", c.target_vocabulary()},
                        {"shared_embeddings", c.share_embeddings},
                        {"scaled_embeddings", c.scale_embedding},
                        {"normed_embeddings", c.norm_embeddings}};
  json["token_ids"] = {{"pad", c.pad_id}, {"end", c.eos_id}, {"decoder_start", c.decoder_start_id}};
  if (folder.labels) {
    json["labels"] = label_names_json(*folder.labels);
  } else {
    json["suppressed"] = folder.generation.suppressed;
    if (folder.generation.forced_first) json["forced_first"] = *folder.generation.forced_first;
    json["search"] = ordered_json::parse(to_json(search_of(folder)));
  }
  if (folder.languages) {
    const LanguageCodes& codes = *folder.languages;
    const auto name = [&](const std::optional<int32_t>& id) {
      return id ? ordered_json(codes.name_of(*id)) : ordered_json();
    };
    ordered_json& languages = json["languages"];
    languages = {{"source", name(codes.usual.source)},
                 {"target", name(codes.usual.target)},
                 {"codes", ordered_json::array()}};
    for (const auto& [code, id] : codes.ids) languages["codes"].push_back(code);
  }
  if (!folder.task_prefixes.empty()) json["task_prefixes"] = folder.task_prefixes;
  json["dropout"] = {{"residual", rounded(c.dropout.residual)},
                     {"weights", rounded(c.dropout.weights)},
                     {"activation", rounded(c.dropout.activation)}};
  json["tokenizer"] =
      folder.tokenizer ? tokenizer_json(*folder.tokenizer, folder.model->facts()) : ordered_json();
  if (folder.target_tokenizer)
    json["target_tokenizer"] = tokenizer_json(*folder.target_tokenizer, folder.model->facts());
  describe_parts(folder, json);
  return json;
}

std::string tokenizer_text(const std::optional<Tokenizer>& tokenizer, const ModelFacts& facts) {
  if (!tokenizer) return "none (token ids only: --token-ids)";
  const auto unknown = tokenizer->unknown_id();
  return fmt::format(
      "{} tokens; end {} = {}, pad {} = {}{}", grouped(tokenizer->size()), facts.eos_id,
      tokenizer->token_of(facts.eos_id), facts.pad_id, tokenizer->token_of(facts.pad_id),
      unknown ? fmt::format(", unknown {} = {}", *unknown, tokenizer->token_of(*unknown)) : "");
}

std::string languages_text(const LanguageCodes& codes) {
  const auto name = [&](const std::optional<int32_t>& id) { return id ? codes.name_of(*id) : "any"; };
  std::vector<std::string_view> names;
  for (const auto& [code, id] : codes.ids) names.push_back(code);
  return fmt::format("from {} to {}, of {}: {}", name(codes.usual.source), name(codes.usual.target),
                     names.size(), fmt::join(names, ", "));
}

std::string table(const ModelFolder& folder) {
  const EncoderDecoderConfig& config = dynamic_cast<const EncoderDecoder&>(*folder.model).config();
  const TranslatorShape c = shape_of(config);
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) { text += info_row(what, value); };
  line("model",
       fmt::format("{}, {}-norm encoder-decoder{}", folder.model_type, name_of(c.norm, kNormPlacementNames),
                   c.norm_kind == NormKind::kRms ? ", RMS norms" : ""));
  line("parameters", grouped(folder.model->parameter_count()));
  line("d_model", std::to_string(c.d_model));
  line("encoder", layers_text(config.encoder));
  line("decoder", layers_text(config.decoder));
  if (const ordered_json fields = unusual_heads(c.geometry); !fields.empty()) line("heads", fields.dump());
  line("activation", fmt::format("{}{}", name_of(c.activation, kActivationNames), c.gated ? ", gated" : ""));
  line("positions", positions_text(c.positions, c.max_positions));
  line("vocabulary", fmt::format("{} source, {} target; {} embeddings{}{}", c.vocabulary_size,
                                 c.target_vocabulary(), c.share_embeddings ? "shared" : "separate",
                                 c.scale_embedding ? fmt::format(", times sqrt({})", c.d_model) : "",
                                 c.norm_embeddings ? ", normed" : ""));
  if (const auto first = folder.generation.forced_first) {
    const std::string token = folder.tokenizer ? " = " + folder.target_tokens().token_of(*first) : "";
    line("begins with", fmt::format("{}{}, every translation", *first, token));
  }
  if (folder.labels) {
    line("labels", labels_text(*folder.labels));
  } else {
    const SearchOptions search = search_of(folder);
    line("search", search_text(search));
    if (const int32_t n = *search.no_repeat_ngram; n > 0)
      line("no repeats", fmt::format("of {} tokens one after the other", n));
  }
  if (folder.languages) line("languages", languages_text(*folder.languages));
  for (const auto& [task, prefix] : folder.task_prefixes)
    line("task prefix", fmt::format("{} for {}", in_quotes(prefix, kWholeName), in_quotes(task)));
  line("tokenizer", tokenizer_text(folder.tokenizer, folder.model->facts()));
  if (folder.target_tokenizer)
    line("for target", tokenizer_text(folder.target_tokenizer, folder.model->facts()));
  line("dropout", fmt::format("residual {}, weights {}, activation {}", c.dropout.residual, c.dropout.weights,
                              c.dropout.activation));
  return text + parts_table(folder);
}

/// What `info` prints.
std::string about(const ModelFolder& folder, const SentenceModel* sentences, bool json) {
  if (const auto one = one_stack(*folder.model)) {
    return json ? describe_stack(folder, *one, sentences).dump(2) + "\n"
                : stack_table(folder, *one, sentences);
  }
  return json ? describe(folder).dump(2) + "\n" : table(folder);
}

}  // namespace

void add_info(Verb& app) {
  auto flags = std::make_shared<InfoFlags>();
  Verb* verb = app.add_subcommand("info", "Show what a model folder holds: sizes, heads, tokenizer, files");
  add_model(*verb, flags->model, "The model folder, or demo, a translator that comes with multihead")
      ->required();
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer("Example:\n  multihead info model\n  multihead info model --json");
  verb->callback([flags] {
    if (has_sentence_modules(flags->model)) {
      const SentenceModel model = load_sentence_model(flags->model);
      for (const std::string& line : model.remarks) remark(line);
      return write_text("", about(model.folder, &model, flags->json));
    }
    write_text("", about(load_model(flags->model), nullptr, flags->json));
  });
}

}  // namespace mh::cli
