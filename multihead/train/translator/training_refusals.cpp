#include "multihead/train/translator/training_refusals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/distributed/agreement.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/family.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/tokenizer_fit.h"
#include "multihead/kernels/simd.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/in_quotes.h"
#include "multihead/train/translator/training_settings.h"
#include "multihead/train/translator/translator_heads.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

// One that CheckpointStore made: it never goes without its lock.
bool holds_run(const fs::path& folder) {
  std::error_code code;
  return fs::exists(checkpoints_of(folder) / ".lock", code) || !checkpoint_updates(folder).empty();
}

// What may stand where a training begins: hidden files, and what a training leaves whose checkpoints were
// removed.
bool may_be_ours(const fs::directory_entry& file) {
  const std::string name = file.path().filename().string();
  std::error_code code;
  if (file.path().filename() == checkpoints_of("").filename()) return fs::is_empty(file.path(), code);
  return name.starts_with('.') || name == "metrics.jsonl" || name.starts_with("events.out.tfevents.");
}

// At most so many that a person reads them.
std::string joined(const std::vector<std::string>& clauses) {
  constexpr size_t kMost = 5;
  const size_t shown = std::min(kMost, clauses.size());
  std::string text = fmt::format("{}", fmt::join(clauses.begin(), clauses.begin() + shown, "; "));
  if (shown < clauses.size()) text += fmt::format("; and {} more", clauses.size() - shown);
  return text;
}

}  // namespace

void refuse_differing_ranks(ProcessGroup& group, const TranslatorSettings& settings) {
  NamedValues mine{{"multihead's version", MULTIHEAD_VERSION}};
  for (const Setting& setting : fixed_settings(settings))
    mine.emplace_back("`" + setting.name + "`", setting.value);
  mine.emplace_back("`share_corpus`", settings.share_corpus ? "true" : "false");
  mine.emplace_back("`shard_optimiser`", settings.shard_optimiser ? "true" : "false");
  mine.emplace_back("`updates`", std::to_string(settings.updates));
  mine.emplace_back("`epochs`", std::to_string(settings.epochs));
  mine.emplace_back("`patience`", std::to_string(settings.patience));
  // Other instructions round otherwise.
  if (settings.reproducible) mine.emplace_back("the kernels' instruction set", dispatch_target());
  check_same(group, mine);
}

void refuse_foreign_folder(const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(folder, code)) return check_can_write_folder(folder);
  if (!fs::is_directory(folder, code))
    throw FileError(fmt::format("{} is a file; `model` names the folder to make", folder.string()));
  check_can_write_file(folder / "training.json");
  if (holds_run(folder)) return;
  if (fs::exists(folder / "config.json", code)) {
    throw UsageError(
        fmt::format("{} holds a model that was not trained there (it has no checkpoints); choose another "
                    "`model`, or begin from it with `init_from`",
                    folder.string()));
  }
  fs::directory_iterator files(folder, code);
  if (code) throw FileError(fmt::format("cannot read {}: {}", folder.string(), code.message()));
  for (const auto& file : files) {
    if (may_be_ours(file)) continue;
    throw FileError(fmt::format("{} holds {}, which no training wrote; name a new folder with `model`",
                                folder.string(), in_quotes(file.path().filename().native())));
  }
}

