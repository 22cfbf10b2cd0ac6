#include "multihead/heads/sites/observe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

ObservedTokens tokens_of(const Tokenizer& tokenizer, std::vector<int32_t> ids,
                         std::vector<std::pair<int32_t, int32_t>> offsets) {
  ObservedTokens tokens;
  for (const int32_t id : ids) {
    tokens.tokens.push_back(tokenizer.token_of(id));
    tokens.labels.push_back(tokenizer.shown(id));
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

Observation observe_text(const ModelFolder& folder, const std::string& source, const std::string& target,
                         const ObserveTextOptions& options) {
  if (options.number) {
    ListSites listed(options.sites, {.texts = {&*options.number, 1}});
    ObserveTextOptions of_one = options;
    of_one.number = std::nullopt;
    of_one.sites = listed.sites();
    return observe_text(folder, source, target, of_one);
  }
  const LanguagePair languages = language_pair(folder, options.languages);
  const InspectedTextReader reader(folder, options.remark, languages);
  Observation seen;
  if (options.pair || !translates(folder)) {
    refuse_targets(folder, !target.empty());
    InspectedTexts texts =
        options.pair ? reader.pairs({source}, {*options.pair}) : reader.whole({source}, {}, {.one = "text"});
    ObservedTokens& side = is_causal(folder) ? seen.target : seen.source;
    side = tokens_of(folder.source_tokens(), std::move(texts.ids[0]), std::move(texts.offsets[0]));
    if (!texts.types.empty()) side.types = std::move(texts.types[0]);
    if (!texts.seconds.empty()) side.second = texts.seconds[0];
    const auto* const both = dynamic_cast<const EncoderDecoder*>(folder.model.get());
    if (both != nullptr && !side.ids.empty()) shift_text(*both, source, seen);
    observe(*folder.model, options, seen);
    return seen;
  }
  const ModelFacts facts = folder.model->facts();
  InspectedTexts read = reader.translated({source}, TextSide::kSource, {}, {.one = "text"});
  seen.targets = target.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
  std::vector<int32_t> ids;
  std::vector<std::pair<int32_t, int32_t>> offsets;
  if (target.empty()) {
    if (options.sites != nullptr) folder.model->check(*options.sites);
    ids = greedy_translations(folder, read.ids, languages, options.sites)[0];
    seen.translation = folder.target_tokens().decode_known(ids);
  } else {
    InspectedTexts given = reader.translated({target}, TextSide::kTarget, {}, {.one = "target text"});
    ids = std::move(given.ids[0]);
    offsets = std::move(given.offsets[0]);
    seen.translation = target;
  }
  seen.source = tokens_of(folder.source_tokens(), std::move(read.ids[0]), std::move(read.offsets[0]));
  const ObservedTokens words = tokens_of(folder.target_tokens(), ids, offsets);
  seen.target = {.ids = behind(facts.start_id, words.ids),
                 .tokens = behind(std::string("<start>"), words.tokens),
                 .labels = behind(std::string("<start>"), words.labels),
                 .offsets = behind({0, 0}, words.offsets)};
  ids.push_back(facts.eos_id);
  seen.predicted = tokens_of(folder.target_tokens(), std::move(ids), std::move(offsets));
  observe(*folder.model, options, seen);
  return seen;
}

}  // namespace mh
