#include "multihead/heads/attribution/explained_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/folders/mask_token.h"
#include "multihead/folders/sentence_pooling.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/label_head.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// How much each row of a sentence's states counts in its vector, summed over poolings.
std::vector<double> pooled_rows(const SentenceModel& model, int64_t count) {
  std::vector<double> rows(static_cast<size_t>(count));
  for (const Pooling pooling : model.poolings) {
    // Any row may have the largest numbers; and shares of a vector sum to 1.
    const bool even = pooling == Pooling::kMax || pooling == Pooling::kMeanSqrtLength;
    const std::vector<double> weights =
        pooling_weights(even ? Pooling::kMean : pooling, static_cast<int32_t>(count), model.unpooled);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] += weights[i];
  }
  for (double& row : rows) row /= static_cast<double>(model.poolings.size());
  return rows;
}

TextTokens sentence_tokens(const SentenceModel& model, const std::string& text) {
  const std::string whole = model.prompt + text;
  return TextReader(model.folder, {.longest = static_cast<size_t>(model.longest), .offsets = true})
      .read(model.lowercase ? lower_case(whole) : whole);
}

/// That the text has some that are not special.
void require_tokens(const std::vector<ReadToken>& tokens) {
  if (std::all_of(tokens.begin(), tokens.end(),
                  [](const ReadToken& token) { return token.kept || token.side == TokenSide::kTarget; }))
    throw UsageError(
        "there is no token to attribute anything to but special ones; give a text of more words");
}

/// The last token from `first` on that has a letter or a digit, else the last one; special tokens, of which a translation has but
/// its end, do not count.
int default_position(const ObservedTokens& tokens, int first, bool translation) {
  int last = -1;
  for (int i = static_cast<int>(tokens.ids.size()) - (translation ? 2 : 1); i >= first; --i) {
    const auto at = static_cast<size_t>(i);
    if (!translation && tokens.offsets[at] == std::pair(0, 0)) continue;
    const std::string& label = tokens.labels[at];
    for (size_t c = 0; c < label.size();) {
      if (is_word(next_character(label, c))) return i;
    }
    last = std::max(last, i);
  }
  return std::max(last, first);
}

/// The rows of the last states that a layer of labels reads of a text; of tokens the one at `row`.
std::vector<double> label_weights(const LabelHead& head, std::span<const int32_t> ids, int32_t row) {
  if (head.config().rows == LabelRows::kMean)
    return std::vector<double>(ids.size(), 1.0 / static_cast<double>(ids.size()));
  std::vector<double> weights(ids.size(), 0.0);
  weights[static_cast<size_t>(head.of_tokens() ? row : head.position(ids))] = 1;
  return weights;
}

}  // namespace

Replacement replacement_of(const ModelFolder& folder, const Tokenizer& tokenizer) {
  std::optional<int32_t> id = mask_id(folder, tokenizer);
  if (!id) id = tokenizer.unknown_id();
  if (!id && !folder.generation.end_tokens.empty()) id = folder.generation.end_tokens[0];
  if (!id && folder.model->facts().eos_id >= 0) id = folder.model->facts().eos_id;
  if (!id || *id >= tokenizer.size())
    throw UsageError("the tokenizer has no mask, unknown or end token to put in place of others");
  return {.id = *id, .token = tokenizer.token_of(*id)};
}

void ExplainedText::add(const ObservedTokens& tokens, size_t count, TokenSide side) {
  for (size_t i = 0; i < count; ++i) {
    // A greedy translation has no text; the only special token before what it predicts is its start.
    const bool special =
        side == TokenSide::kTarget && !of_label_ ? i == 0 : tokens.offsets[i] == std::pair(0, 0);
    tokens_.push_back({.side = side,
                       .id = tokens.ids[i],
                       .token = tokens.tokens[i],
                       .label = tokens.labels[i],
                       .characters = tokens.offsets[i],
                       .of_pair = tokens.second && i >= *tokens.second,
                       .kept = special});
    ids_.push_back(tokens.ids[i]);
  }
}

