// How much each head matters on a corpus, ranked: `multihead heads importance`.
//
//   const mh::ScoredModel model = mh::load_scored_model("demo");
//   mh::TextCorpus corpus(text);
//   const mh::ImportanceReport report = mh::heads_importance(model, corpus, {.read = {.max_batch_tokens = 2048}});
//   for (const mh::HeadImportance& head : report.heads) ... head.name.attention, head.name.head, head.importance.mean ...
//
// With s the score of a text (heads/importance/scored_texts.h), g_h the gate of a head and E the mean over texts:
//
//   gradient    E |ds / dg_h| at gates of 1                         Michel et al. 2019, section 4.1
//   ablation    E [s - s without head h]                            their section 3.2, by text
//   alone       E [s - s without the attention's other heads]       their section 3.3: the least is the best head
//
// in nats, or for ScoreKind::kVectors in cosine. A gradient says how fast the score changes at first, an ablation how far it
// has moved where the head is gone; neither says what a head does, nor what two heads are worth together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/base/interval.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/importance/head_ablation.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/nn/head_name.h"

namespace mh {

enum class ImportanceMeasure { kGradient, kAblation, kAlone };
inline constexpr EnumNames<ImportanceMeasure> kImportanceMeasureNames = {
    {"gradient", ImportanceMeasure::kGradient},
    {"ablation", ImportanceMeasure::kAblation},
    {"alone", ImportanceMeasure::kAlone}};

struct ImportanceOptions {
  ImportanceMeasure measure = ImportanceMeasure::kGradient;
  AblatedTo to = AblatedTo::kZero;  // of ablations
  /// Of gradients: divide the importance of each attention's heads by sqrt(sum of their squares), as Michel et al. do.
  bool normalised = false;
  /// Rank the heads of each attention among themselves, attention by attention; kAlone always does.
  bool within_attentions = false;
  std::vector<HeadPattern> heads = {};  // none: all
  ScoredTextsOptions texts = {};

  template <class V>
  void visit(V& v) {
    v("by", measure, kImportanceMeasureNames,
      {.group = kImportanceGroup,
       .help = "gradient: absolute derivative of the score by a factor on the head's output (fast); "
               "ablation: what the score loses without the head; alone: what it loses without all other "
               "heads of the attention, where least is best"});
    v("to", to, kAblatedToNames,
      {.group = kImportanceGroup, .help = "What a head's output becomes when it is left out"});
    v("heads", heads, {},
      {.group = kImportanceGroup, .help = "Rank these heads only, e.g. 'encoder.*'", .value = "HEAD"});
    v("normalised", normalised, {},
      {.group = kImportanceGroup,
       .help = "Divide each importance by the L2 norm of those of its attention's heads"});
    v("layer_by_layer", within_attentions, {},
      {.group = kImportanceGroup,
       .help = "Rank heads within each attention instead of over the whole model"});
    texts.visit(v);
  }
};

struct HeadImportance {
  HeadName name = {};
  /// The mean over texts with its 95 % interval (Student's t), infinite for one text.
  Interval importance = {};
  int rank = 0;  // from 1, among all heads or those of its attention
};

struct ImportanceReport {
  CorpusRead read = {};
  ScoreKind kind = ScoreKind::kVectors;
  int64_t predictions = 0;  // tokens whose probabilities the scores add up
  double score = 0;         // E s of the whole model
  ImportanceMeasure measure = ImportanceMeasure::kGradient;
  AblatedTo to = AblatedTo::kZero;
  bool normalised = false, within_attentions = false;
  std::vector<HeadImportance> heads = {};  // the most important first; ties in the order of the model
};

/// Reads the corpus from where it is to its end; the ids of its tokens stay in memory. Throws UsageError, listing what exists, on
/// heads that the model does not have, on `normalised` with ablations or with a choice of heads, and on what read_scored_texts()
/// and gate_gradients() refuse; Error when a score or a gradient is not finite.
ImportanceReport heads_importance(const ScoredModel& model, HeadsCorpus& corpus,
                                  const ImportanceOptions& options = {});
/// The same of texts that were read.
ImportanceReport heads_importance(const ScoredModel& model, const ScoredTexts& texts,
                                  const ImportanceOptions& options = {});

}  // namespace mh
