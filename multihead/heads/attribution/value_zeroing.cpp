#include "multihead/heads/attribution/value_zeroing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "multihead/nn/attention_place.h"

namespace mh {
namespace {

double turned(const float* a, const float* b, int64_t size) {
  double product = 0, of_a = 0, of_b = 0;
  for (int64_t c = 0; c < size; ++c) {
    product += static_cast<double>(a[c]) * static_cast<double>(b[c]);
    of_a += static_cast<double>(a[c]) * static_cast<double>(a[c]);
    of_b += static_cast<double>(b[c]) * static_cast<double>(b[c]);
  }
  return of_a > 0 && of_b > 0 ? std::max(0.0, 1 - product / std::sqrt(of_a * of_b)) : 0;
}

/// "encoder.3": the owner of a layer's sites.
std::string layer_name(const AttentionPlace& place) {
  return fmt::format("{}.{}", place.stack(), place.layer);
}

/// Each sequence of the batch is the text without the value of one token, in every layer at once: all layers read what they read
/// of the whole text, so that one pass shows every layer by itself.
class ZeroedValues final : public Sites {
 public:
  /// whole: kept the inputs and outputs of layers and the last states, of the text alone; first: which token sequence 0 is without.
  ZeroedValues(const SiteValues& whole, const ExplainedText& text, int64_t first, LayerMixes& found)
      : whole_(whole), text_(text), first_(first), found_(found) {
    for (const Model::Attention& attention : text.model().attentions())
      layers_[layer_name(attention.place)] = attention.place;
  }

  bool wants(const Site& site) const override {
    return site.part == SitePart::kInput || site.part == SitePart::kOutput ||
           site.part == SitePart::kValues || is_memory(site);
  }

  Var at(Tape& tape, const Site& site, const SiteValue& value) override {
    if (site.part == SitePart::kInput || is_memory(site)) return as_before(tape, site, value);
    if (site.part == SitePart::kValues) return without_values(tape, site, value);
    measure(site, value);
    return value.value;
  }

 private:
  bool is_memory(const Site& site) const {
    return site.part == SitePart::kStates && site.owner == "encoder" && text_.translates();
  }

  Var as_before(Tape& tape, const Site& site, const SiteValue& value) const {
    const ConstMatrixView one = whole_.value(site.name()).view();
    const MatrixView all = tape.arena().matrix<float>(value.value.rows(), one.cols);
    for (int64_t i = 0; i < all.rows; ++i) std::copy_n(one.row(i % one.rows), one.cols, all.row(i));
    return tape.constant(all);
  }

  Var without_values(Tape& tape, const Site& site, const SiteValue& value) const {
    const ConstMatrixView given = value.value.value();
    const MatrixView all = tape.arena().matrix<float>(given.rows, given.cols);
    for (int64_t i = 0; i < all.rows; ++i) std::copy_n(given.row(i), given.cols, all.row(i));
    const bool of_target =
        text_.model().place(site.owner).kind == AttentionKind::kDecoderSelf && text_.translates();
    const int64_t count = of_target ? text_.targets() : text_.sources();
    for (int64_t s = 0; s * count < all.rows; ++s) {
      const int64_t row = first_ + s - (of_target ? text_.sources() : 0);
      if (row >= 0 && row < count) std::fill_n(all.row(s * count + row), all.cols, 0.0f);
    }
    return tape.constant(all);
  }

  void measure(const Site& site, const SiteValue& value) {
    const ConstMatrixView one = whole_.value(site.name()).view(), all = value.value.value();
    const AttentionPlace place = layers_.find(site.owner)->second;
    const bool decoder = place.kind != AttentionKind::kEncoderSelf;
    LayerMix& mix = (decoder ? found_.decoder : found_.encoder)[static_cast<size_t>(place.layer)];
    for (int64_t row = 0; row < all.rows; ++row) {
      const int64_t token = first_ + row / one.rows, i = row % one.rows;
      const double change = turned(one.row(i), all.row(row), one.cols);
      if (decoder && text_.translates()) {
        if (token < text_.sources()) {
          mix.cross(i, token) = change;
        } else {
          mix.self(i, token - text_.sources()) = change;
        }
      } else if (token < text_.sources()) {
        mix.self(i, token) = change;
      }
    }
  }

  const SiteValues& whole_;
  const ExplainedText& text_;
  int64_t first_;
  LayerMixes& found_;
  std::map<std::string, AttentionPlace, std::less<>> layers_;  // by layer_name()
};

void divide_by_sums(LayerMix& mix) {
  for (int64_t i = 0; i < mix.self.rows(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < mix.self.cols(); ++j) sum += mix.self(i, j);
    for (int64_t j = 0; j < mix.cross.cols(); ++j) sum += mix.cross(i, j);
    if (sum == 0) {
      mix.self(i, i) = 1;
      continue;
    }
    for (int64_t j = 0; j < mix.self.cols(); ++j) mix.self(i, j) /= sum;
    for (int64_t j = 0; j < mix.cross.cols(); ++j) mix.cross(i, j) /= sum;
  }
}

}  // namespace

LayerMixes zeroed_values(const ExplainedText& text, int64_t batch_tokens) {
  SiteValues whole;
  for (const Model::Attention& attention : text.model().attentions()) {
    // By their names: a pattern would also ask for what attentions add, which is then no longer one op with what follows.
    const std::string layer = layer_name(attention.place);
    whole.keep(layer + ".input");
    whole.keep(layer + ".output");
  }
  whole.keep("*coder.states");
  const std::vector<std::vector<int32_t>> one = {text.ids()};
  const ExplainedPass read(text, one, {.sites = &whole});
  const int64_t targets = text.translates() ? text.targets() : text.sources();
  LayerMixes found = mixes_of(text.model(), [&](const Model::Attention& attention) {
    const AttentionKind kind = attention.place.kind;
    if (kind == AttentionKind::kCross) return DoubleMatrix(targets, text.sources());
    const int64_t size = kind == AttentionKind::kEncoderSelf ? text.sources() : targets;
    return DoubleMatrix(size, size);
  });
  const int64_t all = std::ssize(text.ids()), at_once = std::max<int64_t>(1, batch_tokens / all);
  for (int64_t begin = 0; begin < all; begin += at_once) {
    ZeroedValues zeroed(whole, text, begin, found);
    const std::vector<std::vector<int32_t>> copies(static_cast<size_t>(std::min(at_once, all - begin)),
                                                   text.ids());
    const ExplainedPass pass(text, copies, {.sites = &zeroed});
  }
  for (LayerMix& layer : found.encoder) divide_by_sums(layer);
  for (LayerMix& layer : found.decoder) divide_by_sums(layer);
  return found;
}

}  // namespace mh
