// Contributions: what each part of a model adds to one number that it gives ("direct logit attribution", Elhage et al. 2021, "A
// mathematical framework for transformer circuits", and Wang et al. 2022, "Interpretability in the wild").
//
// The last states are a sum: the embeddings and what each sublayer added to the residual stream, through norms. With the scales
// that norms multiply by held at those of this run, a number F made of the last states is affine in each of these parts:
//
//   F = sum_i [ x_0(i) g_0(i) + sum_heads z_h(i) W_h^O g_h(i) + sum_layers f_l(i) g_l(i) ] + biases + output
//
// i the positions of the last stack, x_0 its embeddings, z_h what head h gives before its rows W_h^O of W^O, f_l what the
// feed-forward layer of layer l adds, g the gradient of F at each place along the stream alone: not through what sublayers read.
// Layers behind the last states have their factors f(z) / z of activations (tanh, GELU, the soft cap of logits) held, too, and
// vectors their lengths; `output` is what these layers add by themselves: their biases. The parts sum to F.
//
// F is the logit of a word after the text, or in the place of its mask; of a classifier that of a label; of a sentence model the
// cosine of the text's vector with that of another text; or the difference of two of them. In a translator the stack is the
// decoder's: what its encoder did comes in through cross-attention.
//
//   const mh::ContributionReport found = mh::heads_contributions(
//       folder, {.text = "The capital of France is", .answer = "Paris", .wrong = "Rome"});
//   for (const mh::Contribution* part : found.strongest(5)) part->name, part->sum;       // logits
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/base/interval.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/nn/head_name.h"
#include "multihead/nn/sites.h"

namespace mh {

struct ContributionOptions {
  /// Of a causal model, or of a translator's `prefix`: the logit of each token that follows there, all at once, in place of an answer.
  bool every_position = false;
  /// Less the mean of all logits, which no probability depends on. Of words alone.
  bool centred = false;
  /// Of so many heads, the strongest, the part of each token that they read, too, by a second pass; 0: none.
  int64_t sources = 3;
  TextLanguages languages = {};
  Sites* sites = nullptr;  // called in all runs, e.g. SiteValues that mute heads; sequence 0 is the text
  std::function<void(const std::string&)> remark = nullptr;
  std::function<void(int64_t done)> progress = nullptr;  // texts, of several

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Contributions";
    v("every_position", every_position, {},
      {.group = kGroup,
       .help = "Explain the logit of each token of the text, all at once, in place of an answer"});
    v("centred", centred, {}, {.group = kGroup, .help = "Explain logits less the mean of all logits"});
    v("sources", sources, {.low = 0, .high = 1'000'000},
      {.group = kGroup,
       .help = "Of so many heads, the strongest, show the part of each token that they read"});
    languages.visit(v);
  }
};

enum class ContributionKind { kEmbeddings, kHead, kFeedForward, kBiases, kOutput };
inline constexpr EnumNames<ContributionKind> kContributionKindNames = {
    {"embeddings", ContributionKind::kEmbeddings},
    {"head", ContributionKind::kHead},
    {"feed_forward", ContributionKind::kFeedForward},
    {"biases", ContributionKind::kBiases},
    {"output", ContributionKind::kOutput}};

/// One part of F, in the unit of F.
struct Contribution {
  std::string
      name;  // "decoder.embeddings", "decoder.3.self_attention.5", "decoder.3.feed_forward", "decoder.biases", "output"
  ContributionKind kind = ContributionKind::kHead;
  int layer = -1;                     // of heads and feed-forward layers
  std::optional<HeadName> head = {};  // of heads
  double sum = 0;                     // over positions
  std::vector<double> positions =
      {};  // of each position of the last stack; of `output` those of every_position alone
  /// ContributionOptions::sources: of each token that the head reads, of cross-attention the source's. Empty, too, of a head that
  /// does not give the sum of its weights times values: a differential one.
  std::vector<double> sources = {};
};

/// What F is made of.
enum class ContributionScore { kLogit, kLabel, kCosine };
inline constexpr EnumNames<ContributionScore> kContributionScoreNames = {
    {"logit", ContributionScore::kLogit},
    {"label", ContributionScore::kLabel},
    {"cosine", ContributionScore::kCosine}};

struct ContributionReport {
  ContributionScore kind = ContributionScore::kLogit;
  AnswerText asked = {};  // with the answer that was taken: the model's own where none was given
  bool centred = false;
  double score = 0;  // F; of every_position the sum of all
  std::vector<double> scores =
      {};  // every_position: of each position, 0 for the last, behind which nothing stands
  std::vector<Contribution> parts = {};  // in the order of the model
  double magnitude = 0;                  // the sum of the parts' absolute values
  double sum = 0;                        // of all parts

  /// |sum - score| / magnitude: rounding, 1e-4 at most.
  double error() const;
  /// Those of the largest absolute values.
  std::vector<const Contribution*> strongest(size_t count) const;
  /// The labels of the positions of the last stack, and of what an attention reads.
  const std::vector<std::string>& position_labels() const;
  const std::vector<std::string>& source_labels(const Contribution& head) const;
};

/// Of several texts: the mean of each part over them, with its 95 % interval by Student's t.
struct MeanContribution {
  std::string name;
  ContributionKind kind = ContributionKind::kHead;
  int layer = -1;
  std::optional<HeadName> head = {};
  Interval sum = {};
};
struct MeanContributions {
  ContributionScore kind = ContributionScore::kLogit;
  bool centred = false, every_position = false;
  int64_t texts = 0;
  Interval score = {};  // of every_position the mean over a text's positions, as the parts
  std::vector<MeanContribution> parts = {};  // in the order of the model
  double largest_error = 0;                  // of ContributionReport::error()

  std::vector<const MeanContribution*> strongest(size_t count) const;
};

/// Throws UsageError as read_answer_text() does, on every_position of a model that predicts no words one after the other or with
/// an answer, on `centred` of anything but words, and on sites that the model does not have; Error when a part is not finite.
ContributionReport heads_contributions(const ModelFolder& folder, const AnswerQuestion& question,
                                       const ContributionOptions& options = {});
/// Of tokens that are chosen already. Throws UsageError, too, on tokens, a position and answers that the model does not have.
ContributionReport heads_contributions(const ModelFolder& folder, const AnswerText& asked,
                                       const ContributionOptions& options = {});
/// Of a sentence model: the answer is the other text, `wrong` a third one, whose cosine is subtracted.
ContributionReport heads_contributions(const SentenceModel& model, const AnswerQuestion& question,
                                       const ContributionOptions& options = {});
/// Throws UsageError, too, when there is no text; what is wrong with a text names its number, from 1.
MeanContributions heads_contributions(const ModelFolder& folder, std::span<const AnswerQuestion> questions,
                                      const ContributionOptions& options = {});
MeanContributions heads_contributions(const SentenceModel& model, std::span<const AnswerQuestion> questions,
                                      const ContributionOptions& options = {});

}  // namespace mh
