// Observation: what a model has inside while it reads one text: its tokens with their places in the text, the weights of
// its heads, and the values at any sites (docs/sites.md). Every kind of model can be observed.
//
//   const mh::Observation seen = mh::observe_text(folder, "two dogs run .");   // the weights of all heads
//   seen.weights({"encoder.1.self_attention", 2});                             // [queries, keys]
//   mh::observe_text(folder, text, {}, {.keep = {"*.states", "*.logits"}}).value("decoder.logits");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/head_name.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// What a translator's decoder reads. Other models have no decoder that reads another text.
enum class TargetsRead { kNone, kGiven, kGreedy };

/// The tokens of a text as the model reads them. The lists have an entry for each token.
struct ObservedTokens {
  std::vector<int32_t> ids;
  std::vector<std::string> tokens;  // as in the vocabulary
  std::vector<std::string> labels;  // as people read them (Tokenizer::shown())
  /// Characters (code points) [first, second) of the text; {0, 0} for special tokens.
  std::vector<std::pair<int32_t, int32_t>> offsets;
  std::vector<int32_t> types = {};    // of an encoder that reads pairs of texts (batch/batch.h); empty: all 0
  std::optional<size_t> second = {};  // of a pair: which token the second text begins at
};

struct Observation {
  ObservedTokens source;     // the keys of encoder and cross-attention, a translator's end token last
  ObservedTokens target;     // what the decoder reads; a translator's start token first
  ObservedTokens predicted;  // what a translator's queries predict: the end token last
  std::string translation;
  TargetsRead targets = TargetsRead::kNone;
  std::vector<Model::Attention> attentions;  // of the model, in order
  SiteValues values;

  /// The value at a site. Throws UsageError when it was not kept.
  const Tensor& value(std::string_view site) const { return values.value(site); }
  /// The weights of one head, [queries, keys]. Throws UsageError on a head that the model does not have, and when its
  /// weights were not kept.
  ConstMatrixView weights(const HeadName& head) const;
  /// Where an attention stands. Throws UsageError on one that the model does not have.
  AttentionPlace place(std::string_view attention) const;
  /// Labels of an attention's queries and keys.
  const std::vector<std::string>& query_labels(AttentionKind kind) const;
  const std::vector<std::string>& key_labels(AttentionKind kind) const;
};

/// What a picture of such an attention shows: "each source token attends to source tokens".
const char* what_attends(AttentionKind kind);
/// The site of a head's weights: "encoder.1.self_attention.weights.2".
std::string weights_site(const HeadName& head);

struct ObserveTextOptions {
  /// Names or patterns of the sites whose values are kept.
  std::vector<std::string> keep = {"*.weights.*"};
  /// Reads the text, and makes a translation where there is none, but runs no pass that shows the sites: nothing is kept.
  bool tokens_alone = false;
  Sites* sites = nullptr;  // called before values are kept, e.g. SiteValues that mute heads
  /// For `sites`: which text of a list this is, where a caller observes one after the other; none: it is alone.
  std::optional<int64_t> number = std::nullopt;
  /// Called with one line worth knowing: that the text was cut, which words the tokenizer does not know.
  std::function<void(const std::string&)> remark = nullptr;
  /// A second text, which is one sequence with the source; only of encoders that read pairs.
  std::optional<std::string> pair = std::nullopt;
  TextLanguages languages = {};
};

/// An empty `target` of a translator is made by greedy search. A text of more tokens than the model reads is
/// cut. Throws UsageError on a target for another model, on a pair for a model that does not read it, on languages as language_pair()
/// (folders/language_codes.h) does, and on sites or heads that the model does not have.
Observation observe_text(const ModelFolder& folder, const std::string& source, const std::string& target = {},
                         const ObserveTextOptions& options = {});
/// The same of token ids in place of a text, as the model reads them: of a translator with the end token. Their offsets are {0, 0};
/// where the folder has no tokenizer, tokens and labels are the ids. Throws UsageError on ids that are none of the model's, on none at
/// all and on a pair, ShapeError on more than the model reads.
Observation observe_tokens(const ModelFolder& folder, std::vector<int32_t> ids,
                           const std::string& target = {}, const ObserveTextOptions& options = {});

}  // namespace mh
