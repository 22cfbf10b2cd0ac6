// Retrieval heads: which heads fetch a fact from far back in a long text. A needle, a sentence with a fact, is put into a long text
// (the filler); a question follows at its end, and the model reads or writes the answer, which stands in the needle:
//
//   filler ... needle ... filler  question  answer
//
// A head copies at a step when the token that comes is a token w of the answer, and the key with the head's largest weight is w in the
// needle. Over the steps of one text
//
//   score(head)  = distinct tokens of the answer that the head copies / distinct tokens of the answer                 0 to 1
//   weight(head) = the mean over the steps of the weight that the head gives to the needle's places of the token that comes
//
// and over texts the mean: of a needle over all lengths and depths, then over needles, with a 95 % interval by Student's t over needles,
// since texts with one needle are not independent. Wu, Wang, Xiao, Peng and Fu 2024 ("Retrieval Head Mechanistically Explains Long-Context
// Factuality"); there the tokens are those that the model writes (AnswerDecoding::kGreedy). Here the answer itself is read unless
// told otherwise (kForced), so that a model that answers wrongly has scores, too.
//
// Which heads need the whole text? A head is limited to the first `sinks` keys and the last `window` ones, its own among them:
//
//   fall(head)      = log p(answer | text)  -  the same with the head limited                     nats, summed over the answer's tokens
//   loss_rise(head) = the loss of ordinary text (the filler) with the head limited  -  the loss without    nats a token
//
// after Xiao et al. 2024 ("DuoAttention"), who learn which heads can be limited so; nothing is learned here. LimitedRows says which rows
// of the text the limit holds for.
//
//   const mh::RetrievalReport found = mh::heads_retrieval(folder, mh::RetrievalTexts(), {.lengths = {256, 1021}});
//   for (const mh::RetrievalHead& head : found.heads) head.head.name(), head.score.mean, head.score.half;
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/base/interval.h"
#include "multihead/nn/head_name.h"

namespace mh {

class Sites;
struct ModelFolder;

struct RetrievalNeedle {
  std::string sentence;  // with the answer in it
  std::string question;  // after which the answer comes as it stands in the sentence
  std::string answer;
};

/// One of each line: a sentence, a question and its answer with tabs between them; empty lines are left out. Throws FormatError,
/// naming the line of `name`, on other fields.
std::vector<RetrievalNeedle> needles_of(std::span<const std::string> lines, const std::string& name);

/// What is read. By default the needles and the filler that come with the library.
struct RetrievalTexts {
  RetrievalTexts();
  std::vector<RetrievalNeedle> needles;
  std::string filler;  // repeated where a text needs more
};

/// The answer's tokens after a question.
enum class AnswerDecoding {
  kForced,  // those of the answer, whatever the model would say
  kGreedy,  // the most probable ones, as many as the answer has
};
inline constexpr EnumNames<AnswerDecoding> kAnswerDecodingNames = {{"forced", AnswerDecoding::kForced},
                                                                   {"greedy", AnswerDecoding::kGreedy}};

/// For which rows a head is limited while answers are asked for.
enum class LimitedRows {
  kNone,    // no head is limited
  kAnswer,  // those of the question and the answer, which follow the text: what fetches straight from far back. Cheap: the text is
            // read once for all heads
  kAll,  // all: also what the head did for the rows of the text itself. The text is read again for each head
};
inline constexpr EnumNames<LimitedRows> kLimitedRowsNames = {
    {"none", LimitedRows::kNone}, {"answer", LimitedRows::kAnswer}, {"all", LimitedRows::kAll}};

struct RetrievalOptions {
  std::vector<int32_t> lengths = {
      512};  // tokens of a text, special tokens and the question among them, without the answer
  /// Where the needle stands: 0 before the filler, 1 behind it; between, after the last end of a sentence before that share of the filler.
  std::vector<double> depths = {0, 0.25, 0.5, 0.75, 1};
  AnswerDecoding answers = AnswerDecoding::kForced;
  LimitedRows limit = LimitedRows::kNone;
  int32_t sinks = 4, window = 64;
  bool by_group = false;                // heads that share keys are limited together
  std::vector<HeadPattern> heads = {};  // that are limited; none: all
  /// Of the filler, as ordinary text whose loss is measured, at most as many as it has; 0: it is not.
  int32_t text_tokens = 512;
  Sites* sites = nullptr;  // called in all passes, e.g. SiteValues that mute heads
  std::function<void(int64_t done, int64_t all)> progress = nullptr;  // passes

