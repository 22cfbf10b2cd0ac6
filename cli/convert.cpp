// multihead convert: the same model with other heads, or as another folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/convert_precision.h"
#include "cli/convert_report.h"
#include "cli/convert_sentences.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/setting_flags.h"
#include "cli/stop_signals.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/head_changes.h"
#include "multihead/models/model_ledger.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh::cli {
namespace {

enum class Target { kCanonical, kMerged, kGrouped, kCollaborative };

struct ConvertFlags {
  std::string model, out, source, target, permute;
  Target to = Target::kCanonical;
  int d_key = 0, key_heads = 1, shared_size = 0;
  bool nearest = false, merge_equal = false, own_format = false, json = false;
  NumberType type = NumberType::kFloat32;
  SmallWeights precision = SmallWeights::kInt8;
  std::vector<std::string> attentions, remove;
  uint64_t seed = 1;
  FlaggedSettings<TextLanguages> languages = {};

  Verb* verb = nullptr;
  bool given(const char* flag) const { return verb->get_option(flag)->count() > 0; }
};

/// What was asked for: in words, what becomes of the outputs, and how it is done.
struct Plan {
  std::string what;
  Promise promise = Promise::kSame;
  std::function<std::unique_ptr<Model>(Model&)> run;
};

std::vector<int> numbers_of(const std::string& list) {
  std::vector<int> numbers;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (true) {
    int number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (stop != end && *stop != ','))
      throw UsageError(fmt::format("--permute: expected numbers of heads between commas, got {}", list));
    numbers.push_back(number);
    if (stop == end) return numbers;
    at = stop + 1;
  }
}

void refuse(const ConvertFlags& flags, const char* flag, std::string_view with) {
  if (flags.given(flag)) throw UsageError(fmt::format("{} has no meaning with {}; leave it out", flag, with));
}

void allow_only(const ConvertFlags& flags, std::string_view with, std::vector<std::string_view> allowed) {
  for (const char* flag : {"--d-key", "--nearest", "--key-heads", "--shared-size", "--attention"}) {
    if (std::find(allowed.begin(), allowed.end(), flag) == allowed.end()) refuse(flags, flag, with);
  }
}

Plan plan_of_target(const ConvertFlags& flags) {
  const auto all = [](auto convert) {
    return [convert](Model& model) {
      return convert_model(model,
                           [&](const std::string&, const LayerWeights& before) { return convert(before); });
    };
  };
  switch (flags.to) {
    case Target::kCanonical: {
      allow_only(flags, "--to canonical", {"--d-key", "--nearest"});
      const CanonicalOptions options{.d_key = flags.d_key, .nearest = flags.nearest};
      return {"canonical heads", flags.nearest ? Promise::kOther : Promise::kSame,
              all([options](const LayerWeights& before) { return to_canonical(before, options); })};
    }
    case Target::kMerged:
      allow_only(flags, "--to merged", {});
      return {"merged heads", Promise::kSame,
              all([](const LayerWeights& before) { return to_merged(before); })};
    case Target::kGrouped: {
      allow_only(flags, "--to grouped", {"--key-heads"});
      const int heads = flags.key_heads;
      return {fmt::format("{} of keys and values", heads == 1 ? "one head" : fmt::format("{} heads", heads)),
              Promise::kOther,
              all([heads](const LayerWeights& before) { return to_grouped(before, heads); })};
    }
    case Target::kCollaborative:
      break;
  }
  allow_only(flags, "--to collaborative", {"--shared-size"});
  if (flags.shared_size == 0)
    throw UsageError(
        "--shared-size is missing; give the columns of the shared W^Q and W^K, at most heads * d_key");
  const int size = flags.shared_size;
  return {fmt::format("collaborative heads of {} shared columns", size), Promise::kOther,
          all([size](const LayerWeights& before) { return to_collaborative(before, size); })};
}

