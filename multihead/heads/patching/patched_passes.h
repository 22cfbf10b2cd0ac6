// PatchedPasses: runs of a corrupt text with values of the clean text's run put in. What stands below the value's layer is the
// corrupt run's own and is not computed again: a pass begins at that layer (LayerStart, nn/context.h). Runs of one layer that
// differ in the head or the position are sequences of one batch.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/heads/patching/patch_reader.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/heads/sites/stack_streams.h"
#include "multihead/tensor/tensor.h"

namespace mh {

class PatchedPasses {
 public:
  struct Options {
    PatchedPart part = PatchedPart::kHeads;
    Sites* sites = nullptr;  // called in all runs before values are kept or put in
    int64_t max_batch_tokens = 2048;
  };
  /// Runs the clean and the corrupt text. REQUIRES: reader, texts and sites outlive this. Throws UsageError on sites that the
  /// model does not have.
  PatchedPasses(const PatchReader& reader, const PatchTexts& texts, const Options& options);

  const AnswerScores& clean() const { return clean_score_; }
  const AnswerScores& corrupt() const { return corrupt_score_; }
  /// The layers of each stack of the model.
  const std::map<std::string, int>& layers() const { return streams_.layers(); }
  /// "decoder.3.self_attention.5"; of the stream "decoder.3.input".
  std::string name_of(const PatchPlace& place) const;
  /// Positions that a stack reads.
  int32_t positions(const std::string& stack) const;
  /// The scores of the corrupt run with the clean value at one place, for each of these places: all of one attention, or of
  /// the stream before one layer.
  std::vector<AnswerScores> patched(std::span<const PatchPlace> places);

 private:
  std::vector<AnswerScores> patched_batch(std::span<const PatchPlace> places);
  /// The scores of so many copies of a text; at sites each is text 0 of a list of one. then: called after the caller's sites.
  std::vector<AnswerScores> run(const PatchText& text, int64_t copies, Sites& then,
                                std::span<const LayerStart> starts = {});
  /// Puts the clean values at the sites of heads or of weights.
  void put_part(std::span<const PatchPlace> places, SiteValues& put) const;
  struct Columns {
    int64_t begin = 0, end = 0;
  };
  /// The corrupt run's value at a site for each place, one below the other; in these columns of the rows that the place means
  /// the clean run's.
  template <class ColumnsOf>
  Tensor mixed(const std::string& site, std::span<const PatchPlace> places,
               const ColumnsOf& columns_of) const;

  const PatchReader& reader_;
  const PatchTexts& texts_;
  Options options_;
  StackStreams streams_;
  std::map<std::string, int64_t> head_columns_;  // of the site of heads of an attention
  SiteValues clean_, corrupt_;
  AnswerScores clean_score_, corrupt_score_;
  Tape tape_;
};

}  // namespace mh
