// multihead ledger: what heads cost.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/geometry_flags.h"
#include "cli/ledger_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_ledger.h"
#include "multihead/models/named_geometry.h"
#include "multihead/models/translator_shape.h"

namespace mh::cli {
namespace {

using nlohmann::ordered_json;

struct LedgerFlags {
  GeometryFlags geometry;
  std::string model, preset, compare;
  int32_t vocabulary_size = 8000;
  int64_t tokens = 128, keys = 0, target_tokens = 0;
  AttentionPath path = AttentionPath::kFused;
  Positions positions = Positions::kNone;
  bool causal = false, json = false;

  Verb* verb = nullptr;
  bool given(const std::string& flag) const { return verb->get_option(flag)->count() > 0; }
  bool whole_model() const { return !model.empty() || !preset.empty(); }
};

Account layer_account(const LedgerFlags& flags, const HeadGeometry& geometry, const std::string& name) {
  const int64_t keys = flags.keys > 0 ? flags.keys : flags.tokens;
  LedgerOptions options;
  if (flags.keys > 0) options.keys = LedgerOptions::Keys::kMemory;
  if (flags.causal) options.mask = Mask::causal();
  if (flags.given("--path")) options.path = flags.path;
  options.d_out = flags.geometry.d_out();
  options.positions = flags.positions;
  const Ledger found = ledger(geometry, flags.geometry.layer().d_model, flags.tokens, keys, options);
  const HeadGeometry& g = found.geometry;
  return {.name = "one layer, " + name,
          .sizes = fmt::format(
              "d_model {}, {}, d_key {}, d_value {}{}", flags.geometry.layer().d_model,
              counted(g.heads, "head"), g.d_key, g.d_value,
              flags.geometry.d_out() > 0 ? fmt::format(", d_out {}", flags.geometry.d_out()) : std::string()),
          .tokens = fmt::format("{}, {}{}{}", counted(flags.tokens, "query", "queries"), counted(keys, "key"),
                                flags.keys > 0 ? " of a memory" : " (their own rows)",
                                flags.causal ? ", causal" : ""),
          .path = found.path,
          .parts = found.parts,
          .total = found.total()};
}

Account model_account(const LedgerFlags& flags, const TranslatorShape& shape, const std::string& name) {
  const int64_t target = flags.target_tokens > 0 ? flags.target_tokens : flags.tokens;
  const ModelLedger found = model_ledger(shape.config(), flags.tokens, target);
  return {.name = name,
          .sizes = fmt::format("d_model {}, {} + {} layers, {} and {} heads, d_ff {} and {}", shape.d_model,
                               shape.encoder_layers, shape.decoder_layers, shape.encoder_heads,
                               shape.decoder_heads, shape.encoder_ff, shape.decoder_ff),
          .tokens = fmt::format("{}, {}, vocabulary {}", counted(flags.tokens, "source token"),
                                counted(target, "target token"), grouped(shape.target_vocabulary())),
          .path = found.encoder_self.path,
          .parts = found.parts,
          .total = found.total()};
}

Account causal_account(const LedgerFlags& flags, const CausalConfig& config) {
  const ModelLedger found = model_ledger(config, flags.tokens);
  const StackConfig& stack = config.stack;
  const LayerConfig& first = stack.layers.front();
  return {.name = flags.model,
          .sizes = fmt::format("d_model {}, {}, {}, d_ff {}", stack.d_model,
                               counted(std::ssize(stack.layers), "layer"),
                               counted(first.self_attention.heads, "head"), first.feed_forward.d_ff),
          .tokens = fmt::format("{}, vocabulary {}", counted(flags.tokens, "token"),
                                grouped(config.embedding.vocabulary)),
          .path = found.decoder_self.path,
          .parts = found.parts,
          .total = found.total()};
}

/// For one description of heads by name, file or JSON; empty: as the flags or the model folder say.
using AccountOf = std::function<Account(const std::string& geometry)>;

AccountOf accounts(const LedgerFlags& flags) {
  if (!flags.whole_model()) {
    return [&flags](const std::string& geometry) {
      const std::string& name = geometry.empty() ? flags.geometry.geometry : geometry;
      return layer_account(flags, flags.geometry.described(name), name);
    };
  }
  std::vector<std::string> of_one_layer = flags.geometry.names();
  for (const char* flag : {"--keys", "--causal", "--path", "--positions"}) of_one_layer.emplace_back(flag);
  for (const std::string& flag : of_one_layer) {
    if (!flags.given(flag)) continue;
    throw UsageError(fmt::format(
        "{} describes one layer, but a whole model is asked for; describe its heads by --geometry", flag));
  }
  if (!flags.model.empty() && !flags.preset.empty())
    throw UsageError("--preset and a model folder are both given; give one of them");
  TranslatorShape shape;
  if (flags.model.empty()) {
    shape = transformer_preset(flags.preset);
    shape.vocabulary_size = flags.vocabulary_size;
    // Sinusoids are no parameters: a preset reads as much as it is given.
    shape.max_positions = static_cast<int32_t>(std::max(flags.tokens, flags.target_tokens));
  } else {
    if (flags.given("--vocabulary-size"))
      throw UsageError("--vocabulary-size needs --preset; a model folder has its own");
    const ModelFolder folder =
        load_translator_or_causal(flags.model, "ledger",
                                  "to count one layer of this model, give its sizes by --d-model, --heads "
                                  "and --key-heads, as multihead info shows them");
    if (folder.model->kind() == ModelKind::kCausal) {
      for (const char* flag : {"--geometry", "--compare", "--target-tokens"}) {
        if (flags.given(flag))
          throw UsageError(fmt::format("{} needs a translator; a causal model is counted as it is", flag));
      }
      return [&flags, config = dynamic_cast<const CausalModel&>(*folder.model).config()](const std::string&) {
        return causal_account(flags, config);
      };
    }
    shape = shape_of(folder.translator().config());
  }
  const std::string name = flags.model.empty() ? flags.preset : flags.model;
  return [&flags, shape, name](const std::string& given) {
    TranslatorShape c = shape;
    const std::string geometry = !given.empty()              ? given
                                 : flags.given("--geometry") ? flags.geometry.geometry
                                                             : std::string();
    if (!geometry.empty()) c.geometry = named_geometry(geometry, c.encoder_heads, c.d_model);
    return model_account(flags, c, geometry.empty() ? name : fmt::format("{}, {}", name, geometry));
  };
}

// "a,b,c" -> a, b, c.
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end == at) throw UsageError(fmt::format("--compare: expected names between commas, got {}", list));
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

void run(const LedgerFlags& flags) {
  const AccountOf account_of = accounts(flags);
  if (flags.compare.empty()) {
    const Account account = account_of("");
    return write_text("", flags.json ? ledger_json(account).dump(2) + "\n" : ledger_table(account));
  }
  if (flags.given("--geometry"))
    throw UsageError("--geometry and --compare are both given; name all geometries by --compare");
  std::vector<ComparedLedger> all;
  for (const std::string& name : names_in(flags.compare))
    all.push_back({printable_line(name), account_of(name)});
  if (flags.json) {
    ordered_json json;
    for (const auto& [name, account] : all) json["compared"].push_back(ledger_json(account));
    return write_text("", json.dump(2) + "\n");
  }
  const LayerSettings& g = flags.geometry.layer();
  write_text(
      "", ledger_comparison(
              all, flags.whole_model()
                       ? fmt::format("{} with other heads", flags.model.empty() ? flags.preset : flags.model)
                       : fmt::format("one layer, d_model {}, {}", g.d_model, counted(g.heads, "head"))));
}

}  // namespace

