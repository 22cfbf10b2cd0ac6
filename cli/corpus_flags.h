// What the verbs of `multihead heads` that read a corpus have in common: their flags, the model, the corpus, progress.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/head_changes.h"
#include "cli/progress.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/corpus/observe_heads.h"

namespace mh::cli {

class Verb;

struct CorpusFlags {
  std::string input = {}, target = {}, pairs = {}, conllu = {}, target_conllu = {}, alignment = {};
  HeadChangeFlags changes = {};
};

/// The flags of a verb of `heads`; `takes` has those that not all do.
struct CorpusVerb {
  bool trees = false;      // --target-conllu: which relations there are, on both sides
  bool alignment = false;  // --alignment
  bool pairs = false;      // --input-pair
};
void add_corpus_flags(Verb& verb, CorpusFlags& flags, const CorpusVerb& takes);

/// Throws UsageError on an alignment without translations; target_flag: the other flag that gives these.
void check_alignment(const std::string& alignment, const std::string& target,
                     const std::string& target_conllu, std::string_view target_flag = "--target");
/// Throws as check_alignment() does.
CorpusFiles files_of(const CorpusFlags& flags);
/// Files for a measure that reads its corpus more than once, with the limits that the flags set: sentences from standard input or
/// from a pipe are read here. Throws UsageError on other files that are pipes.
CorpusFiles readable_again(CorpusFiles files);

/// A model and the corpus that the flags name.
class CorpusRun {
 public:
  CorpusRun(ScoredModel model, const CorpusFlags& flags);

  const ModelFolder& folder() const { return model_.folder(); }
  const ScoredModel& model() const { return model_; }
  HeadsCorpus& corpus() { return corpus_; }
  /// Gives the options the changes of heads that were asked for, progress and remarks. REQUIRES: this outlives their use.
  void attach(ObserveHeadsOptions& options);

 private:
  ScoredModel model_;
  ChangedHeads changed_;
  FilesCorpus corpus_;
  Progress progress_{"read", "sentences"};
};

/// The first line of a table: "7 sentences, targets as given".
std::string what_was_read(const CorpusRead& read);

}  // namespace mh::cli
