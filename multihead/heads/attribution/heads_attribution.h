// How much each token that a model reads counts for one thing that it says: eight answers to that question.
//
//   mh::AttributionReport found = mh::heads_attribution(folder, "two dogs run .");          // of the last word's log-probability
//   found.of(mh::AttributionMethod::kRollout)[2]                               // of token 2 of found.tokens
//
// What is explained, F: the log-probability (natural logarithm) of one token; of a classifier the logit of a label; of two texts
// of an encoder, the cosine of their vectors. A is a head's weights [queries, keys], mean_h their mean over the heads of an attention, w the rows of the last
// states that F is made of (weights that sum to 1: one row, or those of a sentence's pooling), I the identity.
//
//   attention            w mean_h A of the last layer; a translator's source by cross-attention, its target by self-attention
//   norm-weighted        the same of ||sum_h A_h(i, j) f_h(x_j)||, f_h the value times the head's rows of W^O, rows divided by
//                        their sums (Kobayashi et al. 2020)
//   rollout              w prod_l (I + mean_h A_l) / 2 (Abnar and Zuidema 2020); in a translator each sublayer is a factor, and
//                        cross-attention goes on with the encoder's product
//   relevance            w R: R = I at first, R += mean_h max(A * dF/dA, 0) R at each layer; of a translator equations 8 to 10
//                        (Chefer et al. 2021, "Generic attention-model explainability")
//   flow                 the largest flow from w to the token through rollout's layers, whose weights are capacities (Abnar and
//                        Zuidema 2020)
//   gradient-x-input     sum_c dF/dx(c) x(c), x what the first layer reads
//   integrated-gradients sum_c (x(c) - b(c)) mean_k dF/dx(c) at b + (k - 1/2) / steps (x - b), b the same text whose tokens are
//                        all replaced (Sundararajan et al. 2017)
//   value-zeroing        w prod_l C_l: C_l(i, j) is 1 - cosine between row i of the layer's output and what it is when token j
//                        has no value in that layer, rows divided by their sums (Mohebbi et al. 2023)
//
// Gradients may be negative: the token lowers F. All others are not; rollout and value zeroing sum to 1, attention and
// norm-weighted too, of a translator on each of its sides.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/batch/batch_tokens.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/text/text_languages.h"

namespace mh {

enum class AttributionMethod {
  kAttention,
  kNormWeighted,
  kRollout,
  kRelevance,
  kFlow,
  kGradientTimesInput,
  kIntegratedGradients,
  kValueZeroing,
};
inline constexpr EnumNames<AttributionMethod> kAttributionMethodNames = {
    {"attention", AttributionMethod::kAttention},
    {"norm-weighted", AttributionMethod::kNormWeighted},
    {"rollout", AttributionMethod::kRollout},
    {"relevance", AttributionMethod::kRelevance},
    {"flow", AttributionMethod::kFlow},
    {"gradient-x-input", AttributionMethod::kGradientTimesInput},
    {"integrated-gradients", AttributionMethod::kIntegratedGradients},
    {"value-zeroing", AttributionMethod::kValueZeroing}};

/// A text of more tokens has no flow here.
inline constexpr int64_t kMostFlowTokens = 40;

struct AttributionOptions {
  /// Empty: all; flow only where the text is short enough.
  std::vector<AttributionMethod> methods = {};
  /// Which token's probability is explained, counted from 0 in the text, of a translator in what it predicts (its end token
  /// last); none: the last one with a letter or a digit (a full stop is certain anyway). Of an encoder it is replaced by the mask token where the
  /// tokenizer has one. Not of two texts.
  std::optional<int> position = {};
  /// Another token in its place, as the vocabulary or as a text has it. Of a causal model without `position`: what comes after
  /// the text.
  std::string target_token = {};
  /// Of a classifier: the label whose logit is explained, by its name or number; empty: the one with the largest logit (of a
  /// classifier of tokens: at `position`).
  std::string label = {};
  /// A second text, which an encoder such as a cross-encoder reads as one sequence with the first; empty: there is none.
  std::string pair = {};
  std::string target = {};  // a translator's translation; empty: its greedy one
  TextLanguages languages = {};
  int32_t steps = 64;               // of integrated gradients
  int64_t max_batch_tokens = 2048;  // that are read at once
  /// Called with one line worth knowing: that the text was cut, which words the tokenizer does not know.
  std::function<void(const std::string&)> remark = nullptr;

  /// All but what is asked: position, label, the pair, target and its token.
  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Attribution";
    v("methods", methods, kAttributionMethodNames,
      {.group = kGroup, .help = "A method, e.g. rollout; without: all", .value = "METHOD"});
    v("steps", steps, {.low = 1, .high = 100'000},
      {.group = kGroup, .help = "Steps of integrated gradients", .rare = true});
    visit_batch_tokens(v, max_batch_tokens);
    languages.visit(v);
  }
};

enum class TokenSide { kSource, kTarget };  // of a translator; all others read a source
inline constexpr EnumNames<TokenSide> kTokenSideNames = {{"source", TokenSide::kSource},
                                                         {"target", TokenSide::kTarget}};

/// A token that the model reads.
struct ReadToken {
  TokenSide side = TokenSide::kSource;
  int32_t id = 0;
  std::string token, label;                     // as in the vocabulary, as people read it
  std::pair<int32_t, int32_t> characters = {};  // [first, second) of its text; {0, 0}: none
  bool of_pair = false;  // of AttributionOptions::pair, and of the special tokens behind it
  /// A special token, or the one that is asked for: never replaced.
  bool kept = false;
};

struct MethodScores {
  AttributionMethod method = AttributionMethod::kAttention;
  std::vector<double> scores = {};  // of each token that is read
};

struct AttributionReport {
  std::vector<ReadToken> tokens = {};  // source tokens, then those of the target before what is explained
  std::string translation = {};
  int position = -1;           // AttributionOptions::position; -1: of two texts, or of a text's label
  std::string label = {};      // whose logit F is; empty: F is no logit
  std::string explained = {};  // the token whose log-probability F is; empty: F is a logit or a cosine
  int32_t explained_id = -1;   // the number of the token or label
  std::string second = {};     // the second text of that cosine
  std::string pair = {};       // AttributionOptions::pair
  double score = 0;            // F
  std::string source_replacement = {}, target_replacement = {};  // what stands for a replaced token
  double replaced_score = 0;  // F where all tokens are replaced but those that are kept
  /// Of integrated gradients: their sum less (F - replaced F), 0 but for the rule of their steps.
  std::optional<double> completeness_error = {};
  std::vector<MethodScores> methods = {};

  /// Throws UsageError when the method was not asked for.
  const std::vector<double>& of(AttributionMethod method) const;
};

/// Throws UsageError on a text without tokens, a position or token that is not there, an encoder without a head for words that is no classifier (give two texts), a label that is not there or of a model that is no classifier, a text too long for a
/// flow that was asked for, on a pair that the model does not read, and on differential heads where norms are asked for; Error on what is not finite.
AttributionReport heads_attribution(const ModelFolder& folder, const std::string& text,
                                    const AttributionOptions& options = {});
/// Of the cosine between the vectors of two texts. Throws UsageError, too, on a translator, and on a position, a token or a target.
AttributionReport heads_attribution(const SentenceModel& model, const std::string& text,
                                    const std::string& second, const AttributionOptions& options = {});

}  // namespace mh