int32_t ExplainedText::token_to_explain(const Tokenizer& tokenizer, const AttributionOptions& options) const {
  if (const auto id = tokenizer.id_of(options.target_token)) return *id;
  const std::vector<int32_t> ids = tokenizer.encode_ids(options.target_token, false);
  const auto unknown = tokenizer.unknown_id();
  if (unknown && std::find(ids.begin(), ids.end(), *unknown) != ids.end()) {
    throw UsageError(fmt::format("`target_token`: the tokenizer does not know '{}'; take another word",
                                 options.target_token));
  }
  if (ids.size() == 1) return ids[0];
  throw UsageError(fmt::format("'{}' is {} tokens of this vocabulary; name one to explain",
                               options.target_token, ids.size()));
}

void ExplainedText::choose(const ModelFolder& folder, const Observation& seen,
                           const AttributionOptions& options) {
  const bool causal = is_causal(folder), other = !options.target_token.empty();
  const ObservedTokens& text = causal ? seen.target : seen.source;
  const ObservedTokens& predicted = mh::translates(folder) ? seen.predicted : text;
  const auto all = static_cast<int>(predicted.ids.size());
  const int first = causal ? 1 : 0, end = causal && other ? all + 1 : all;
  const int position = options.position  ? *options.position
                       : causal && other ? all
                                         : default_position(predicted, first, mh::translates(folder));
  if (causal && end <= first)
    throw UsageError("a causal model predicts a text's tokens after the first; give at least two");
  if (position < first || position >= end)
    throw UsageError(fmt::format("there is no token {} whose probability could be explained; give {} to {}",
                                 position, first, end - 1));
  const auto at = static_cast<size_t>(position);
  if (mh::translates(folder)) {
    add(seen.source, seen.source.ids.size(), TokenSide::kSource);
    sources_ = std::ssize(ids_);
    add(seen.target, at + 1, TokenSide::kTarget);
    row_ = position;
    rows_.assign(at + 1, 0.0);
  } else {
    add(text, causal ? at : text.ids.size(), TokenSide::kSource);
    sources_ = std::ssize(ids_);
    row_ = causal ? position - 1 : position;
    rows_.assign(ids_.size(), 0.0);
  }
  rows_[static_cast<size_t>(row_)] = 1;
  const Tokenizer& tokenizer = mh::translates(folder) ? folder.target_tokens() : folder.source_tokens();
  explained_ = other ? token_to_explain(tokenizer, options) : predicted.ids[at];
  known_.position = position;
  known_.explained = tokenizer.shown(explained_);
  known_.explained_id = explained_;
  known_.translation = seen.translation;
  if (causal || mh::translates(folder)) return;
  ReadToken& asked = tokens_[at];
  if (asked.kept) throw UsageError(fmt::format("token {} is {}, a special token", position, asked.token));
  asked.kept = true;
  if (const auto mask = mask_id(folder, tokenizer)) {
    asked.id = ids_[at] = *mask;
    asked.token = tokenizer.token_of(*mask);
    asked.label = tokenizer.shown(*mask);
  }
}

void ExplainedText::choose_label(const ModelFolder& folder, const Observation& seen,
                                 const AttributionOptions& options) {
  if (!options.target_token.empty())
    throw UsageError(
        "of a classifier the logit of a label is explained: leave the other token out, and name a label");
  const LabelHead& head = *model_.label_head();
  const ObservedTokens& text = is_causal(folder) ? seen.target : seen.source;
  of_label_ = true;
  add(text, text.ids.size(), TokenSide::kSource);
  sources_ = std::ssize(ids_);
  const auto all = static_cast<int>(ids_.size());
  // The decoder of a classifier reads the text, too.
  if (!seen.predicted.ids.empty()) add(seen.target, seen.target.ids.size(), TokenSide::kTarget);
  if (head.of_tokens()) {
    row_ = options.position ? *options.position : default_position(text, 0, false);
    if (row_ < 0 || row_ >= all)
      throw UsageError(
          fmt::format("there is no token {} whose label could be explained; give 0 to {}", row_, all - 1));
    known_.position = row_;
  } else if (options.position) {
    throw UsageError("this classifier gives labels to whole texts: leave the token out");
  }
  rows_ = label_weights(head, std::span(ids_).first(static_cast<size_t>(all)), row_);
  if (!options.label.empty()) {
    explained_ = folder.labels->number_of(options.label);
  } else {
    const float* const row = seen.value(head.site().name()).view().row(head.of_tokens() ? row_ : 0);
    explained_ = static_cast<int32_t>(std::max_element(row, row + head.config().labels) - row);
  }
  known_.label = folder.labels->names[static_cast<size_t>(explained_)];
  known_.explained_id = explained_;
}

