#include "multihead/models/head_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/kernels/dropout.h"
#include "multihead/nn/hard_concrete.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

constexpr std::string_view kOutputWeight = ".w_o";
constexpr uint32_t kFirstGateSite = 0x80000000u;  // of dropout_stream(): dropout's own sites count from 0

/// Calls use(attention, parameter) with the W^O of every attention.
template <class Visited, class Use>
void visit_output_weights(Visited& model, const Use& use) {
  const auto each = [&](const std::string& name, auto& parameter) {
    if (name.ends_with(kOutputWeight)) use(name.substr(0, name.size() - kOutputWeight.size()), parameter);
  };
  if constexpr (std::is_const_v<Visited>) {
    model.visit(ConstParameterVisitor(each));
  } else {
    model.visit(ParameterVisitor(each));
  }
}

}  // namespace

HeadGates::HeadGates(const Model& model) {
  std::map<std::string, int> with_output;
  visit_output_weights(model,
                       [&](const std::string& attention, const Parameter&) { with_output[attention] = 1; });
  for (const auto& [name, heads, place] : model.attentions()) {
    if (!with_output.contains(name))
      throw UsageError(fmt::format(
          "{}: a gate of a head is a factor of its rows of W^O, and these heads have none", name));
    Attention& attention = attentions_.emplace_back();
    attention.name = name;
    attention.parameter = std::make_unique<Parameter>(1, heads);
    attention.z.assign(static_cast<size_t>(heads), 1);
    attention.slope.assign(static_cast<size_t>(heads), 0);
  }
}

void HeadGates::visit(const ParameterVisitor& visitor) {
  for (Attention& attention : attentions_) visitor("head_gates." + attention.name, *attention.parameter);
}

void HeadGates::draw(uint64_t seed, uint64_t update) {
  for (size_t i = 0; i < attentions_.size(); ++i) {
    Attention& attention = attentions_[i];
    const PhiloxKey stream = dropout_stream(seed, update, kFirstGateSite + static_cast<uint32_t>(i));
    for (size_t h = 0; h < attention.z.size(); ++h) {
      const PhiloxCounter bits = philox({static_cast<uint32_t>(h), 0, 0, 0}, stream);
      const double u = (static_cast<double>(bits[0]) + 0.5) * 0x1p-32;  // neither 0 nor 1
      const hard_concrete::Value gate = hard_concrete::sampled(attention.log_alpha(static_cast<int>(h)), u);
      attention.z[h] = static_cast<float>(gate.value);
      attention.slope[h] = static_cast<float>(gate.slope * kSpeed);
    }
  }
}

void HeadGates::add_price(double weight) {
  for (Attention& attention : attentions_) {
    const MatrixView gradient = attention.parameter->gradient_sum();
    for (int64_t h = 0; h < gradient.cols; ++h) {
      const double slope = hard_concrete::open(attention.log_alpha(static_cast<int>(h))).slope * kSpeed;
      gradient(0, h) += static_cast<float>(weight * slope);
    }
  }
}

HeadGates::Open HeadGates::open() const {
  Open found;
  for (const Attention& attention : attentions_) {
    for (int64_t h = 0; h < attention.parameter->value.cols(); ++h) {
      const double log_alpha = attention.log_alpha(static_cast<int>(h));
      ++found.heads;
      found.open += hard_concrete::expected(log_alpha).value > 0 ? 1 : 0;
      found.expected += hard_concrete::open(log_alpha).value;
    }
  }
  return found;
}

std::vector<double> HeadGates::gates_of(std::string_view attention) const {
  const auto found = std::find_if(attentions_.begin(), attentions_.end(),
                                  [&](const Attention& one) { return one.name == attention; });
  if (found == attentions_.end()) throw UsageError(fmt::format("there are no gates of {}", attention));
  std::vector<double> gates;
  for (int64_t h = 0; h < found->parameter->value.cols(); ++h)
    gates.push_back(hard_concrete::expected(found->log_alpha(static_cast<int>(h))).value);
  return gates;
}

void HeadGates::reset() {
  for (Attention& attention : attentions_) {
    attention.parameter->value.fill(0);
    attention.parameter->changed();
  }
}

Var HeadGates::at(Tape& tape, const Site& site, const SiteValue& value) {
  const auto found = std::find_if(attentions_.begin(), attentions_.end(),
                                  [&](const Attention& one) { return one.name == site.owner; });
  if (site.part != SitePart::kGates || found == attentions_.end()) return value.value;
  Attention& attention = *found;
  const int64_t sentences = value.value.rows(), heads = value.value.cols();
  MH_ASSERT(heads == std::ssize(attention.z));
  const Var gates = tape.make(sentences, heads, {value.value});
  for (int64_t s = 0; s < sentences; ++s) std::copy_n(attention.z.data(), heads, gates.value().row(s));
  tape.record(gates, [&attention, gates, sentences, heads] {
    const MatrixView gradient = attention.parameter->gradient_sum();
    for (int64_t h = 0; h < heads; ++h) {
      double sum = 0;
      for (int64_t s = 0; s < sentences; ++s) sum += static_cast<double>(gates.gradient()(s, h));
      gradient(0, h) +=
          static_cast<float>(sum * static_cast<double>(attention.slope[static_cast<size_t>(h)]));
    }
  });
  return gates;
}

FoldedGates::FoldedGates(Model& model, const HeadGates& gates) {
  visit_output_weights(model, [&](const std::string& attention, Parameter& w_o) {
    kept_.push_back({.parameter = &w_o, .value = w_o.value.tensor()});
    const std::vector<double> z = gates.gates_of(attention);
    const int64_t size = w_o.value.rows() / std::ssize(z), columns = w_o.value.cols();
    for (int64_t r = 0; r < w_o.value.rows(); ++r) {
      const double gate = z[static_cast<size_t>(r / size)];
      if (gate == 1) continue;
      float* const row = w_o.value.data() + r * columns;
      for (int64_t c = 0; c < columns; ++c)
        row[c] = gate == 0 ? 0 : static_cast<float>(gate * static_cast<double>(row[c]));
    }
    w_o.changed();
  });
}

FoldedGates::~FoldedGates() {
  for (const Kept& kept : kept_) {
    std::copy_n(kept.value.data(), kept.value.size(), kept.parameter->value.data());
    kept.parameter->changed();
  }
}

std::vector<std::string> closed_heads(const Model& model) {
  std::map<std::string, const Parameter*> weights;
  visit_output_weights(
      model, [&](const std::string& attention, const Parameter& w_o) { weights[attention] = &w_o; });
  std::vector<std::string> closed;
  for (const auto& [name, heads, place] : model.attentions()) {
    const auto found = weights.find(name);
    if (found == weights.end()) continue;
    const Tensor w_o = found->second->value.tensor();
    const int64_t each = w_o.size() / heads;
    for (int h = 0; h < heads; ++h) {
      const float* const begin = w_o.data() + h * each;
      if (std::all_of(begin, begin + each, [](float number) { return number == 0; }))
        closed.push_back(fmt::format("{}.{}", name, h));
    }
  }
  return closed;
}

}  // namespace mh
