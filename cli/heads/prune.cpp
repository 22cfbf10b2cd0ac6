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
#include "cli/load_model.h"
#include "cli/options.h"
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

struct PruneFlags {
  std::string model = {}, out = {}, heads_from = {}, source = {}, target = {};
  std::vector<std::string> heads = {};
  std::optional<NumberType> type = {};
  uint64_t seed = 1;
  int rounds = 3;
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

std::vector<HeadPattern> heads_of(const PruneFlags& flags) {
  std::vector<HeadPattern> heads;
  if (!flags.heads_from.empty()) heads = heads_in_file(flags.heads_from);
  for (const std::string& head : flags.heads) heads.emplace_back(head);
  if (heads.empty())
    throw UsageError("name heads that are to go: --heads encoder.3.self_attention.1, or --heads-from FILE");
  return heads;
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
  const std::vector<HeadPattern> heads = heads_of(flags);
  check_new_folder(flags.out);
  ModelFolder folder = load_model(flags.model);
  const CompareOn on{.source = flags.source,
                     .target = flags.target,
                     .seed = flags.seed,
                     .seed_given = flags.verb->get_option("--seed")->count() > 0};
  const ComparedSentences sentences = compared_sentences(folder, on);
  PruneReport report{.model = flags.model,
                     .out = flags.out,
                     .plan = plan_pruning(*folder.model, heads),
                     .type = flags.type.value_or(type_of(folder)),
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
  report.seconds = compare_speed(*given, *folder.model, sentences.sources, sentences.targets, flags.rounds);
  report.parameters = {given->parameter_count(), folder.model->parameter_count()};
  StopSignals::stoppable_loops([&] {
    save_model_folder(flags.out, folder,
                      {.type = report.type, .own_format = OwnFormat::kAllowed, .removed = removed});
  });
  report.weight_bytes = {
      folder.shipped ? std::ssize(folder.source->read("model.safetensors")) : weight_bytes_in(folder.path),
      weight_bytes_in(flags.out)};
  write_text("", flags.json ? prune_json(report) : prune_table(report));
}

}  // namespace

void add_heads_prune(Verb& heads) {
  auto flags = std::make_shared<PruneFlags>();
  Verb* verb = flags->verb =
      heads.add_subcommand("prune", "Remove heads for good: the muted model as a smaller folder");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  verb->add_option("--heads", flags->heads,
                   "Head to remove, e.g. encoder.3.self_attention.1, or several: 'encoder.*.1'; may be "
                   "given again")
      ->again();
  verb->add_option("--heads-from", flags->heads_from,
                   "Take names of heads from this file, the first of each line, e.g. a ranked table");
  verb->add_option("--out", flags->out, "The folder to make")->required();
  add_choice(*verb, "--dtype", flags->type,
             {{"float32", NumberType::kFloat32}, {"bfloat16", NumberType::kBFloat16}},
             "How numbers are written; without: bfloat16 where all of them are, else float32");
  verb->add_option("--source", flags->source,
                   "Compare outputs and time on these sentences; without: on random tokens");
  verb->add_option("--target", flags->target, "Of a translator: translations of --source, line by line");
  add_number(*verb, "--seed", flags->seed, {}, "Seed of the random tokens");
  add_number(*verb, "--rounds", flags->rounds, {.low = 1, .high = 1000},
             "How often each model is timed; the shortest time counts");
  verb->add_flag("--json", flags->json, "Print JSON");
  add_limit_flags(*verb);
  name_values(*verb, "DIR", {"--out"});
  name_values(*verb, "FILE", {"--heads-from", "--source", "--target"});
  name_values(*verb, "HEAD", {"--heads"});
  group_flags(*verb, "Comparison with the model that was given",
              {"--source", "--target", "--seed", "--rounds"});
  rare_flags(*verb, {"--seed", "--rounds", "--dtype"});
  verb->footer(
      "Example:\n"
      "  multihead heads prune minilm --out pruned --heads 'encoder.5.self_attention.*'\n"
      "  multihead heads prune demo --heads-from ranked.txt --out pruned --json");
  verb->callback([flags] { run_prune(*flags); });
}

}  // namespace mh::cli