ExplainedText::ExplainedText(const ModelFolder& folder, const std::string& text,
                             const AttributionOptions& options)
    : model_(*folder.model) {
  if (!options.label.empty() && !folder.labels)
    throw UsageError(fmt::format("this model gives no labels; leave '{}' out", options.label));
  if (folder.gives_vectors_alone())
    throw UsageError(
        "this encoder predicts no words; give a second text, and the cosine of both vectors is explained");
  std::vector<std::string> keep;
  if (folder.labels) keep.push_back(model_.label_head()->site().name());
  const auto pair = options.pair.empty() ? std::nullopt : std::optional(options.pair);
  const Observation seen =
      observe_text(folder, text, options.target,
                   {.keep = keep, .remark = options.remark, .pair = pair, .languages = options.languages});
  types_ = seen.source.types;
  if (folder.labels) {
    choose_label(folder, seen, options);
  } else {
    choose(folder, seen, options);
  }
  require_tokens(tokens_);
  of_source_ = replacement_of(folder, folder.source_tokens());
  if (translates())
    of_target_ = replacement_of(folder, folder.labels ? folder.source_tokens() : folder.target_tokens());
  const std::vector<std::vector<int32_t>> both = {ids_, all_replaced()};
  const std::vector<double> values = scores(both, options.max_batch_tokens);
  known_.tokens = tokens_;
  known_.pair = options.pair;
  known_.score = values[0];
  known_.replaced_score = values[1];
  known_.source_replacement = of_source_.token;
  known_.target_replacement = of_target_.token;
}

ExplainedText::ExplainedText(const SentenceModel& model, const std::string& text, const std::string& second,
                             const AttributionOptions& options)
    : model_(*model.folder.model), sentences_(&model) {
  if (mh::translates(model.folder))
    throw UsageError("a translator has no vector of a text; leave the second text out");
  if (options.position || !options.target_token.empty() || !options.target.empty() || !options.label.empty())
    throw UsageError(
        "with two texts their cosine is explained: leave out the token, the label and the target");
  if (!options.pair.empty())
    throw UsageError(
        "a second text is either read together with the first or compared with it; leave one of them out");
  language_pair(model.folder, options.languages);  // it has none
  const Tokenizer& tokenizer = model.folder.source_tokens();
  const TextTokens read = sentence_tokens(model, text), other = sentence_tokens(model, second);
  if (options.remark && read.ids.size() < read.uncut)
    options.remark(
        fmt::format("the text has {} tokens, of which the model reads {}", read.uncut, read.ids.size()));
  for (size_t i = 0; i < read.ids.size(); ++i) {
    const int32_t id = read.ids[i];
    tokens_.push_back({.id = id,
                       .token = tokenizer.token_of(id),
                       .label = tokenizer.shown(id),
                       .characters = read.offsets[i],
                       .kept = read.offsets[i] == std::pair(0, 0)});
  }
  require_tokens(tokens_);
  if (other.ids.empty()) throw UsageError("the second text has no tokens; give a text with words");
  ids_ = read.ids;
  sources_ = std::ssize(ids_);
  rows_ = pooled_rows(model, sources_);
  of_source_ = replacement_of(model.folder, tokenizer);
  Tape tape;
  Context context{.tape = tape};
  Batch batch;
  batch.add(other.ids, 0);
  second_ = copied(model.vectors(context, batch.view()).value());
  const std::vector<std::vector<int32_t>> both = {ids_, all_replaced()};
  const std::vector<double> values = scores(both, options.max_batch_tokens);
  known_.tokens = tokens_;
  known_.second = second;
  known_.score = values[0];
  known_.replaced_score = values[1];
  known_.source_replacement = of_source_.token;
}