/// Nothing: the model is written as it is.
std::optional<Plan> plan_of(const ConvertFlags& flags) {
  const int asked = (flags.given("--to") ? 1 : 0) + (flags.permute.empty() ? 0 : 1) +
                    (flags.remove.empty() ? 0 : 1) + (flags.merge_equal ? 1 : 0);
  if (asked == 0 && (is_gguf(flags.model) || flags.given("--dtype"))) {
    constexpr const char* kAsItIs = "a model that is written as it is";
    allow_only(flags, kAsItIs, {});
    for (const char* flag : {"--source", "--target", "--seed"}) refuse(flags, flag, kAsItIs);
    return std::nullopt;
  }
  if (asked != 1)
    throw UsageError(fmt::format("expected one of --to, --permute, --remove and --merge-equal, got {}",
                                 asked == 0 ? "none; --dtype alone writes the model as it is" : "several"));
  if (flags.given("--to")) return plan_of_target(flags);
  if (!flags.permute.empty()) {
    allow_only(flags, "--permute", {"--attention"});
    const std::vector<int> order = numbers_of(flags.permute);
    return Plan{
        fmt::format("heads in the order {}", flags.permute), Promise::kSame, [&flags, order](Model& model) {
          for (const std::string& name : flags.attentions) model.attention(name);  // it must be there
          return convert_model(model, [&](const std::string& name, const LayerWeights& before) {
            const auto& only = flags.attentions;
            const bool asked_for = only.empty() || std::find(only.begin(), only.end(), name) != only.end();
            return asked_for ? permuted(before, order) : before;
          });
        }};
  }
  if (!flags.remove.empty()) {
    allow_only(flags, "--remove", {});
    return Plan{fmt::format("without {}", fmt::join(flags.remove, ", ")), Promise::kAsMuted,
                [&flags](Model& model) { return without_heads(model, flags.remove); }};
  }
  allow_only(flags, "--merge-equal", {});
  return Plan{
      "equal heads merged", Promise::kSame, [](Model& model) {
        auto made = convert_model(
            model, [](const std::string&, const LayerWeights& before) { return equal_merged(before); });
        const auto before = model.attentions(), after = made->attentions();
        if (std::equal(before.begin(), before.end(), after.begin(),
                       [](const auto& a, const auto& b) { return a.heads == b.heads; }))
          throw UsageError(
              "no two heads of a layer have equal queries, keys and values; there is nothing to merge");
        return made;
      }};
}

CompareOn compared_on(const ConvertFlags& flags) {
  return {.source = flags.source,
          .target = flags.target,
          .seed = flags.seed,
          .seed_given = flags.given("--seed"),
          .languages = flags.languages.settings};
}

/// What the model of a folder costs.
struct ModelCosts {
  explicit ModelCosts(const ModelFolder& folder) : parameters(folder.model->parameter_count()) {
    if (folder.model->kind() != ModelKind::kTranslator) return;
    const EncoderDecoderConfig& config = folder.translator().config();
    const int64_t tokens = std::min(config.max_positions, 30);
    work = model_ledger(config, tokens, tokens).total();
  }

  int64_t parameters;
  std::optional<LedgerPart> work;  // of a translator
};

std::vector<Cost> costs_of(const ModelCosts& before, const ModelCosts& after) {
  std::vector<Cost> costs{{"parameters", "parameters", {before.parameters, after.parameters}}};
  if (!before.work || !after.work) return costs;
  const LedgerPart &a = *before.work, &b = *after.work;
  costs.push_back({"flops", "FLOPs, 30 tokens on each side", {a.flops(), b.flops()}});
  costs.push_back({"exponentials", "exponentials", {a.exponentials, b.exponentials}});
  costs.push_back({"kept_bytes", "bytes kept in training", {a.kept_bytes, b.kept_bytes}});
  return costs;
}

void save(const ConvertFlags& flags, const ModelFolder& folder) {
  StopSignals::stoppable_loops([&] {
    save_model_folder(
        flags.out, folder,
        {.type = flags.type, .own_format = flags.own_format ? OwnFormat::kAllowed : OwnFormat::kRefused});
  });
}

