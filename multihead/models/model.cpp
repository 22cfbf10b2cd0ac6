#include "multihead/models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/models/label_head.h"
#include "multihead/models/next_words.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/stack.h"

namespace mh {
namespace {

/// Attentions that follow one another by layers and have equally many heads.
struct AttentionRun {
  AttentionKind kind;
  std::string first, last;  // their names
  int heads;
};

/// "encoder.0.self_attention to encoder.5.self_attention with heads 0 to 7 each; decoder.0.self_attention ...".
std::string in_words(const std::vector<Model::Attention>& attentions) {
  std::vector<AttentionRun> runs;
  for (const Model::Attention& one : attentions) {
    const auto before = std::find_if(runs.rbegin(), runs.rend(),
                                     [&](const AttentionRun& run) { return run.kind == one.place.kind; });
    if (before != runs.rend() && before->heads == one.heads) {
      before->last = one.name;
    } else {
      // Behind the others of its kind, which may have other numbers of heads.
      runs.insert(before.base() == runs.begin() ? runs.end() : before.base(),
                  {one.place.kind, one.name, one.name, one.heads});
    }
  }
  std::vector<std::string> words;
  for (const AttentionRun& run : runs) {
    const std::string numbers = run.heads == 1 ? "head 0" : fmt::format("heads 0 to {}", run.heads - 1);
    words.push_back(run.first == run.last
                        ? fmt::format("{} with {}", run.first, numbers)
                        : fmt::format("{} to {} with {} each", run.first, run.last, numbers));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

/// "encoder.embeddings, encoder.#.self_attention.weights.#, ...; layers of the encoder: 0 to 5".
std::string in_words(std::span<const SiteShape> sites) {
  std::vector<std::string> words;
  std::map<std::string, std::string> last_layers;  // of each stack
  for (const SiteShape& site : sites) {
    const size_t dot = site.name.find('.'), next = site.name.find('.', dot + 1);
    std::string name = site.name;
    if (next != std::string::npos) {
      last_layers[name.substr(0, dot)] = name.substr(dot + 1, next - dot - 1);
      name = name.substr(0, dot) + ".#" + name.substr(next);
      if (whole_number_in(name.substr(name.rfind('.') + 1)))
        name = name.substr(0, name.rfind('.')) + ".#";  // a head's
    }
    if (std::find(words.begin(), words.end(), name) == words.end()) words.push_back(std::move(name));
  }
  std::string text = fmt::format("{}", fmt::join(words, ", "));
  for (const auto& [stack, last] : last_layers)
    text += fmt::format("; layers of the {}: 0 to {}", stack, last);
  return text;
}

}  // namespace

void ModelFacts::require_translator() const {
  if (source_vocabulary > 0 && vocabulary > 0) return;
  throw UsageError(source_vocabulary > 0 ? "this model predicts no tokens; take an encoder-decoder"
                                         : "this model reads no source; take an encoder-decoder");
}

void ModelFacts::require_causal() const {
  if (source_vocabulary == 0 && vocabulary > 0) return;
  throw UsageError(vocabulary > 0 ? "this model translates and continues no text; take a causal model"
                                  : "this model predicts no tokens; take a causal model");
}

Var Model::read(Context& context, const Sequences& text, const Sequences& target) const {
  const Var states = last_states(context, text, target);
  require_finite(states.value(), "states", context.blame());
  return states;
}

std::vector<const Stack*> Model::stacks() const {
  const std::vector<Stack*> all = const_cast<Model*>(this)->stacks();
  return {all.begin(), all.end()};
}

std::vector<const StackConfig*> Model::stack_configs() const {
  std::vector<const StackConfig*> configs;
  for (const Stack* stack : stacks()) configs.push_back(&stack->config());
  return configs;
}

std::vector<Model::Attention> Model::attentions() const {
  std::vector<Attention> all;
  for (const Stack* stack : stacks()) {
    stack->visit_attentions([&](const MultiHeadAttention& attention, const AttentionPlace& place) {
      all.push_back({.name = attention.name(), .heads = attention.heads(), .place = place});
    });
  }
  return all;
}

AttentionPlace Model::place(std::string_view name) const {
  for (const Attention& one : attentions()) {
    if (one.name == name) return one.place;
  }
  throw_no_attention(name);
}

MultiHeadAttention& Model::attention(std::string_view name) {
  for (Stack* stack : stacks()) {
    if (MultiHeadAttention* found = stack->find_attention(name)) return *found;
  }
  throw_no_attention(name);
}

const MultiHeadAttention& Model::attention(std::string_view name) const {
  return const_cast<Model*>(this)->attention(name);
}

Mask Model::mask(std::string_view name) const {
  for (Stack* stack : const_cast<Model*>(this)->stacks()) {
    if (const MultiHeadAttention* found = stack->find_attention(name)) return found->config().mask.mask();
  }
  throw_no_attention(name);
}

void Model::throw_no_attention(std::string_view name) const {
  throw UsageError(fmt::format("this model has no attention '{}'; it has {}", name, in_words(attentions())));
}

std::vector<HeadName> Model::heads_named(const HeadPattern& pattern) const {
  const std::vector<Attention> all = attentions();
  std::vector<HeadName> found;
  for (const Attention& attention : all) {
    for (int head = 0; head < attention.heads; ++head) {
      if (pattern.matches(attention.name, head)) found.push_back({attention.name, head});
    }
  }
  if (!found.empty()) return found;
  throw UsageError(fmt::format("this model has no head '{}'; it has {}", pattern.text(), in_words(all)));
}

Var Model::word_states(const Context&, Var states) const {
  return states;
}

NextWords Model::next_words(const Context& context, Var states, const Sequences& rows) const {
  const VocabularyHead& head = vocabulary();
  return {head, context, word_states(context, states), {.offsets = rows.ragged->offsets()}};
}

Var Model::logits(Context& context, Var states, const Sequences& rows) const {
  return next_words(context, states, rows).logits();
}

Var Model::label_logits(Context& context, Var states, const Sequences& rows) const {
  const LabelHead* const head = label_head();
  if (head == nullptr)
    throw UsageError(
        "this model gives no labels; take one that was saved as ...ForSequenceClassification or "
        "...ForTokenClassification");
  return head->logits(context, label_rows(context, states, rows), rows);
}

void Model::call_output_sites(Context& context, Var states, const Sequences& rows) const {
  const LabelHead* const labels = label_head();
  const bool labelled = labels != nullptr && context.wants(labels->site());
  if (labelled) label_logits(context, states, rows);
  if (!labelled || labels->config().rows != LabelRows::kPooled) call_pooled(context, states, rows);
  if (predicts() && context.wants(vocabulary().site())) logits(context, states, rows);
}

std::vector<SiteShape> Model::sites() const {
  std::vector<SiteShape> all;
  const SiteVisitor add = [&](const SiteShape& site) { all.push_back(site); };
  for (const Stack* stack : stacks()) stack->visit_sites(add);
  if (pools()) add(SiteShape::of({stacks().back()->config().name, SitePart::kPooled}, facts().d_model));
  if (label_head() != nullptr) add(SiteShape::of(label_head()->site(), label_head()->config().labels));
  if (predicts()) add(SiteShape::of(vocabulary().site(), vocabulary().size()));
  return all;
}

void Model::check(const Sites& who) const {
  // To list all sites takes longer than to look for a few heads.
  check(who, who.sites_asked().empty() ? std::vector<SiteShape>() : sites());
}

void Model::check(const Sites& who, std::span<const SiteShape> all) const {
  for (const HeadPattern& heads : who.heads_asked()) {
    for (const HeadName& head : heads_named(heads)) who.check(head);
  }
  for (const std::string& asked : who.sites_asked()) {
    if (std::any_of(all.begin(), all.end(), [&](const SiteShape& site) { return fits(site.name, asked); }))
      continue;
    throw UsageError(fmt::format("this model has no site '{}'; it has {}", asked, in_words(all)));
  }
  for (const SiteShape& site : all) who.check(site);
}

void Model::visit(const ConstParameterVisitor& visitor) const {
  // Layers walk over their parameters in one way only; who reads gets them as const.
  const_cast<Model*>(this)->visit(ParameterVisitor(visitor));
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    if (name != "logits_bias") count += parameter.value.size();
  }));
  return count;
}

}  // namespace mh
