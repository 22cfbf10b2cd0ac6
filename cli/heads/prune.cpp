// multihead heads prune: the same model without some heads.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/convert_report.h"
#include "cli/convert_sentences.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/prune_report.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/stop_signals.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/folders/folder_source.h"
#include "multihead/heads/conversion/compare_speed.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/conversion/prune_heads.h"
#include "multihead/heads/sites/site_values.h"

namespace mh::cli {
namespace {

constexpr const char* kPruning = "Pruning";
constexpr const char* kComparison = "Comparison with the model that was given";
constexpr EnumNames<NumberType> kNumberTypeNames = {{"float32", NumberType::kFloat32},
                                                    {"bfloat16", NumberType::kBFloat16}};

struct PruneSettings {
  std::vector<HeadPattern> heads = {};
  std::optional<NumberType> dtype = {};
  std::optional<uint64_t> seed = {};
  int32_t rounds = 3;
  TextLanguages languages = {};

  template <class V>
  void visit(V& v) {
    v("heads", heads, {},
      {.group = kPruning,
       .help = "Head to remove, e.g. encoder.3.self_attention.1, or several: 'encoder.*.1'",
       .value = "HEAD"});
    v("dtype", dtype, kNumberTypeNames,
      {.group = kPruning,
       .help = "How numbers are written; without: bfloat16 where all of them are, else float32",
       .rare = true});
    v("seed", seed, Rule<uint64_t>{},
      {.group = kComparison, .help = "Seed of the random tokens", .otherwise = "1", .rare = true});
    v("rounds", rounds, {.low = 1, .high = 1000},
      {.group = kComparison,
       .help = "How often each model is timed; the shortest time counts",
       .rare = true});
    languages.visit(v);
  }
};

struct PruneFlags {
  SettingsOfReport<PruneSettings> settings = {};
  std::string model = {}, out = {}, heads_from = {}, source = {}, target = {};
  bool json = false;
  Verb* verb = nullptr;
};

/// The first word of each line that names heads: a list, or a ranked table with its headings, ranks and bars.
std::vector<HeadPattern> heads_in_file(const std::string& path) {
  std::vector<HeadPattern> heads;
  for (const std::string& line : read_text(path)) {
    std::istringstream words(line);
    std::string word;
    while (words >> word) {
      if (word.find('*') != std::string::npos || word.find("attention.") != std::string::npos) break;
    }
    if (!words) continue;
    try {
      heads.emplace_back(word);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", name_of(path), error.what()));
    }
  }
  if (heads.empty())
    throw UsageError(fmt::format("{} names no head; give it one a line, such as encoder.3.self_attention.1",
                                 name_of(path)));
  return heads;
}

/// The heads of the file come before those of --heads, and in place of those of another report.
PruneSettings settings_of(const PruneFlags& flags) {
  PruneSettings settings = flags.settings.given();
  if (!flags.heads_from.empty()) {
    std::vector<HeadPattern> heads = heads_in_file(flags.heads_from);
    if (flags.verb->get_option("--heads")->count() > 0)
      heads.insert(heads.end(), settings.heads.begin(), settings.heads.end());
    settings.heads = std::move(heads);
  }
  if (settings.heads.empty())
    throw UsageError("name heads that are to go: --heads encoder.3.self_attention.1, or --heads-from FILE");
  return settings;
}

/// bfloat16 where all numbers are, so that what is left is written as it was.
NumberType type_of(const ModelFolder& folder) {
  if (!folder.source) return NumberType::kFloat32;
  const TensorFiles files = folder.source->tensors();
  const auto& tensors = files.tensors();
  const bool rounded = std::all_of(tensors.begin(), tensors.end(),
                                   [](const auto& named) { return named.second.type == "BF16"; });
  return rounded && !tensors.empty() ? NumberType::kBFloat16 : NumberType::kFloat32;
}

/// Of the files of weights in a folder, or of a file that is a whole model.
int64_t weight_bytes_in(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code))
    return static_cast<int64_t>(std::filesystem::file_size(path, code));
  int64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path, code)) {
    if (entry.path().extension() == ".safetensors") sum += static_cast<int64_t>(entry.file_size(code));
  }
  return sum;
}