  /// All but lengths and depths.
  template <class V>
  void visit(V& v) {
    constexpr const char *kGroup = "Retrieval", *kLimits = "Limited heads";
    v("answers", answers, kAnswerDecodingNames,
      {.group = kGroup,
       .help = "Read the answer whatever the model would say, or what it says, as Wu et al. do"});
    v("limit", limit, kLimitedRowsNames,
      {.group = kLimits,
       .help = "Also measure what is lost with each head limited to the first keys and a window: in the rows "
               "of the question and the answer, or in all"});
    v("sinks", sinks, {.low = 0},
      {.group = kLimits, .help = "How many of the first keys a limited head sees"});
    v("window", window, {.low = 1},
      {.group = kLimits, .help = "How many of the last keys it sees, its own among them"});
    v("by_group", by_group, {}, {.group = kLimits, .help = "Limit heads that share keys together"});
    v("heads", heads, {},
      {.group = kLimits, .help = "Limit this head, or those of a pattern, instead of all", .value = "HEAD"});
    v("text_tokens", text_tokens, {.low = 0},
      {.group = kLimits,
       .help = "Tokens of the filler whose loss is measured with each head limited; 0: it is not"});
  }
};

/// One text.
struct RetrievalTrial {
  size_t needle = 0;  // number of the needle
  int32_t length = 0;
  double depth = 0;
  int32_t place = 0;           // the position of the needle's first token
  double log_probability = 0;  // of the answer, summed over its tokens
  /// Whether the model says it: each token is the most probable one after those before it.
  bool exact = false;
};

struct RetrievalHead {
  HeadName head;
  Interval score, weight;
  std::vector<double> by_place = {};  // the score at each of RetrievalReport::places(), over needles
};

/// Of the trials of one length and depth.
struct RetrievalPlace {
  int32_t length = 0;
  double depth = 0;
  double exact = 0, log_probability = 0;  // as RetrievalReport::exact() and log_probability()
};

/// What is lost while heads are limited, one or those of a group.
struct RetrievalNeed {
  std::vector<HeadName> heads;
  Interval fall;                           // over needles
  std::optional<Interval> loss_rise = {};  // over 20 stretches of the text
};

/// A needle as the model reads it.
struct NeedleTokens {
  RetrievalNeedle text;
  std::vector<std::string> answer = {};  // tokens, as people read them
  int32_t tokens = 0;                    // of the sentence
};

struct RetrievalReport {
  std::vector<NeedleTokens> needles = {};
  std::vector<RetrievalTrial> trials = {};  // by length, depth, needle
  std::vector<RetrievalHead> heads = {};    // all, in the order of the model
  std::vector<RetrievalNeed> needs = {};    // in that order, too
  std::optional<double> text_loss = {};     // of ordinary text, nats a token; none: it was not measured

  /// Each length and depth, in the order of the trials.
  std::vector<RetrievalPlace> places() const;
  /// Of the trials of one length and depth, or of all: the share that the model says, and the mean log p.
  double exact(std::optional<int32_t> length = {}, std::optional<double> depth = {}) const;
  double log_probability(std::optional<int32_t> length = {}, std::optional<double> depth = {}) const;
};

/// Of a causal model. Texts are read in blocks of rows over a key/value cache, and weights are looked at in the rows that predict
/// the answer alone, so that the memory grows with the length and not with its square. Throws UsageError on a model of another
/// kind, on no needles, lengths, depths or filler, on an answer that does not stand in its needle, in words or, as it comes after the question, in
/// tokens, on a length that has no room for a needle and its question or that the model has no positions for, on options that
/// cannot be, and on sites or heads that the model does not have; Error when something is not finite.
RetrievalReport heads_retrieval(const ModelFolder& folder, const RetrievalTexts& texts,
                                const RetrievalOptions& options = {});

}  // namespace mh
