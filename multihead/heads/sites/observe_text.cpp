#include "multihead/heads/sites/observe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/check_ids.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// tokenizer: null where the folder has none.
ObservedTokens tokens_of(const Tokenizer* tokenizer, std::vector<int32_t> ids,
                         std::vector<std::pair<int32_t, int32_t>> offsets) {
  ObservedTokens tokens;
  for (const int32_t id : ids) {
    tokens.tokens.push_back(tokenizer == nullptr ? std::to_string(id) : tokenizer->token_of(id));
    tokens.labels.push_back(tokenizer == nullptr ? std::to_string(id) : tokenizer->shown(id));
  }
  offsets.resize(ids.size());
  tokens.ids = std::move(ids);
  tokens.offsets = std::move(offsets);
  return tokens;
}

template <class T>
std::vector<T> behind(T first, const std::vector<T>& others) {
  std::vector<T> all{std::move(first)};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// What the decoder of a classifier reads: the text shifted by one token, of which row i stands before token i of the text.
void shift_text(const EncoderDecoder& model, const std::string& text, Observation& seen) {
  Batch batch;
  batch.add(seen.source.ids, 0);
  seen.predicted = seen.source;
  seen.target.ids = model.shifted(batch.view());
  const auto moved = [](auto first, auto all) {
    all.pop_back();
    return behind(std::move(first), all);
  };
  seen.target.tokens = moved(std::string("<start>"), seen.source.tokens);
  seen.target.labels = moved(std::string("<start>"), seen.source.labels);
  seen.target.offsets = moved(std::pair<int32_t, int32_t>(0, 0), seen.source.offsets);
  seen.translation = text;
}

/// What the model has inside while it reads the tokens of `seen`.
void observe(const Model& model, const ObserveTextOptions& options, Observation& seen) {
  seen.attentions = model.attentions();
  if (options.tokens_alone) return;
  for (const std::string& pattern : options.keep) seen.values.keep(pattern);
  SitesInTurn sites(options.sites, seen.values);
  TextPass(model, seen, {.sites = &sites}).call_output_sites();
}

}  // namespace

std::string weights_site(const HeadName& head) {
  return Site{head.attention, SitePart::kWeights, head.head}.name();
}

namespace {

/// asked: what the error begins with.
const Model::Attention& attention_in(const std::vector<Model::Attention>& attentions, std::string_view name,
                                     const std::string& asked) {
  std::string all;
  for (const Model::Attention& has : attentions) {
    if (has.name == name) return has;
    all += (all.empty() ? "" : ", ") + has.name;
  }
  throw UsageError(fmt::format("{}: this model has {}", asked, all));
}

}  // namespace

AttentionPlace Observation::place(std::string_view attention) const {
  return attention_in(attentions, attention, fmt::format("attention '{}'", attention)).place;
}

ConstMatrixView Observation::weights(const HeadName& head) const {
  const Model::Attention& found =
      attention_in(attentions, head.attention, fmt::format("head '{}.{}'", head.attention, head.head));
  if (head.head < 0 || head.head >= found.heads) {
    throw UsageError(fmt::format("head '{}.{}': {} has heads 0 to {}", head.attention, head.head,
                                 head.attention, found.heads - 1));
  }
  return values.kept(weights_site(head)).sequence(0);
}

const char* what_attends(AttentionKind kind) {
  if (kind == AttentionKind::kEncoderSelf) return "each source token attends to source tokens";
  if (kind == AttentionKind::kDecoderSelf) return "each target token attends to target tokens";
  return "each target token to come attends to source tokens";
}

const std::vector<std::string>& Observation::query_labels(AttentionKind kind) const {
  if (kind == AttentionKind::kEncoderSelf) return source.labels;
  return kind == AttentionKind::kDecoderSelf ? target.labels : predicted.labels;
}

const std::vector<std::string>& Observation::key_labels(AttentionKind kind) const {
  return kind == AttentionKind::kDecoderSelf ? target.labels : source.labels;
}

