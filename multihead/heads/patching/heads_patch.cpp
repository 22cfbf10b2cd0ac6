#include "multihead/heads/patching/heads_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/language_codes.h"
#include "multihead/heads/patching/patched_passes.h"
#include "multihead/io/check_option.h"
#include "multihead/nn/attention_place.h"

namespace mh {
namespace {

/// The places that can be patched, in the order of the model: a list for each attention, or each layer's stream.
std::vector<std::vector<PatchPlace>> patch_places(const Model& model, const PatchedPasses& passes,
                                                  const PatchOptions& options) {
  std::vector<std::vector<PatchPlace>> all;
  const auto add = [&](PatchPlace place) {
    if (!options.by_position) return all.back().push_back(std::move(place));
    for (int32_t i = 0; i < passes.positions(place.stack); ++i) {
      place.position = i;
      all.back().push_back(place);
    }
  };
  if (options.part == PatchedPart::kStream) {
    for (const std::string stack : {"encoder", "decoder"}) {
      if (!passes.layers().contains(stack)) continue;
      for (int layer = 0; layer <= passes.layers().at(stack); ++layer) {
        all.emplace_back();
        add({.stack = stack, .layer = layer});
      }
    }
    return all;
  }
  for (const Model::Attention& attention : model.attentions()) {
    all.emplace_back();
    for (int head = 0; head < attention.heads; ++head) {
      add({.stack = std::string(attention.place.stack()),
           .layer = attention.place.layer,
           .attention = attention.name,
           .kind = attention.place.kind,
           .head = head});
    }
  }
  return all;
}

void check_patch_scores(const PatchReport& found) {
  const double difference = found.clean.score() - found.corrupt.score();
  if (std::abs(difference) >= kLeastPatchDifference) return;
  throw UsageError(fmt::format(
      "the clean text scores {:.6f} and the corrupt one {:.6f}: a difference of {:.1e} is too "
      "small to say how much of it is restored; take texts on which the model decides differently",
      found.clean.score(), found.corrupt.score(), difference));
}

void run_patches(const PatchReader& reader, const PatchOptions& options, PatchReport& found) {
  check_settings(options);
  found.part = options.part;
  found.by_position = options.by_position;
  PatchedPasses passes(
      reader, found.texts,
      {.part = options.part, .sites = options.sites, .max_batch_tokens = options.max_batch_tokens});
  found.clean = passes.clean();
  found.corrupt = passes.corrupt();
  check_patch_scores(found);
  const std::vector<std::vector<PatchPlace>> all = patch_places(reader.model(), passes, options);
  int64_t runs = 0;
  for (const std::vector<PatchPlace>& places : all) runs += std::ssize(places);
  for (const std::vector<PatchPlace>& places : all) {
    const std::vector<AnswerScores> scores = passes.patched(places);
    for (size_t i = 0; i < places.size(); ++i) {
      PatchedValue value{.name = passes.name_of(places[i]), .place = places[i], .scores = scores[i]};
      value.restored =
          (scores[i].score() - found.corrupt.score()) / (found.clean.score() - found.corrupt.score());
      if (!std::isfinite(value.restored))
        throw Error(fmt::format("{}: the patched run's score is {}", value.name, scores[i].score()));
      found.values.push_back(std::move(value));
    }
    if (options.progress) options.progress(std::ssize(found.values), runs);
  }
}

}  // namespace

std::vector<const PatchedValue*> PatchReport::strongest(size_t count) const {
  std::vector<const PatchedValue*> all;
  for (const PatchedValue& value : values) all.push_back(&value);
  std::stable_sort(all.begin(), all.end(), [](const PatchedValue* a, const PatchedValue* b) {
    return std::abs(a->restored) > std::abs(b->restored);
  });
  all.resize(std::min(count, all.size()));
  return all;
}

const PatchText& PatchReport::clean_text(const std::string& stack) const {
  if (stack != "decoder") return texts.clean;
  if (!texts.clean_shifted.ids.empty()) return texts.clean_shifted;
  return texts.target.ids.empty() ? texts.clean : texts.target;
}

const PatchText& PatchReport::corrupt_text(const std::string& stack) const {
  if (stack != "decoder") return texts.corrupt;
  if (!texts.corrupt_shifted.ids.empty()) return texts.corrupt_shifted;
  return texts.target.ids.empty() ? texts.corrupt : texts.target;
}

PatchReport heads_patch(const ModelFolder& folder, const PatchQuestion& question,
                        const PatchOptions& options) {
  PatchReport found{.score = folder.labels ? PatchScore::kLogit : PatchScore::kLogProbability,
                    .texts = read_patch_texts(folder, question, options.languages, options.remark)};
  run_patches(*patch_reader(folder, found.texts), options, found);
  return found;
}

PatchReport heads_patch(const SentenceModel& model, const PatchQuestion& question,
                        const PatchOptions& options) {
  language_pair(model.folder, options.languages);  // it has none
  PatchReport found{.score = PatchScore::kCosine, .texts = read_patch_texts(model, question, options.remark)};
  run_patches(*patch_reader(model, question, options.sites), options, found);
  return found;
}

}  // namespace mh
