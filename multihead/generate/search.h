// The options of a search, and the hypotheses that it finds. beam_search.h searches; translate.h translates
// many sentences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "multihead/generate/logits_filter_options.h"
#include "multihead/io/config.h"

namespace mh {

/// A hypothesis of L tokens (its end token counted) and log-probability P has the score P / factor(L).
struct LengthPenalty {
  enum class Form {
    kDivide,  // factor = L^alpha: as CTranslate2 and Marian (--normalize)
    kGnmt,    // factor = ((5 + L) / 6)^alpha: Wu et al. 2016, eq. 14
  };
  Form form = Form::kDivide;
  /// 0: no penalty, the score is the log-probability; 1: the mean over the tokens. Nothing: as the model's folder says for
  /// kDivide (GenerationConfig::complete), else 1.
  std::optional<double> alpha = std::nullopt;

  static constexpr double kLeast = -100, kMost = 100;  // of alpha

  double factor(int32_t length) const;

  template <class V>
  void visit(V& v, const char* group) {
    v("length_penalty", alpha, {.low = kLeast, .high = kMost},
      {.group = group,
       .help = "Exponent of the length penalty of a beam search; 0: none",
       .otherwise = "as the model says, else 1"});
    v("length_penalty_form", form, {{"divide", Form::kDivide}, {"gnmt", Form::kGnmt}},
      {.group = group, .help = "divide: score / length^a; gnmt: score / ((5 + length) / 6)^a", .rare = true});
  }
};

/// The largest beam. Each row is asked for one candidate more than this, since the end token may be among
/// them.
constexpr int32_t kLargestBeam = 255;

/// When a beam search ends before the longest length, by the words of transformers' early_stopping.
enum class EarlyStopping {
  kTrue,   // when beam_size hypotheses have ended
  kFalse,  // when so many have, and the best growing one has at its present length no better score than the worst of them
  kNever,  // the same at its most favourable length: the longest where the length penalty is above 0
};

inline constexpr EnumNames<EarlyStopping> kEarlyStoppingNames = {
    {"true", EarlyStopping::kTrue}, {"false", EarlyStopping::kFalse}, {"never", EarlyStopping::kNever}};

/// A setting of beam searches.
template <class V>
void visit_early_stopping(V& v, std::optional<EarlyStopping>& early_stopping, const char* group) {
  v("early_stopping", early_stopping, kEarlyStoppingNames,
    {.group = group,
     .help =
         "When a beam search ends: true: once as many texts have ended as the beam has; false: once, too, "
         "no other one scores better as it stands; never: once none can",
     .otherwise = "as the model says",
     .rare = true});
}

/// A length or a size that is nothing is the one that the model's folder says (GenerationConfig::complete), else the usual one
/// below.
struct SearchOptions {
  std::optional<int32_t> beam_size = std::nullopt;  // hypotheses that grow side by side; 1 is greedy search
  int32_t n_best = 1;  // hypotheses to return for each sentence, at most beam_size
  LengthPenalty length_penalty = {};
  /// Nothing: as the model's folder says, else kTrue. A greedy search ends with its first end token.
  std::optional<EarlyStopping> early_stopping = std::nullopt;
  /// The end token may not come before this many tokens. transformers' min_length counts the start token besides.
  std::optional<int32_t> min_length = std::nullopt;
  /// Tokens at most, never more than the model's max_positions. transformers' max_length counts the start token besides.
  std::optional<int32_t> max_length = std::nullopt;
  /// When above 0, a hypothesis has at most this many times the source's tokens (rounded up, and at least
  /// min_length and 1), if that is less than max_length. So a model that has learned nothing does not go on
  /// until max_length.
  double max_length_factor = 0;
  /// No hypothesis has a sequence of this many tokens twice; 0: any may. The decoder's start token counts, as does the prompt of
  /// a causal model, as in transformers. Nothing: as the model's folder says (GenerationConfig::complete), else 0.
  std::optional<int32_t> no_repeat_ngram = std::nullopt;
  std::vector<int32_t> end_tokens = {};  // besides the model's own
  /// Tokens that are never generated, besides the padding token and the decoder's start token of a
  /// translator. End tokens are always allowed, even if they are listed.
  std::vector<int32_t> suppressed = {};
  /// The first token of each translation, which is then no choice: its log-probability counts as 0, as in transformers. A prefix
  /// must begin with it.
  std::optional<int32_t> forced_first = std::nullopt;
  /// The last token of a hypothesis that reaches the longest length, whose log-probability counts as 0, too.
  std::optional<int32_t> forced_last = std::nullopt;