namespace {

const Tokenizer* source_tokenizer(const ModelFolder& folder) {
  return folder.tokenizer ? &folder.source_tokens() : nullptr;
}

/// observe(options) of the text of a list that options.number says.
template <class Observe>
Observation in_list(const ObserveTextOptions& options, const Observe& observe) {
  if (!options.number) return observe(options);
  ListSites listed(options.sites, {.texts = {&*options.number, 1}});
  ObserveTextOptions of_one = options;
  of_one.sites = listed.sites();
  return observe(of_one);
}

/// Of a model that reads one text.
Observation observe_alone(const ModelFolder& folder, ObservedTokens read, const std::string& text,
                          const ObserveTextOptions& options) {
  Observation seen;
  (is_causal(folder) ? seen.target : seen.source) = std::move(read);
  const auto* const both = dynamic_cast<const EncoderDecoder*>(folder.model.get());
  if (both != nullptr && !seen.source.ids.empty()) shift_text(*both, text, seen);
  observe(*folder.model, options, seen);
  return seen;
}

Observation observe_translation(const ModelFolder& folder, ObservedTokens source, const std::string& target,
                                const ObserveTextOptions& options, const InspectedTextReader& reader,
                                const LanguagePair& languages) {
  const ModelFacts facts = folder.model->facts();
  const Tokenizer* const tokenizer = folder.tokenizer ? &folder.target_tokens() : nullptr;
  Observation seen;
  seen.source = std::move(source);
  seen.targets = target.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
  std::vector<int32_t> ids;
  std::vector<std::pair<int32_t, int32_t>> offsets;
  if (target.empty()) {
    if (options.sites != nullptr) folder.model->check(*options.sites);
    ids = greedy_translations(folder, {&seen.source.ids, 1}, languages, options.sites)[0];
    if (tokenizer != nullptr) seen.translation = tokenizer->decode_known(ids);
  } else {
    InspectedTexts given = reader.translated({target}, TextSide::kTarget, {}, {.one = "target text"});
    ids = std::move(given.ids[0]);
    offsets = std::move(given.offsets[0]);
    seen.translation = target;
  }
  const ObservedTokens words = tokens_of(tokenizer, ids, offsets);
  seen.target = {.ids = behind(facts.start_id, words.ids),
                 .tokens = behind(std::string("<start>"), words.tokens),
                 .labels = behind(std::string("<start>"), words.labels),
                 .offsets = behind({0, 0}, words.offsets)};
  ids.push_back(facts.eos_id);
  seen.predicted = tokens_of(tokenizer, std::move(ids), std::move(offsets));
  observe(*folder.model, options, seen);
  return seen;
}

Observation observe_one_text(const ModelFolder& folder, const std::string& source, const std::string& target,
                             const ObserveTextOptions& options) {
  const LanguagePair languages = language_pair(folder, options.languages);
  const InspectedTextReader reader(folder, options.remark, languages);
  if (options.pair || !translates(folder)) {
    refuse_targets(folder, !target.empty());
    InspectedTexts texts =
        options.pair ? reader.pairs({source}, {*options.pair}) : reader.whole({source}, {}, {.one = "text"});
    ObservedTokens read =
        tokens_of(&folder.source_tokens(), std::move(texts.ids[0]), std::move(texts.offsets[0]));
    if (!texts.types.empty()) read.types = std::move(texts.types[0]);
    if (!texts.seconds.empty()) read.second = texts.seconds[0];
    return observe_alone(folder, std::move(read), source, options);
  }
  InspectedTexts read = reader.translated({source}, TextSide::kSource, {}, {.one = "text"});
  ObservedTokens tokens =
      tokens_of(&folder.source_tokens(), std::move(read.ids[0]), std::move(read.offsets[0]));
  return observe_translation(folder, std::move(tokens), target, options, reader, languages);
}

}  // namespace

Observation observe_text(const ModelFolder& folder, const std::string& source, const std::string& target,
                         const ObserveTextOptions& options) {
  return in_list(options,
                 [&](const auto& of_one) { return observe_one_text(folder, source, target, of_one); });
}

Observation observe_tokens(const ModelFolder& folder, std::vector<int32_t> ids, const std::string& target,
                           const ObserveTextOptions& options) {
  if (options.pair) throw UsageError("`pair`: a pair is made of two texts; leave it out beside token ids");
  const ModelFacts facts = folder.model->facts();
  check_ids(ids, options.number.value_or(0) + 1,
            {.what = "text",
             .longest = facts.max_positions,
             .vocabulary = facts.vocabulary_read(),
             .may_be_empty = false});
  ObservedTokens tokens = tokens_of(source_tokenizer(folder), std::move(ids), {});
  return in_list(options, [&](const auto& of_one) {
    if (translates(folder)) {
      const LanguagePair languages = language_pair(folder, of_one.languages);
      const InspectedTextReader reader(folder, of_one.remark, languages);
      return observe_translation(folder, std::move(tokens), target, of_one, reader, languages);
    }
    refuse_targets(folder, !target.empty());
    language_pair(folder, of_one.languages);  // it has none
    return observe_alone(folder, std::move(tokens), {}, of_one);
  });
}

}  // namespace mh