void refuse_changes(const TranslatorSettings& settings, const TrainingState& saved,
                    std::vector<std::string> clauses) {
  TranslatorSettings usual;
  usual.preset = settings.preset;
  const std::vector<Setting> unknown = fixed_settings(resolved(usual));
  std::vector<Setting> before = saved.settings;
  for (Setting& setting : before)  // older runs wrote "d-key"
    std::replace(setting.name.begin(), setting.name.end(), '-', '_');
  const auto from_run = [&](const TranslatorSettings& now) {
    return differences(before, fixed_settings(resolved(now)), unknown);
  };
  if (const auto kept = kept_settings(settings.model)) {
    if (const auto wrong = from_run(*kept); !wrong.empty()) {
      const fs::path checkpoint = checkpoint_of(settings.model, saved.update);
      throw FormatError(
          fmt::format("{} contradicts the settings of its run: {}; remove {} to go on from the checkpoint "
                      "before it",
                      (checkpoint / "training_state.json").string(), joined(wrong), checkpoint.string()));
    }
  }
  for (std::string& clause : from_run(settings)) clauses.push_back(std::move(clause));
  if (clauses.empty()) return;
  throw UsageError(
      fmt::format("{} holds a run with other settings, at update {}: {}; leave out what differs to go on, or "
                  "name another `model`",
                  settings.model, saved.update, joined(clauses)));
}

void refuse_other_shape(const TranslatorSettings& given, const TranslatorShape& shape) {
  std::vector<std::string> clauses;
  const auto compare = [&](const char* field, const std::optional<int32_t>& wanted, int32_t found) {
    if (wanted && *wanted != found)
      clauses.push_back(fmt::format("`{}` {} but it has {}", field, *wanted, found));
  };
  compare("d_model", given.d_model, shape.d_model);
  compare("d_ff", given.d_ff, shape.encoder_ff);
  compare("encoder_layers", given.encoder_layers, shape.encoder_layers);
  compare("decoder_layers", given.decoder_layers, shape.decoder_layers);
  compare("heads", given.heads, shape.encoder_heads);
  // These have a default, so that only what differs from it was surely asked for.
  const TranslatorSettings usual;
  if (given.norm != usual.norm && given.norm != shape.norm)
    clauses.emplace_back("`norm` pre but it has post");
  if (given.activation != usual.activation && given.activation != shape.activation) {
    clauses.emplace_back("`activation` is another");
  }
  for (std::string& clause : other_heads(given, shape)) clauses.push_back(std::move(clause));
  if (clauses.empty()) return;
  throw UsageError(
      fmt::format("`init_from` {} has another shape: {}", given.init_from, fmt::join(clauses, "; ")));
}

void refuse_own_tokenizer(const ModelFolder& folder, const TranslatorSettings& settings) {
  if (const std::string_view given = settings.pair_texts.given(); !given.empty())
    throw UsageError(fmt::format("`{}` is for the folder's own tokenizer; leave out `tokenizer`", given));
  const Family* const family = family_named(folder.model_type);
  if (family != nullptr && family->write != nullptr) return;
  throw UsageError(
      fmt::format("`tokenizer` {}: the folder of a {} model keeps its own tokenizer; leave out `tokenizer`",
                  settings.tokenizer, folder.model_type));
}

void refuse_other_tokens(const Tokenizer& tokenizer, const EncoderDecoderConfig& config,
                         const TranslatorSettings& settings) {
  const auto clauses = tokenizer_mismatches(
      tokenizer, static_cast<int32_t>(config.embedding.vocabulary),
      {.vocabulary = config.target_vocabulary(), .pad_id = config.pad_id, .eos_id = config.eos_id});
  if (clauses.empty()) return;
  throw UsageError(
      fmt::format("{} does not match `init_from` {}: {}; leave out `tokenizer` to use that model's",
                  settings.tokenizer, settings.init_from, fmt::join(clauses, "; ")));
}

void refuse_too_large(const EncoderDecoderConfig& config) {
  constexpr double kBytes = 4 * sizeof(float);  // weight, gradient, two moments
  constexpr double kGiB = 1 << 30;
  const double needed = least_parameters(config) * kBytes;
  const double there =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= there) return;
  throw UsageError(fmt::format(
      "training a model of this size takes more than {:.0f} GiB of memory, this machine has {:.0f}; "
      "choose a smaller `preset`, `d_model`, `d_ff`, fewer layers or a smaller vocabulary",
      needed / kGiB, there / kGiB));
}

}  // namespace mh
