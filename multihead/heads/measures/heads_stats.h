// What every head does on a corpus: `multihead heads stats`.
//
//   mh::TextCorpus corpus(text);
//   for (const mh::HeadStats& head : mh::heads_stats(folder, corpus).heads) ... head.figures.entropy ... head.role() ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/head_roles.h"
#include "multihead/heads/measures/head_statistics.h"
#include "multihead/heads/measures/induction.h"

namespace mh {

/// What a head is for, by the limits of the enumerators: the first that fits.
enum class HeadRole {
  kPreviousToken,  // at least 90 % of the queries read most the key at -1 (Voita et al. 2019: positional)
  kNextToken,      // likewise +1
  kSameToken,      // likewise 0
  kOtherOffset,    // likewise another offset
  kInduction,      // HeadStats::induction of at least 1/2
  kRareWord,       // at least half of the queries read most the sentence's rarest word
  kFirstToken,     // at least half of the weight is on the first token: a sink
  kSeparator,      // at least half of the weight is on other special tokens
};
/// "previous token", "next token", "same token", "fixed offset", "induction", "rare word", "first token", "separator".
std::string_view name_of(HeadRole role);

struct HeadStats {
  HeadFigures figures = {};
  HeadRoles roles = {};
  std::optional<InductionScore> repeated = std::nullopt;  // on repeated random tokens; of causal models

  std::optional<HeadRole> role() const;
};

struct StatsReport {
  CorpusRead read = {};
  std::vector<HeadStats> heads = {};
};

/// The corpus is read twice: its words are counted first. Throws as observe_heads() does.
StatsReport heads_stats(const ModelFolder& folder, HeadsCorpus& corpus,
                        const ObserveHeadsOptions& options = {});

}  // namespace mh
