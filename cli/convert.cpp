// multihead convert: the same model with other heads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/models/convert_model.h"
#include "multihead/models/head_changes.h"
#include "multihead/models/model_folder.h"
#include "multihead/models/model_ledger.h"

namespace mh::cli {
namespace {

enum class Target { kCanonical, kMerged, kGrouped, kCollaborative };

struct ConvertFlags {
  std::string model, out, source, target, permute;
  Target to = Target::kCanonical;
  int d_key = 0, key_heads = 1, shared_size = 0;
  bool nearest = false, merge_equal = false, json = false;
  std::vector<std::string> attentions, remove;
  uint64_t seed = 1;

  CLI::App* verb = nullptr;
  bool given(const char* flag) const { return verb->get_option(flag)->count() > 0; }
};

/// What was asked for: done to one layer, in words, and whether the outputs stay but for rounding.
struct Plan {
  std::string what;
  bool exact = true;
  std::function<std::unique_ptr<EncoderDecoder>(EncoderDecoder&)> run;
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

void allow_only(const ConvertFlags& flags, std::string_view with, std::vector<std::string_view> allowed) {
  for (const char* flag : {"--d-key", "--nearest", "--key-heads", "--shared-size", "--attention"}) {
    if (flags.given(flag) && std::find(allowed.begin(), allowed.end(), flag) == allowed.end())
      throw UsageError(fmt::format("{} says nothing to {}", flag, with));
  }
}

Plan plan_of_target(const ConvertFlags& flags) {
  const auto all = [](auto convert) {
    return [convert](EncoderDecoder& model) {
      return convert_model(model,
                           [&](const std::string&, const LayerWeights& before) { return convert(before); });
    };
  };
  switch (flags.to) {
    case Target::kCanonical: {
      allow_only(flags, "--to canonical", {"--d-key", "--nearest"});
      const CanonicalOptions options{.d_key = flags.d_key, .nearest = flags.nearest};
      return {"canonical heads", !flags.nearest,
              all([options](const LayerWeights& before) { return to_canonical(before, options); })};
    }
    case Target::kMerged:
      allow_only(flags, "--to merged", {});
      return {"merged heads", true, all([](const LayerWeights& before) { return to_merged(before); })};
    case Target::kGrouped: {
      allow_only(flags, "--to grouped", {"--key-heads"});
      const int heads = flags.key_heads;
      return {fmt::format("{} of keys and values", heads == 1 ? "one head" : fmt::format("{} heads", heads)),
              false, all([heads](const LayerWeights& before) { return to_grouped(before, heads); })};
    }
    case Target::kCollaborative:
      break;
  }
  allow_only(flags, "--to collaborative", {"--shared-size"});
  if (flags.shared_size == 0)
    throw UsageError(
        "--shared-size is missing; give the columns of the shared W^Q and W^K, at most heads * d_key");
  const int size = flags.shared_size;
  return {fmt::format("collaborative heads of {} shared columns", size), false,
          all([size](const LayerWeights& before) { return to_collaborative(before, size); })};
}

Plan plan_of(const ConvertFlags& flags) {
  const int asked = (flags.given("--to") ? 1 : 0) + (flags.permute.empty() ? 0 : 1) +
                    (flags.remove.empty() ? 0 : 1) + (flags.merge_equal ? 1 : 0);
  if (asked != 1)
    throw UsageError(fmt::format("expected one of --to, --permute, --remove and --merge-equal, got {}",
                                 asked == 0 ? "none" : "several"));
  if (flags.given("--to")) return plan_of_target(flags);
  if (!flags.permute.empty()) {
    allow_only(flags, "--permute", {"--attention"});
    const std::vector<int> order = numbers_of(flags.permute);
    return {
        fmt::format("heads in the order {}", flags.permute), true, [&flags, order](EncoderDecoder& model) {
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
    return {fmt::format("without {}", fmt::join(flags.remove, ", ")), true,
            [&flags](EncoderDecoder& model) { return without_heads(model, flags.remove); }};
  }
  allow_only(flags, "--merge-equal", {});
  return {"equal heads merged", true, [](EncoderDecoder& model) {
            auto made = convert_model(
                model, [](const std::string&, const LayerWeights& before) { return equal_merged(before); });
            if (made->config().encoder_heads == model.config().encoder_heads &&
                made->config().decoder_heads == model.config().decoder_heads)
              throw UsageError(
                  "no two heads of a layer have equal queries, keys and values; there is nothing to merge");
            return made;
          }};
}

struct Sentences {
  std::string what;
  std::vector<std::vector<int32_t>> sources, targets;
};

Sentences sentences_of(const ConvertFlags& flags, const ModelFolder& folder) {
  if (flags.source.empty() != flags.target.empty())
    throw UsageError("--source and --target go together: line i must translate line i");
  Sentences sentences;
  if (flags.source.empty()) {
    constexpr int kPairs = 5;
    sentences.what = fmt::format("{} random pairs of sentences (seed {})", kPairs, flags.seed);
    sentences.sources = random_sentences(folder.translator().config(),
                                         folder.translator().config().vocabulary_size, kPairs, flags.seed);
    sentences.targets =
        random_sentences(folder.translator().config(), folder.translator().config().target_vocabulary(),
                         kPairs, flags.seed + 1);
    for (auto& target : sentences.targets) target.pop_back();
  } else {
    ModelText text(folder, text_options(false));
    const auto sources = read_text(flags.source), targets = read_text(flags.target);
    if (sources.size() != targets.size() || sources.empty()) {
      throw FormatError(fmt::format("{} has {} lines, {} has {}; expected as many, and at least one",
                                    flags.source, sources.size(), flags.target, targets.size()));
    }
    sentences.what = fmt::format("{} pairs of sentences", sources.size());
    sentences.sources = text.sources(sources, {.name = flags.source});
    sentences.targets = text.targets(targets, {.name = flags.target});
    tell_unknown(text);
  }
  for (auto& target : sentences.targets)
    target.insert(target.begin(), folder.translator().config().decoder_start_id);
  return sentences;
}

struct Costs {
  const char* name;
  int64_t before, after;
};

std::vector<Costs> costs_of(const EncoderDecoderConfig& before, const EncoderDecoderConfig& after) {
  const int64_t tokens = std::min(before.max_positions, 30);
  const LedgerPart a = model_ledger(before, tokens, tokens).total();
  const LedgerPart b = model_ledger(after, tokens, tokens).total();
  return {{"parameters", a.parameters, b.parameters},
          {"flops", a.flops(), b.flops()},
          {"exponentials", a.exponentials, b.exponentials},
          {"kept_bytes", a.kept_bytes, b.kept_bytes}};
}

std::string report(const ConvertFlags& flags, const Plan& plan, const Sentences& sentences,
                   const ModelDifference& found, const std::vector<Costs>& costs) {
  std::string text = fmt::format("{} -> {}\n{}\n\n{:<34}{:>16}{:>16}\n", flags.model, flags.out, plan.what,
                                 "", "before", "after");
  const char* names[] = {"parameters", "FLOPs, 30 tokens on each side", "exponentials",
                         "bytes kept in training"};
  for (size_t i = 0; i < costs.size(); ++i) {
    text += fmt::format("{:<34}{:>16}{:>16}\n", names[i], grouped(static_cast<uint64_t>(costs[i].before)),
                        grouped(static_cast<uint64_t>(costs[i].after)));
  }
  text += fmt::format(
      "\nlargest difference on {}\n  encoder's output  {:.2e}, of numbers up to {:.3g}\n"
      "  logits            {:.2e}, of numbers up to {:.3g}\n",
      sentences.what, found.memory, found.memory_magnitude, found.logits, found.logits_magnitude);
  text += plan.exact ? "The same function: the difference is rounding.\n"
                     : "Another function: the difference is what the conversion loses; train it on.\n";
  return text;
}

std::string json_of(const ConvertFlags& flags, const Plan& plan, const Sentences& sentences,
                    const ModelDifference& found, const std::vector<Costs>& costs) {
  nlohmann::ordered_json json{{"model", flags.model},
                              {"out", flags.out},
                              {"conversion", plan.what},
                              {"exact", plan.exact},
                              {"on", sentences.what}};
  json["difference"] = {{"encoder", found.memory},
                        {"encoder_magnitude", found.memory_magnitude},
                        {"logits", found.logits},
                        {"logits_magnitude", found.logits_magnitude}};
  for (const Costs& cost : costs) json[cost.name] = {{"before", cost.before}, {"after", cost.after}};
  return json.dump(2) + "\n";
}

void run(const ConvertFlags& flags) {
  const Plan plan = plan_of(flags);
  std::error_code code;
  if (std::filesystem::exists(flags.out, code)) {
    throw UsageError(fmt::format("--out {} exists; name a new folder, so that no model is lost", flags.out));
  }
  const ModelFolder folder = load_model_folder(flags.model);
  const Sentences sentences = sentences_of(flags, folder);
  const auto made = plan.run(folder.translator());
  Interventions muted;
  for (const std::string& head : flags.remove) muted.mute(head);
  const ModelDifference found = compare_models(folder.translator(), *made, sentences.sources,
                                               sentences.targets, muted.empty() ? nullptr : &muted);
  constexpr double kRounding = 1e-3;
  if (plan.exact && (found.logits > kRounding * found.logits_magnitude ||
                     found.memory > kRounding * found.memory_magnitude)) {
    throw Error(
        fmt::format("the converted model's logits differ by {:.2e} (of {:.3g}), more than rounding explains; "
                    "nothing was written. Does the model have what heads do by their number?",
                    found.logits, found.logits_magnitude));
  }
  save_model_folder(flags.out, *made,
                    {.tokenizer = folder.tokenizer ? &*folder.tokenizer : nullptr,
                     .target_tokenizer = folder.target_tokenizer ? &*folder.target_tokenizer : nullptr});
  const std::vector<Costs> costs = costs_of(folder.translator().config(), made->config());
  write_text("", flags.json ? json_of(flags, plan, sentences, found, costs)
                            : report(flags, plan, sentences, found, costs));
}

}  // namespace

void add_convert(CLI::App& app) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* verb = flags->verb = app.add_subcommand(
      "convert", "The same model with other heads, and how far its outputs are from before");
  verb->add_option("model", flags->model, "The model folder")->required();
  verb->add_option("--out", flags->out, "The folder to make")->required();
  add_choice(*verb, "--to", flags->to,
             {{"canonical", Target::kCanonical},
              {"merged", Target::kMerged},
              {"grouped", Target::kGrouped},
              {"collaborative", Target::kCollaborative}},
             "How the heads shall read and write")
      ->default_str("");
  add_size(*verb, "--d-key", flags->d_key, kLargestHead,
           "--to canonical, from merged: size of queries and keys; without: as the model says");
  verb->add_flag("--nearest", flags->nearest,
                 "--to canonical, from merged: where that is below a matrix's rank, the nearest one");
  add_number(*verb, "--key-heads", flags->key_heads, kHeadCounts,
             "--to grouped: heads of keys and values, the means of those that they stand for");
  add_size(*verb, "--shared-size", flags->shared_size, kLargestHead,
           "--to collaborative: columns of the shared W^Q and W^K");
  verb->add_option("--permute", flags->permute,
                   "New order of the heads, e.g. 2,0,1: head 0 is then the old 2");
  verb->add_option("--attention", flags->attentions, "--permute in this attention only; may be given again")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_option("--remove", flags->remove,
                   "Remove a head, e.g. encoder.3.self_attention.1; may be given again")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--merge-equal", flags->merge_equal,
                 "Make one of heads with equal queries, keys and values");
  verb->add_option("--source", flags->source,
                   "Compare the outputs on these lines; without: on random tokens");
  verb->add_option("--target", flags->target, "Their translations");
  add_number(*verb, "--seed", flags->seed, {}, "Of the random tokens");
  verb->add_flag("--json", flags->json, "As JSON");
  verb->footer(
      "Example:\n"
      "  multihead convert model --out one-key --to grouped --key-heads 1\n"
      "  multihead convert model --out merged --to merged --source test.en --target test.de\n"
      "  multihead convert model --out pruned --remove encoder.0.self_attention.3 \\\n"
      "    --remove encoder.1.self_attention.0");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