void run_prune(const PruneFlags& flags) {
  const PruneSettings settings = settings_of(flags);
  check_new_folder(flags.out);
  ModelFolder folder = load_model(flags.model);
  const CompareOn on{.source = flags.source,
                     .target = flags.target,
                     .seed = settings.seed.value_or(1),
                     .seed_given = settings.seed.has_value(),
                     .languages = settings.languages};
  const ComparedSentences sentences = compared_sentences(folder, on);
  PruneReport report{.model = flags.model,
                     .out = flags.out,
                     .plan = plan_pruning(*folder.model, settings.heads),
                     .type = settings.dtype.value_or(type_of(folder)),
                     .compared_on = sentences.what};
  const std::unique_ptr<Model> given = std::exchange(folder.model, prune_heads(*folder.model, report.plan));
  const std::vector<HeadName> removed = report.plan.removed_heads();
  report.format = format_when_saved(folder, removed);
  remark(format_line(report.format, folder.model_type));  // before anything is written
  SiteValues muted;
  for (const std::string& head : report.plan.muted()) muted.mute(head);
  report.from_muted = compare_models(*given, *folder.model, sentences.sources, sentences.targets, &muted);
  report.difference = compare_models(*given, *folder.model, sentences.sources, sentences.targets);
  if (!is_rounding(report.from_muted)) {
    const Difference& found = report.from_muted.of_outputs();
    throw Error(
        fmt::format("the pruned model's outputs differ from the muted one's by {:.2e} (of {:.3g}), more "
                    "than rounding explains; nothing was written",
                    found.largest, found.magnitude));
  }
  report.seconds =
      compare_speed(*given, *folder.model, sentences.sources, sentences.targets, settings.rounds);
  report.parameters = {given->parameter_count(), folder.model->parameter_count()};
  StopSignals::stoppable_loops([&] {
    save_model_folder(flags.out, folder,
                      {.type = report.type, .own_format = OwnFormat::kAllowed, .removed = removed});
  });
  report.weight_bytes = {
      folder.shipped ? std::ssize(folder.source->read("model.safetensors")) : weight_bytes_in(folder.path),
      weight_bytes_in(flags.out)};
  write_text("",
             flags.json ? flags.settings.with_options(prune_json(report), settings) : prune_table(report));
}

}  // namespace

void add_heads_prune(Verb& heads) {
  auto flags = std::make_shared<PruneFlags>();
  Verb* verb = flags->verb =
      heads.add_subcommand("prune", "Remove heads for good: the muted model as a smaller folder");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  flags->settings.add(*verb);
  verb->add_option("--heads-from", flags->heads_from,
                   "Take names of heads from this file, the first of each line, e.g. a ranked table");
  verb->add_option("--out", flags->out, "The folder to make")->required();
  verb->add_option("--source", flags->source,
                   "Compare outputs and time on these sentences; without: on random tokens");
  verb->add_option("--target", flags->target, "Of a translator: translations of --source, line by line");
  verb->add_flag("--json", flags->json, "Print JSON");
  add_limit_flags(*verb);
  name_values(*verb, "DIR", {"--out"});
  name_values(*verb, "FILE", {"--heads-from", "--source", "--target"});
  group_flags(*verb, kPruning, {"--heads-from"});
  group_flags(*verb, kComparison, {"--source", "--target"});
  verb->footer(
      "Example:\n"
      "  multihead heads prune minilm --out pruned --heads 'encoder.5.self_attention.*'\n"
      "  multihead heads prune demo --heads-from ranked.txt --out pruned --json");
  verb->callback([flags] { run_prune(*flags); });
}

}  // namespace mh::cli
