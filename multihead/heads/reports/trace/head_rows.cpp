#include "multihead/heads/reports/trace/head_rows.h"

#include <fmt/format.h>

#include "multihead/nn/attention_positions.h"

namespace mh {
namespace {

/// The heads for which `belongs(head)`.
template <class Belongs>
std::vector<int> heads_that(int heads, const Belongs& belongs) {
  std::vector<int> all;
  for (int h = 0; h < heads; ++h) {
    if (belongs(h)) all.push_back(h);
  }
  return all;
}

Tensor columns_of(Var rows, int64_t begin, int64_t width) {
  return copied(rows.value().columns_between(begin, begin + width));
}

std::string turned_name(const std::string& name) {
  return name + "_turned";
}

/// ", pairs of its first 6 numbers turned by the row's place and multiplied by 1.19, longrope's attention factor".
std::string turned_words(const RotaryOptions& rotary) {
  std::string words =
      rotary.rotated == 0
          ? ", pairs of numbers turned by the row's place"
          : fmt::format(", pairs of its first {} numbers turned by the row's place", rotary.rotated);
  if (const RotaryScaling& scaling = rotary.scaling; scaling.amplitude != 1)
    words += fmt::format(" and multiplied by {:.4g}, {}'s attention factor", scaling.amplitude,
                         name_of(scaling.kind, kRotaryScalingNames));
  return words;
}

}  // namespace

HeadRows::HeadRows(const MultiHeadAttention& layer, const LayerParameters& parameters, Context& context,
                   Var x, Var memory)
    : geometry_(layer.geometry()),
      parameters_(parameters),
      tape_(context.tape),
      memory_name_("memory"),
      softmaxes_(softmaxes_per_head(geometry_)) {
  const KeysAndValues both = layer.project_memory(context, memory, {});
  plain_ = met_ = {layer.project_queries(context, x, {}), both.keys, both.values};
  d_key_ = plain_.q.cols() / (int64_t{geometry_.heads} * softmaxes_);
  key_groups_ = plain_.k.cols() / (d_key_ * softmaxes_);
  value_heads_ = plain_.v.cols() / geometry_.d_value;
}

HeadRows::HeadRows(const MultiHeadAttention& layer, const LayerParameters& parameters, Context& context,
                   Var x)
    : HeadRows(layer, parameters, context, x, x) {
  memory_name_ = "x";
  turned_ = layer.config().positions == Positions::kRotary;
  const std::vector<int32_t> offsets = {0, static_cast<int32_t>(x.rows())};
  turned_words_ = turned_words(layer.config().rotary);
  if (turned_) met_ = layer.project(context, x, {.offsets = offsets});
}

std::string HeadRows::suffix(int head, int64_t softmax) const {
  return softmaxes_ == 1 ? fmt::format("_{}", head) : fmt::format("_{}_{}", head, softmax + 1);
}

/// Which of all keys a softmax meets. Where heads of differential weights share keys, the two softmaxes of
/// one head may meet the same.
int64_t HeadRows::key_of(int head, int64_t softmax) const {
  return number(head, softmax) * key_groups_ / geometry_.heads;
}

/// Whether one of the head's first softmaxes meets the key.
bool HeadRows::reads(int head, int64_t softmaxes, int64_t key) const {
  for (int64_t s = 0; s < softmaxes; ++s) {
    if (key_of(head, s) == key) return true;
  }
  return false;
}

/// The first head that reads what belongs to a group of heads.
int HeadRows::first_of(int64_t group, int64_t groups) const {
  return static_cast<int>((group * geometry_.heads + groups - 1) / groups);
}

std::string HeadRows::own_name_of_keys(int64_t key) const {
  return "k" + suffix(first_of(key / softmaxes_, key_groups_), key % softmaxes_);
}

std::string HeadRows::name_of_queries(int head, int64_t softmax) const {
  const std::string name = "q" + suffix(head, softmax);
  return turned_ ? turned_name(name) : name;
}

std::string HeadRows::name_of_keys(int head, int64_t softmax) const {
  const std::string name = own_name_of_keys(key_of(head, softmax));
  return turned_ ? turned_name(name) : name;
}

std::string HeadRows::name_of_values(int head) const {
  return fmt::format("v_{}", first_of(value_of(head), value_heads_));
}

Var HeadRows::queries(int head, int64_t softmax) {
  const int64_t begin = number(head, softmax) * d_key_;
  return tape_.columns(met_.q, begin, begin + d_key_);
}

Var HeadRows::keys(int head, int64_t softmax) {
  const int64_t begin = key_of(head, softmax) * d_key_;
  return tape_.columns(met_.k, begin, begin + d_key_);
}

Var HeadRows::values(int head) {
  const int64_t begin = value_of(head) * geometry_.d_value;
  return tape_.columns(plain_.v, begin, begin + geometry_.d_value);
}

/// "[:, 0 ... 3]" of the numbers of one of two softmaxes.
std::string HeadRows::part(int64_t softmax) const {
  return softmaxes_ == 1 ? "" : fmt::format("[:, {} ... {}]", softmax * d_key_, (softmax + 1) * d_key_ - 1);
}

void HeadRows::show_parameters(int head, TraceRecorder& recorder) const {
  for (const auto& p : parameters_.all()) {
    const std::optional<Block> own = parameters_.block(p, head);
    if (!own || p.after_heads()) continue;
    const std::vector<int> owners =
        heads_that(geometry_.heads, [&](int h) { return *parameters_.block(p, h) == *own; });
    if (owners.front() != head) continue;
    const bool rows = own->row_end - own->row_begin < p.value->rows();
    const int64_t begin = rows ? own->row_begin : own->col_begin, end = rows ? own->row_end : own->col_end;
    recorder.add(
        fmt::format("{}_{}", p.name, head),
        fmt::format("learned: {} {} ... {} of {}", rows ? "rows" : "columns", begin, end - 1, p.name), owners,
        copied(own->of(p.value->view())));
  }
}

/// Queries or keys as projected and, where positions turn them, as they meet. begin: their first column.
void HeadRows::show_met(const Shown& what, Var plain, Var met, int64_t begin, TraceRecorder& recorder) const {
  recorder.add(what.name, what.formula, what.owners, columns_of(plain, begin, d_key_), what.axis);
  if (!turned_) return;
  recorder.add(turned_name(what.name), what.name + turned_words_, what.owners, columns_of(met, begin, d_key_),
               what.axis);
}

void HeadRows::show_keys(int head, TraceRecorder& recorder) const {
  for (int64_t s = 0; s < softmaxes_; ++s) {
    const int64_t key = key_of(head, s);
    const std::vector<int> owners =
        heads_that(geometry_.heads, [&](int h) { return reads(h, softmaxes_, key); });
    if (owners.front() != head || reads(head, s, key)) continue;
    show_met(
        {.name = own_name_of_keys(key),
         .formula = parameters_.projection(memory_name_, HeadPart::kKeys,
                                           first_of(key / softmaxes_, key_groups_), part(key % softmaxes_)),
         .owners = owners,
         .axis = TraceAxis::kKeys},
        plain_.k, met_.k, key * d_key_, recorder);
  }
}

void HeadRows::show(int head, TraceRecorder& recorder) const {
  show_parameters(head, recorder);
  for (int64_t s = 0; s < softmaxes_; ++s) {
    show_met({.name = "q" + suffix(head, s),
              .formula = parameters_.projection("x", HeadPart::kQueries, head, part(s)),
              .owners = {head},
              .axis = TraceAxis::kQueries},
             plain_.q, met_.q, number(head, s) * d_key_, recorder);
  }
  show_keys(head, recorder);
  const int64_t value = value_of(head);
  if (first_of(value, value_heads_) != head) return;
  recorder.add(name_of_values(head), parameters_.projection(memory_name_, HeadPart::kValues, head),
               heads_that(geometry_.heads, [&](int h) { return value_of(h) == value; }),
               columns_of(plain_.v, value * geometry_.d_value, geometry_.d_value), TraceAxis::kKeys);
}

}  // namespace mh
