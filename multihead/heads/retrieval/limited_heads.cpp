#include "multihead/heads/retrieval/limited_heads.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

/// How many sites of scores an attention has.
int scores_of(const std::vector<SiteShape>& sites, const std::string& attention) {
  const std::string begin = attention + "." + std::string(name_of(SitePart::kScores)) + ".";
  return static_cast<int>(std::count_if(sites.begin(), sites.end(),
                                        [&](const SiteShape& site) { return site.name.starts_with(begin); }));
}

}  // namespace

std::vector<std::vector<HeadName>> limited_together(const Model& model,
                                                    const std::vector<HeadPattern>& patterns, bool by_group) {
  for (const HeadPattern& pattern : patterns) model.heads_named(pattern);  // that there are such
  std::vector<std::vector<HeadName>> units;
  for (const Model::Attention& attention : model.attentions()) {
    const int groups = by_group ? model.attention(attention.name).geometry().key_heads : attention.heads,
              together = attention.heads / groups;
    for (int first = 0; first < attention.heads; first += together) {
      std::vector<HeadName> heads;
      bool wanted = patterns.empty();
      for (int h = first; h < first + together; ++h) {
        heads.push_back({attention.name, h});
        wanted = wanted || std::any_of(patterns.begin(), patterns.end(), [&](const HeadPattern& pattern) {
                   return pattern.matches(attention.name, h);
                 });
      }
      if (wanted) units.push_back(std::move(heads));
    }
  }
  return units;
}

LimitedHeads::LimitedHeads(const Model& model, const std::vector<HeadName>& heads, int32_t sinks,
                           int32_t window)
    : sinks_(sinks), window_(window) {
  MH_ASSERT(window > 0);
  const std::vector<SiteShape> sites = model.sites();
  for (const HeadName& head : heads) {
    const int each = scores_of(sites, head.attention) / model.attention(head.attention).heads();
    for (int s = 0; s < each; ++s) softmaxes_[head.attention].insert(head.head * each + s);
  }
}

bool LimitedHeads::wants(const Site& site) const {
  if (site.part != SitePart::kScores) return false;
  const auto found = softmaxes_.find(site.owner);
  return found != softmaxes_.end() && found->second.contains(site.head);
}

Var LimitedHeads::at(Tape& tape, const Site&, const SiteValue& at) {
  MH_ASSERT(tape.mode() == Tape::Mode::kEvaluate);
  const ConstMatrixView scores = at.value.value();
  const MatrixView limited = tape.arena().matrix<float>(scores.rows, scores.cols);
  std::copy_n(scores.data, scores.size(), limited.data);
  for (size_t s = 0; s + 1 < at.rows.offsets.size(); ++s) {
    const int32_t begin = at.rows.offsets[s];
    for (int32_t row = begin; row < at.rows.offsets[s + 1]; ++row) {
      const int64_t beyond =
          int64_t{at.rows.position(row, begin)} - window_ + 1;  // the first key of the window
      if (beyond > sinks_)
        std::fill(limited.row(row) + sinks_, limited.row(row) + beyond,
                  -std::numeric_limits<float>::infinity());
    }
  }
  return tape.constant(limited);
}

}  // namespace mh
