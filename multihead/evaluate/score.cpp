#include "multihead/evaluate/score.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/read_lists.h"
#include "multihead/nn/list_sites.h"

namespace mh {

std::vector<std::vector<float>> score(const LanguageModel& model,
                                      std::span<const std::vector<int32_t>> sources,
                                      std::span<const std::vector<int32_t>> targets,
                                      const ScoreOptions& options) {
  model.facts().require_translator();
  // Without any target only the sources would be read.
  if (targets.empty() && !sources.empty()) {
    throw UsageError(fmt::format("{} sources but no targets; they are translations of each other, one by one",
                                 sources.size()));
  }
  std::vector<std::vector<float>> results(sources.size());
  Tape tape;
  ListSites listed(options.sites);
  Context context{.tape = tape, .sites = listed.sites()};
  VocabularyScratch scratch;
  int64_t sentences_done = 0;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens,
                          .order = BatchOptions::Order::kLongestFirst};
  const TokenLists lists{.sources = sources, .targets = targets};
  read_lists(model, lists, options.sites, plan, [&](const ListBatch& batch) {
    listed.begin({.texts = batch.numbers, .count = std::ssize(sources), .offsets = &batch.offsets});
    tape.clear();
    const TeacherForced& target = batch.target;
    const std::vector<float> all =
        model.log_probabilities(context, batch.source.view(), target.input.view(), target.next, scratch);
    for (size_t s = 0; s < batch.numbers.size(); ++s) {
      const auto sequence = static_cast<int32_t>(s);
      results[static_cast<size_t>(batch.numbers[s])].assign(all.begin() + target.input.ragged.begin(sequence),
                                                            all.begin() + target.input.ragged.end(sequence));
    }
    sentences_done += std::ssize(batch.numbers);
    if (options.progress) options.progress(sentences_done);
  });
  return results;
}

}  // namespace mh
