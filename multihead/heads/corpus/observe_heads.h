// Shows the weights of every attention on a corpus to observers, block by block: only what the observers add up is kept, and
// memory does not grow with the corpus.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct ObserveHeadsOptions {
  ObserveOptions observe = {};   // source_types are the corpus's own
  bool words = false;            // CorpusReader::Options::words
  TextLanguages languages = {};  // of the corpus
  const Model* model = nullptr;  // run this one, of the folder's shape, instead of the folder's
  /// Called with one line worth knowing: how many lines were cut, which words the tokenizer does not know.
  std::function<void(const std::string&)> remark = nullptr;

  /// The settings of every verb that reads a corpus, and all those of `heads stats` and `heads alignment`.
  template <class V>
  void visit(V& v) {
    observe.visit(v);
    languages.visit(v);
  }
};

/// What was read.
struct CorpusRead {
  int64_t sentences = 0;
  TargetsRead targets = TargetsRead::kNone;
};

/// What is done with a block; the options of observe_corpus() are those of its sentences.
using OnBlock = std::function<void(const CorpusBlock& block, const ObserveOptions& options)>;

/// Reads the corpus from where it is to its end, block by block. Lines without text are left out. Throws as CorpusReader does, and
/// FormatError when there is no line with text.
CorpusRead read_blocks(const ModelFolder& folder, HeadsCorpus& corpus, const ObserveHeadsOptions& options,
                       const OnBlock& on_block);

/// Shows observers the weights of all blocks. Throws as read_blocks() and observe_corpus() do.
CorpusRead observe_heads(const ModelFolder& folder, HeadsCorpus& corpus,
                         std::span<CorpusObserver* const> observers, const ObserveHeadsOptions& options = {});

}  // namespace mh