  static constexpr int32_t kUsualBeam = 5, kUsualShortest = 0, kUsualLongest = 256;
  int32_t beam() const { return beam_size.value_or(kUsualBeam); }
  int32_t shortest() const { return min_length.value_or(kUsualShortest); }
  int32_t longest() const { return max_length.value_or(kUsualLongest); }

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Search";
    v("beam_size", beam_size, {.low = 1, .high = kLargestBeam},
      {.group = kGroup,
       .help = "Hypotheses kept at each step of the beam search; 1: greedy search",
       .otherwise = "as the model says, else 5"});
    v("n_best", n_best, {.low = 1, .high = kLargestBeam},
      {.group = kGroup, .help = "Best translations of each line that are kept"});
    length_penalty.visit(v, kGroup);
    visit_early_stopping(v, early_stopping, kGroup);
    v("min_length", min_length, {.low = 0},
      {.group = kGroup,
       .help = "Tokens in the shortest translation",
       .otherwise = "as the model says, else 0",
       .rare = true});
    v("max_length", max_length, {.low = 1},
      {.group = kGroup, .help = "Most tokens of a translation", .otherwise = "as the model says, else 256"});
    v("max_length_factor", max_length_factor, {.low = 0},
      {.group = kGroup,
       .help = "Longest translation as a multiple of the source's tokens; 0: no such limit",
       .rare = true});
    visit_no_repeat_ngram(v, no_repeat_ngram, kGroup);
  }
};

/// Throws UsageError on options that are out of range or contradict each other.
void check_search(const SearchOptions& options);

/// Target token `target` is aligned to source token `source`; both count from 0.
struct AlignmentPoint {
  int32_t source = 0;
  int32_t target = 0;
  bool operator==(const AlignmentPoint&) const = default;
};

/// Which row of weights stands for target token t: that of the query that predicts it, or of the next one, which has just read it.
enum class AlignedQuery { kPredicts, kReads };
inline constexpr EnumNames<AlignedQuery> kAlignedQueryNames = {{"predicts", AlignedQuery::kPredicts},
                                                               {"reads", AlignedQuery::kReads}};

/// A head of a decoder's cross-attention; both numbers count from 0.
struct AligningHead {
  int32_t layer = 0, head = 0;
  bool operator==(const AligningHead&) const = default;
};

/// Heads whose mean weights align.
struct AligningHeads {
  std::vector<AligningHead> heads = {};
  AlignedQuery query = AlignedQuery::kPredicts;
  bool operator==(const AligningHeads&) const = default;
};

struct Hypothesis {
  std::vector<int32_t> tokens = {};  // without the end token
  bool ended = true;           // by its end token; false: it stopped, or was cut off at the longest length
  bool stopped = false;        // by the stop rule of the search (beam_search.h), with its last token
  double log_probability = 0;  // natural logarithm: the sum over all tokens and, if it ended, the end token
  std::vector<float> log_probabilities = {};  // of each token and, if it ended, the end token
  double score = 0;  // log_probability / length_penalty.factor(tokens, and 1 when it ended)
  std::vector<AlignmentPoint> alignment = {};  // when asked for (align.h), by target token
};

}  // namespace mh