void add_ledger(Verb& app) {
  auto flags = std::make_shared<LedgerFlags>();
  Verb* verb = flags->verb =
      app.add_subcommand("ledger", "Count the parameters, operations and bytes of heads");
  add_model(*verb, flags->model,
            "The folder of a translator or a causal model, to count a whole model instead of one layer");
  verb->add_option("--preset", flags->preset,
                   "Count a whole model of this preset: tiny, small, base, big or another of train");
  add_number(*verb, "--vocabulary-size", flags->vocabulary_size, {.low = 2, .high = 1 << 24},
             "Tokens in the preset's joint vocabulary");
  flags->geometry.add(*verb);
  constexpr int64_t kMostTokens = 1 << 20;
  add_number(*verb, "--tokens", flags->tokens, {.low = 1, .high = kMostTokens},
             "Number of queries; of a whole model, source tokens, or a causal model's");
  add_size(*verb, "--keys", flags->keys, kMostTokens,
           "Number of keys, when the queries read another sequence (cross-attention)");
  add_size(*verb, "--target-tokens", flags->target_tokens, kMostTokens,
           "Number of target tokens; without: as many as --tokens");
  verb->add_flag("--causal", flags->causal, "Causal mask: a query reads the keys up to its own position");
  add_choice(*verb, "--path", flags->path,
             {{"fused", AttentionPath::kFused}, {"composed", AttentionPath::kComposed}},
             "The fused kernel, or one step after another; usually the kernel where it can");
  add_choice(*verb, "--positions", flags->positions, kPositionNames,
             "Positional encoding in the self-attention");
  verb->add_option("--compare", flags->compare,
                   "Compare these geometries (names or files, separated by commas), one per line");
  verb->add_flag("--json", flags->json, "Print JSON");
  name_values(*verb, "PRESET", {"--preset"});
  name_values(*verb, "GEOMETRY,...", {"--compare"});
  group_flags(*verb, "One layer", {"--tokens", "--keys", "--causal", "--path", "--positions"});
  group_flags(*verb, "A whole model", {"--preset", "--vocabulary-size", "--target-tokens"});
  rare_flags(*verb, {"--keys", "--target-tokens", "--path", "--positions"});
  verb->footer(
      "Example:\n"
      "  multihead ledger --geometry bloem-narrow --d-model 512 --heads 8 --tokens 100\n"
      "  multihead ledger --compare canonical,merged,multi-query --tokens 1000\n"
      "  multihead ledger --preset base --vocabulary-size 37000");
  verb->callback([flags] {
    flags->geometry.take();
    run(*flags);
  });
}

}  // namespace mh::cli
