#include "multihead/recipes/training_refusals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/models/model_folder.h"
#include "multihead/models/weights_file.h"
#include "multihead/recipes/translator_heads.h"

namespace mh {

void refuse_foreign_folder(const std::filesystem::path& folder) {
  std::error_code code;
  if (std::filesystem::exists(folder, code) && !std::filesystem::is_directory(folder, code)) {
    throw FileError(fmt::format("{} is a file; `model` names the folder to make", folder.string()));
  }
  if (std::filesystem::exists(folder / "config.json", code) &&
      !std::filesystem::exists(folder / "checkpoints", code)) {
    throw UsageError(
        fmt::format("{} holds a model that was not trained there (it has no checkpoints); choose another "
                    "`model`, or begin from it with `init_from`",
                    folder.string()));
  }
}

void refuse_other_shape(const TranslatorSettings& given, const EncoderDecoderConfig& config) {
  std::vector<std::string> clauses;
  const auto compare = [&](const char* field, const std::optional<int32_t>& wanted, int32_t found) {
    if (wanted && *wanted != found)
      clauses.push_back(fmt::format("`{}` {} but it has {}", field, *wanted, found));
  };
  compare("d_model", given.d_model, config.d_model);
  compare("d_ff", given.d_ff, config.encoder_ff);
  compare("encoder_layers", given.encoder_layers, config.encoder_layers);
  compare("decoder_layers", given.decoder_layers, config.decoder_layers);
  compare("heads", given.heads, config.encoder_heads);
  // These have a default, so that only what differs from it was surely asked for.
  const TranslatorSettings usual;
  if (given.norm != usual.norm && given.norm != config.norm)
    clauses.emplace_back("`norm` pre but it has post");
  if (given.activation != usual.activation && given.activation != config.activation) {
    clauses.emplace_back("`activation` is another");
  }
  for (std::string& clause : other_heads(given, config)) clauses.push_back(std::move(clause));
  if (clauses.empty()) return;
  throw UsageError(
      fmt::format("`init_from` {} has another shape: {}", given.init_from, fmt::join(clauses, "; ")));
}

void refuse_other_tokens(const Tokenizer& tokenizer, const EncoderDecoderConfig& config,
                         const TranslatorSettings& settings) {
  const auto clauses = tokenizer_mismatches(
      tokenizer, config.vocabulary_size,
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