void save_as_it_is(const ConvertFlags& flags, const ModelFolder& folder) {
  save(flags, folder);
  const int64_t parameters = folder.model->parameter_count();
  if (flags.json) {
    const nlohmann::ordered_json document{
        {"model", flags.model}, {"out", flags.out}, {"parameters", parameters}};
    return write_text("", document.dump(2) + "\n");
  }
  write_text("", fmt::format("{}: the model of {} as a folder that Transformers opens, {} parameters in {}\n",
                             flags.out, flags.model, parameters,
                             flags.type == NumberType::kFloat32 ? "F32" : "BF16"));
}

void run_to_small(const ConvertFlags& flags) {
  for (const char* flag : {"--to", "--permute", "--remove", "--merge-equal"}) {
    if (flags.given(flag))
      throw UsageError(fmt::format("{} and --precision are two steps; convert the heads first", flag));
  }
  allow_only(flags, "--precision", {});
  if (flags.precision != SmallWeights::kInt8) {
    for (const char* flag : {"--dtype", "--own-format"}) refuse(flags, flag, "blocks of a .gguf file");
  }
  const ConvertReport report =
      convert_to_small({.model = flags.model,
                        .out = flags.out,
                        .type = flags.precision,
                        .rest = flags.given("--dtype") ? flags.type : NumberType::kBFloat16,
                        .own_format = flags.own_format,
                        .on = compared_on(flags)});
  write_text("", flags.json ? as_json(report) : in_words(report));
}

void run(const ConvertFlags& flags) {
  if (flags.given("--precision")) return run_to_small(flags);
  const std::optional<Plan> plan = plan_of(flags);
  check_new_folder(flags.out);
  ModelFolder folder = load_model(flags.model);
  if (!plan) return save_as_it_is(flags, folder);
  const ComparedSentences sentences = compared_sentences(folder, compared_on(flags));
  const ModelCosts costs_before(folder);
  const LanguageModel* const predicting = flags.target.empty() ? nullptr : &folder.language_model();
  const std::unique_ptr<Model> model = std::exchange(folder.model, plan->run(*folder.model));
  if (!flags.permute.empty()) folder.generation.alignment.reset();  // its heads have other numbers now
  const Model& made = *folder.model;
  ConvertReport report{.model = flags.model,
                       .out = flags.out,
                       .conversion = plan->what,
                       .promise = plan->promise,
                       .costs = costs_of(costs_before, ModelCosts(folder)),
                       .compared_on = sentences.what};
  report.difference = compare_models(*model, made, sentences.sources, sentences.targets);
  if (plan->promise == Promise::kAsMuted) {
    SiteValues muted;
    for (const std::string& head : flags.remove) muted.mute(head);
    report.from_muted = compare_models(*model, made, sentences.sources, sentences.targets, &muted);
  }
  if (predicting != nullptr) {
    report.mean_log_probability = {.before = mean_log_probability(*predicting, sentences),
                                   .after = mean_log_probability(folder.language_model(), sentences)};
  }
  const ModelDifference& promised = report.from_muted ? *report.from_muted : report.difference;
  if (plan->promise != Promise::kOther && !is_rounding(promised)) {
    const Difference& found = promised.of_outputs();
    throw Error(fmt::format(
        "the converted model's outputs differ by {:.2e} (of {:.3g}), more than rounding explains; "
        "nothing was written. Do other parts of the model depend on the numbers of heads?",
        found.largest, found.magnitude));
  }
  save(flags, folder);
  write_text("", flags.json ? as_json(report) : in_words(report));
}

}  // namespace

