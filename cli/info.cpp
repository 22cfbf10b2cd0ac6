// multihead info: what a model folder holds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/load_model.h"
#include "cli/verbs.h"
#include "multihead/analysis/heat_map.h"
#include "multihead/io/config.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_folder.h"

namespace mh::cli {
namespace {

using nlohmann::ordered_json;

struct InfoFlags {
  std::string model;
  bool json = false;
};

struct FileSize {
  std::string name;
  uint64_t bytes;
};

std::vector<FileSize> files_of(const std::filesystem::path& folder) {
  if (std::filesystem::is_regular_file(folder))  // a .gguf file
    return {{folder.filename().string(), std::filesystem::file_size(folder)}};
  std::vector<FileSize> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back({entry.path().filename().string(), entry.file_size()});
  }
  std::sort(files.begin(), files.end(), [](const FileSize& a, const FileSize& b) { return a.name < b.name; });
  return files;
}

ordered_json tokenizer_json(const Tokenizer& tokenizer, const EncoderDecoderConfig& config) {
  ordered_json json{{"tokens", tokenizer.size()}};
  json["end"] = tokenizer.token_of(config.eos_id);
  json["pad"] = tokenizer.token_of(config.pad_id);
  if (const auto unknown = tokenizer.unknown_id()) json["unknown"] = tokenizer.token_of(*unknown);
  return json;
}

// The fields of config.json's head_geometry that are not as in canonical heads.
ordered_json unusual(const HeadGeometry& geometry) {
  const auto usual = ordered_json::parse(to_json_line(HeadGeometry()));
  const auto found = ordered_json::parse(to_json_line(geometry));
  ordered_json fields = ordered_json::object();
  for (const auto& [name, value] : found.items()) {
    if (value != usual[name]) fields[name] = value;
  }
  return fields;
}

ordered_json describe(const ModelFolder& folder) {
  const EncoderDecoderConfig& c = folder.translator().config();
  ordered_json json;
  json["folder"] = folder.path.string();
  json["model_type"] = folder.model_type;
  json["norm"] = c.norm == NormPlacement::kPost ? "post" : "pre";
  json["parameters"] = folder.model->parameter_count();
  json["d_model"] = c.d_model;
  json["encoder"] = {{"layers", c.encoder_layers}, {"heads", c.encoder_heads}, {"d_ff", c.encoder_ff}};
  json["decoder"] = {{"layers", c.decoder_layers}, {"heads", c.decoder_heads}, {"d_ff", c.decoder_ff}};
  json["head_geometry"] = unusual(c.geometry);
  json["activation"] = name_of(c.activation, kActivationNames);
  json["positions"] = name_of(c.positions, kPositionNames);
  json["max_positions"] = c.max_positions;
  json["vocabulary"] = {{"source", c.vocabulary_size},
                        {"target", c.target_vocabulary()},
                        {"shared_embeddings", c.share_embeddings},
                        {"scaled_embeddings", c.scale_embedding}};
  json["token_ids"] = {{"pad", c.pad_id}, {"end", c.eos_id}, {"decoder_start", c.decoder_start_id}};
  json["suppressed"] = folder.suppressed;
  const auto rate = [](float r) { return std::round(r * 1e6) / 1e6; };  // 0.3 rather than 0.30000001192
  json["dropout"] = {{"residual", rate(c.dropout.residual)},
                     {"weights", rate(c.dropout.weights)},
                     {"activation", rate(c.dropout.activation)}};
  json["tokenizer"] = folder.tokenizer ? tokenizer_json(*folder.tokenizer, c) : ordered_json();
  if (folder.target_tokenizer) json["target_tokenizer"] = tokenizer_json(*folder.target_tokenizer, c);
  json["attentions"] = ordered_json::array();
  for (const auto& [name, heads] : folder.model->attentions()) {
    json["attentions"].push_back({{"name", name}, {"heads", heads}});
  }
  json["files"] = ordered_json::array();
  for (const FileSize& file : files_of(folder.path)) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  return json;
}

std::string tokenizer_text(const std::optional<Tokenizer>& tokenizer, const EncoderDecoderConfig& c) {
  if (!tokenizer) return "none (token ids only: --token-ids)";
  const auto unknown = tokenizer->unknown_id();
  return fmt::format(
      "{} tokens; end {} = {}, pad {} = {}{}", grouped(static_cast<uint64_t>(tokenizer->size())), c.eos_id,
      tokenizer->token_of(c.eos_id), c.pad_id, tokenizer->token_of(c.pad_id),
      unknown ? fmt::format(", unknown {} = {}", *unknown, tokenizer->token_of(*unknown)) : "");
}

std::string side_text(const EncoderDecoderConfig& config, int32_t layers, int32_t heads, int32_t d_ff) {
  HeadGeometry geometry = config.geometry;
  geometry.heads = heads;
  const HeadGeometry g = completed(geometry, config.d_model, "heads");
  const std::string size = g.d_key == g.d_value
                               ? fmt::format("size {}", g.d_key)
                               : fmt::format("keys of size {}, values of size {}", g.d_key, g.d_value);
  return fmt::format("{} of {} ({}), feed-forward {}", counted(layers, "layer"), counted(heads, "head"), size,
                     d_ff);
}

std::string table(const ModelFolder& folder) {
  const EncoderDecoderConfig& c = folder.translator().config();
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<14}{}\n", what, printable_line(value));
  };
  line("model", fmt::format("{}, {}-norm encoder-decoder", folder.model_type,
                            c.norm == NormPlacement::kPost ? "post" : "pre"));
  line("parameters", grouped(static_cast<uint64_t>(folder.model->parameter_count())));
  line("d_model", std::to_string(c.d_model));
  line("encoder", side_text(c, c.encoder_layers, c.encoder_heads, c.encoder_ff));
  line("decoder", side_text(c, c.decoder_layers, c.decoder_heads, c.decoder_ff));
  if (const ordered_json fields = unusual(c.geometry); !fields.empty()) line("heads", fields.dump());
  line("activation", name_of(c.activation, kActivationNames));
  line("positions",
       fmt::format("{}, up to {} tokens",
                   c.positions == Positions::kSinusoidal ? "sinusoids" : name_of(c.positions, kPositionNames),
                   c.max_positions));
  line("vocabulary", fmt::format("{} source, {} target; {} embeddings{}", c.vocabulary_size,
                                 c.target_vocabulary(), c.share_embeddings ? "shared" : "separate",
                                 c.scale_embedding ? fmt::format(", times sqrt({})", c.d_model) : ""));
  line("tokenizer", tokenizer_text(folder.tokenizer, c));
  if (folder.target_tokenizer) line("for the target", tokenizer_text(folder.target_tokenizer, c));
  line("dropout", fmt::format("residual {}, weights {}, activation {}", c.dropout.residual, c.dropout.weights,
                              c.dropout.activation));
  text += "attentions    (name a head as encoder.0.self_attention.1)\n";
  for (const auto& [name, heads] : folder.model->attentions()) {
    text +=
        fmt::format("  {:<28}{}\n", name, heads == 1 ? "head 0" : fmt::format("heads 0 to {}", heads - 1));
  }
  text += "files\n";
  const std::vector<FileSize> files = files_of(folder.path);
  int longest = 28;
  for (const FileSize& file : files)
    longest = std::max(longest, display_width(printable_line(file.name)) + 1);
  for (const FileSize& file : files) {
    const std::string name = printable_line(file.name);
    text += fmt::format("  {}{}{:>14} {}\n", name,
                        std::string(static_cast<size_t>(longest - display_width(name)), ' '),
                        grouped(file.bytes), file.bytes == 1 ? "byte" : "bytes");
  }
  return text;
}

}  // namespace

void add_info(CLI::App& app) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App* verb =
      app.add_subcommand("info", "Show what a model folder holds: sizes, heads, tokenizer, files");
  add_model(*verb, flags->model)->required();
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer("Example:\n  multihead info model\n  multihead info model --json");
  verb->callback([flags] {
    const ModelFolder folder = load_model(flags->model);
    write_text("", flags->json ? describe(folder).dump(2) + "\n" : table(folder));
  });
}

}  // namespace mh::cli
