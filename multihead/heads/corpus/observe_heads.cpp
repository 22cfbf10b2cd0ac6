#include "multihead/heads/corpus/observe_heads.h"

#include <fmt/format.h>

#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/corpus/corpus_reader.h"

namespace mh {

CorpusRead read_blocks(const ModelFolder& folder, HeadsCorpus& corpus, const ObserveHeadsOptions& options,
                       const OnBlock& on_block) {
  CorpusReader reader(folder, corpus,
                      {.words = options.words,
                       .sites = options.observe.sites,
                       .languages = options.languages,
                       .remark = options.remark});
  CorpusRead read;
  int64_t left_out = 0;
  std::vector<int64_t> numbers;
  while (const auto block = reader.next()) {
    ObserveOptions observe = options.observe;
    observe.source_types = block->source.types;
    observe.numbers = numbers = block->numbers();
    if (options.observe.progress)
      observe.progress = [&](int64_t done) { options.observe.progress(block->first + done); };
    on_block(*block, observe);
    left_out += block->text.lines_left_out;
    read = {block->first + block->sentences(), reader.targets_read()};
  }
  if (read.sentences == 0) throw FormatError(corpus.name() + " is empty; give a sentence a line");
  if (left_out > 0 && options.remark) {
    options.remark(
        fmt::format("{} of multi-word tokens and empty nodes left out; the words of the trees stand for them",
                    left_out == 1 ? std::string("1 line") : fmt::format("{} lines", left_out)));
  }
  return read;
}

CorpusRead observe_heads(const ModelFolder& folder, HeadsCorpus& corpus,
                         std::span<CorpusObserver* const> observers, const ObserveHeadsOptions& options) {
  const Model& model = options.model != nullptr ? *options.model : *folder.model;
  return read_blocks(folder, corpus, options, [&](const CorpusBlock& block, const ObserveOptions& observe) {
    for (CorpusObserver* observer : observers) observer->begin(block);
    observe_corpus(model, block.source.ids, block.target.ids, observers, observe);
  });
}

}  // namespace mh