void add_convert(Verb& app) {
  auto flags = std::make_shared<ConvertFlags>();
  Verb* verb = flags->verb = app.add_subcommand(
      "convert", "Rebuild a model with other heads or smaller weights, or write it as another folder");
  add_model(*verb, flags->model, "The folder of a model, a .gguf file, or demo")->required();
  verb->add_option("--out", flags->out, "The folder to make, or with --precision the .gguf file")->required();
  add_choice(*verb, "--to", flags->to,
             {{"canonical", Target::kCanonical},
              {"merged", Target::kMerged},
              {"grouped", Target::kGrouped},
              {"collaborative", Target::kCollaborative}},
             "Kind of heads to convert to")
      ->default_str("");
  add_size(*verb, "--d-key", flags->d_key, kLargestHead,
           "With --to canonical, from merged heads: size of queries and keys");
  verb->add_flag("--nearest", flags->nearest,
                 "With --to canonical: accept the closest matrices where --d-key is below the rank");
  add_number(*verb, "--key-heads", flags->key_heads, kHeadCounts,
             "With --to grouped: number of key and value heads, each the mean of those it replaces");
  add_size(*verb, "--shared-size", flags->shared_size, kLargestHead,
           "With --to collaborative: columns of the shared W^Q and W^K");
  verb->add_option("--permute", flags->permute,
                   "New order of the heads, e.g. 2,0,1: the new head 0 is the old head 2");
  verb->add_option("--attention", flags->attentions,
                   "Attention layer that --permute reorders; may be given again; without: all")
      ->again();
  verb->add_option(
          "--remove", flags->remove,
          "Remove a head, e.g. encoder.3.self_attention.1, or several: 'encoder.*.1'; may be given again")
      ->again();
  verb->add_flag("--merge-equal", flags->merge_equal,
                 "Merge heads with equal queries, keys and values into one");
  verb->add_option("--source", flags->source,
                   "Compare the outputs on these sentences; without: on random tokens");
  verb->add_option("--target", flags->target, "Of a translator: translations of --source, line by line");
  add_choice(*verb, "--dtype", flags->type,
             {{"float32", NumberType::kFloat32}, {"bfloat16", NumberType::kBFloat16}},
             "How numbers are written; alone it writes the model as it is");
  add_choice(*verb, "--precision", flags->precision, kSmallWeightsNames,
             "Write smaller matrices: int8 makes a folder, q8_0 and q4_0 a .gguf file of a .gguf file")
      ->default_str("");
  verb->add_flag(
      "--own-format", flags->own_format,
      "Allow a folder that Transformers does not open, where the model's format cannot hold its heads");
  add_number(*verb, "--seed", flags->seed, {}, "Seed of the random tokens");
  verb->add_flag("--json", flags->json, "Print JSON");
  add_limit_flags(*verb);
  name_values(*verb, "DIR", {"--out"});
  name_values(*verb, "FILE", {"--source", "--target"});
  name_values(*verb, "HEAD", {"--remove"});
  name_values(*verb, "ORDER", {"--permute"});
  name_values(*verb, "ATTENTION", {"--attention"});
  group_flags(*verb, "Conversion to other heads",
              {"--to", "--d-key", "--nearest", "--key-heads", "--shared-size"});
  group_flags(*verb, "Same heads, fewer or in another order",
              {"--remove", "--merge-equal", "--permute", "--attention"});
  group_flags(*verb, "The folder that is written", {"--precision", "--dtype", "--own-format"});
  flags->languages.add(*verb);
  group_flags(*verb, "Comparison with the model that was given",
              {"--source", "--target", "--seed", "--source-language", "--target-language"});
  rare_flags(*verb, {"--nearest", "--attention", "--seed"});
  verb->footer(
      "Example:\n"
      "  multihead convert model --out one-key --to grouped --key-heads 1\n"
      "  multihead convert model --out merged --to merged --source test.en \\\n"
      "    --target test.de\n"
      "  multihead convert model --out pruned --remove encoder.0.self_attention.3 \\\n"
      "    --remove encoder.1.self_attention.0\n"
      "  multihead convert bert --out pruned --remove 'encoder.*.3' --own-format\n"
      "  multihead convert model.gguf --out folder --dtype bfloat16\n"
      "  multihead convert minilm --out minilm-int8 --precision int8\n"
      "  multihead convert model.gguf --out small.gguf --precision q4_0");
  verb->callback([flags] {
    flags->languages.take();
    run(*flags);
  });
}

}  // namespace mh::cli
