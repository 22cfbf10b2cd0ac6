#include "cli/convert_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "cli/load_model.h"
#include "cli/stop_signals.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/gguf_requantise.h"
#include "multihead/folders/gguf_split.h"
#include "multihead/folders/save_folder.h"

namespace mh::cli {
namespace {

void check_small_place(const ToSmallWeights& asked) {
  const char* const name = mh::name_of(asked.type, kSmallWeightsNames);
  if (asked.type == SmallWeights::kInt8) {
    if (is_gguf(asked.out))
      throw UsageError(fmt::format(
          "--out {}: --precision int8 makes a folder; name one, or take --precision q8_0 of a .gguf file",
          asked.out));
    return check_new_folder(asked.out);
  }
  if (!is_gguf(asked.model)) {
    throw UsageError(fmt::format(
        "--precision {} makes a .gguf file of a .gguf file, and {} is a folder; take --precision int8", name,
        asked.model));
  }
  if (!is_gguf(asked.out))
    throw UsageError(
        fmt::format("--out {}: --precision {} makes a file; let its name end with .gguf", asked.out, name));
  if (is_there(asked.out))
    throw UsageError(fmt::format("--out {} exists; name a new file, so that no model is lost", asked.out));
  check_can_write_file(asked.out);
}

void write_small(const ToSmallWeights& asked, const ModelFolder& folder) {
  StopSignals::stoppable_loops([&] {
    if (asked.type != SmallWeights::kInt8) {
      const BlockType type = asked.type == SmallWeights::kQ8_0 ? BlockType::kQ8_0 : BlockType::kQ4_0;
      return requantise_gguf(open_gguf_with_parts(asked.model), type, asked.out);
    }
    save_model_folder(asked.out, folder,
                      {.type = asked.rest,
                       .own_format = asked.own_format ? OwnFormat::kAllowed : OwnFormat::kRefused,
                       .matrices = SavedMatrices::kInt8});
  });
}

int64_t bytes_of(const std::vector<StoredAlike>& weights) {
  return std::accumulate(weights.begin(), weights.end(), int64_t{0},
                         [](int64_t sum, const StoredAlike& alike) { return sum + alike.bytes; });
}

}  // namespace

ConvertReport convert_to_small(const ToSmallWeights& asked) {
  check_small_place(asked);
  const ModelFolder before = load_model(asked.model);
  const std::vector<StoredAlike> weights = stored_weights(before);
  if (asked.type == SmallWeights::kInt8 &&
      std::any_of(weights.begin(), weights.end(),
                  [](const StoredAlike& alike) { return alike.type == "I8"; }))
    throw UsageError(fmt::format("{}: its matrices are int8 already", asked.model));
  const ComparedSentences sentences = compared_sentences(before, asked.on);
  write_small(asked, before);
  const ModelFolder after = load_model_folder(asked.out);
  ConvertReport report{
      .model = asked.model,
      .out = asked.out,
      .conversion = fmt::format("matrices as {}", mh::name_of(asked.type, kSmallWeightsNames)),
      .promise = Promise::kRounded,
      .costs = {{"parameters",
                 "parameters",
                 {before.model->parameter_count(), after.model->parameter_count()}}},
      .weights = BeforeAfter<std::vector<StoredAlike>>{weights, stored_weights(after)},
      .compared_on = sentences.what};
  report.costs.push_back(
      {"bytes", "bytes of weights", {bytes_of(report.weights->before), bytes_of(report.weights->after)}});
  report.difference = compare_models(*before.model, *after.model, sentences.sources, sentences.targets);
  if (!asked.on.target.empty()) {
    report.mean_log_probability = {.before = mean_log_probability(before.language_model(), sentences),
                                   .after = mean_log_probability(after.language_model(), sentences)};
  }
  return report;
}

}  // namespace mh::cli