std::vector<int32_t> ExplainedText::replaced(const std::function<bool(size_t)>& replace) const {
  std::vector<int32_t> ids = ids_;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (tokens_[i].kept || !replace(i)) continue;
    ids[i] = tokens_[i].side == TokenSide::kSource ? of_source_.id : of_target_.id;
  }
  return ids;
}

std::vector<int32_t> ExplainedText::all_replaced() const {
  return replaced([](size_t) { return true; });
}

std::vector<double> ExplainedText::scores(std::span<const std::vector<int32_t>> variants,
                                          int64_t batch_tokens) const {
  std::vector<double> found;
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, batch_tokens / std::ssize(ids_)));
  for (size_t begin = 0; begin < variants.size(); begin += at_once) {
    const ExplainedPass pass(*this, variants.subspan(begin, std::min(at_once, variants.size() - begin)));
    for (int64_t i = 0; i < pass.scores().rows(); ++i)
      found.push_back(static_cast<double>(pass.scores().value()(i, 0)));
  }
  return found;
}

ExplainedPass::ExplainedPass(const ExplainedText& text, std::span<const std::vector<int32_t>> variants,
                             const TextPassOptions& options)
    : tape_(options.mode), context_{.tape = tape_, .sites = options.sites} {
  const auto sources = static_cast<size_t>(text.sources());
  const int64_t rows_each = text.translates() ? text.targets() : text.sources();
  std::vector<double> pick;
  std::vector<int32_t> rows, words, unreplaced;
  for (const std::vector<int32_t>& ids : variants) {
    const auto number = static_cast<int64_t>(rows.size());
    const std::span all(ids);
    source_.add(all.first(sources), number, text.types_);
    if (text.translates()) target_.add(all.subspan(sources), number);
    const std::vector<int32_t> one = {text.explained_};
    picked_.add(one, number);
    for (int64_t i = 0; i < rows_each; ++i) pick.push_back(i == text.row_ ? 1 : 0);
    rows.push_back(static_cast<int32_t>(number));
    words.push_back(text.explained_);
    unreplaced.insert(unreplaced.end(), text.ids_.begin(), text.ids_.begin() + text.sources());
  }
  if (text.sentences_ != nullptr) {
    const Var vectors = text.sentences_->vectors(context_, source_.view());
    const MatrixView others = tape_.arena().matrix<float>(vectors.rows(), vectors.cols());
    for (int64_t i = 0; i < others.rows; ++i) std::copy_n(text.second_.data(), others.cols, others.row(i));
    scores_ = ops::cosines(tape_, vectors, tape_.constant(others));
  } else if (text.of_label_) {
    const Var states =
        text.model().read(context_, source_.view(), text.translates() ? target_.view() : Sequences());
    const LabelHead& head = *text.model().label_head();
    for (int32_t& row : rows) row = static_cast<int32_t>(head.row(source_.ragged, row, text.row_));
    // The same row counts where padding tokens replace the last ones.
    Sequences whole = source_.view();
    whole.ids = unreplaced;
    scores_ = ops::pick(tape_, text.model().label_logits(context_, states, whole), rows, words);
  } else {
    const Batch& last = text.translates() ? target_ : source_;
    const Var states =
        text.model().read(context_, source_.view(), text.translates() ? target_.view() : Sequences());
    // Logits of the rows that are asked for alone: a vocabulary is large.
    const Var asked = weigh_rows(tape_, states, last.ragged.offsets(), pick);
    scores_ = ops::pick(tape_, ops::log_softmax(tape_, text.model().logits(context_, asked, picked_.view())),
                        rows, words);
  }
  require_finite(scores_.value(), "what is explained");
}

void ExplainedPass::backward() {
  tape_.backward(ops::sum(tape_, scores_));
}

}  // namespace mh
