#include "multihead/nn/sites.h"

#include <fmt/format.h>

#include <numeric>

#include "multihead/base/error.h"

namespace mh {
namespace {

template <class T>
std::vector<T> joined(std::vector<T> all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

bool of_decoder(const Site& site) {
  return site.owner.starts_with("decoder");
}

}  // namespace

std::string_view name_of(SitePart part) {
  switch (part) {
    case SitePart::kEmbeddings:
      return "embeddings";
    case SitePart::kStates:
      return "states";
    case SitePart::kPooled:
      return "pooled";
    case SitePart::kLogits:
      return "logits";
    case SitePart::kLabels:
      return "labels";
    case SitePart::kTokenLabels:
      return "token_labels";
    case SitePart::kVectors:
      return "vectors";
    case SitePart::kInput:
    case SitePart::kAttentionInput:
      return "input";
    case SitePart::kAfterSelfAttention:
      return "after_self_attention";
    case SitePart::kAfterCrossAttention:
      return "after_cross_attention";
    case SitePart::kFeedForwardInput:
      return "feed_forward.input";
    case SitePart::kSelfNormScale:
      return "self_attention_norm.scale";
    case SitePart::kSelfOutputNormScale:
      return "self_attention_output_norm.scale";
    case SitePart::kCrossNormScale:
      return "cross_attention_norm.scale";
    case SitePart::kCrossOutputNormScale:
      return "cross_attention_output_norm.scale";
    case SitePart::kFeedForwardNormScale:
      return "feed_forward_norm.scale";
    case SitePart::kFeedForwardOutputNormScale:
      return "feed_forward_output_norm.scale";
    case SitePart::kFinalNormScale:
      return "final_norm.scale";
    case SitePart::kQueryInput:
      return "query_input";
    case SitePart::kKeyInput:
      return "key_input";
    case SitePart::kValueInput:
      return "value_input";
    case SitePart::kHidden:
      return "feed_forward.hidden";
    case SitePart::kFeedForward:
      return "feed_forward.output";
    case SitePart::kOutput:
    case SitePart::kAttentionOutput:
      return "output";
    case SitePart::kProjectedQueries:
      return "projected_queries";
    case SitePart::kProjectedKeys:
      return "projected_keys";
    case SitePart::kQueries:
      return "queries";
    case SitePart::kKeys:
      return "keys";
    case SitePart::kValues:
      return "values";
    case SitePart::kGates:
      return "gates";
    case SitePart::kHeads:
      return "heads";
    case SitePart::kScores:
      return "scores";
    case SitePart::kWeights:
      return "weights";
    case SitePart::kContribution:
      return "contributions";
  }
  return "";
}

SiteRows rows_of(const Site& site) {
  switch (site.part) {
    case SitePart::kPooled:
    case SitePart::kLabels:
    case SitePart::kVectors:
    case SitePart::kGates:
      return SiteRows::kOneEach;
    case SitePart::kProjectedKeys:
    case SitePart::kKeys:
    case SitePart::kValues:
    case SitePart::kKeyInput:
    case SitePart::kValueInput:
      return keys_of(site);
    default:
      return of_decoder(site) ? SiteRows::kTarget : SiteRows::kSource;
  }
}

SiteRows keys_of(const Site& site) {
  return of_decoder(site) && !site.owner.ends_with(".cross_attention") ? SiteRows::kTarget
                                                                       : SiteRows::kSource;
}

RowPlaces one_row_each(Arena& memory, int64_t sequences) {
  const std::span<int32_t> offsets = memory.array<int32_t>(sequences + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  return {.offsets = offsets};
}

Var SitesInTurn::at(Tape& tape, const Site& site, const SiteValue& value) {
  SiteValue found = value;
  if (first_ != nullptr && first_->wants(site)) found.value = first_->at(tape, site, value);
  return then_.wants(site) ? then_.at(tape, site, found) : found.value;
}

std::vector<std::string> SitesInTurn::sites_asked() const {
  return first_ != nullptr ? joined(first_->sites_asked(), then_.sites_asked()) : then_.sites_asked();
}

std::vector<HeadPattern> SitesInTurn::heads_asked() const {
  return first_ != nullptr ? joined(first_->heads_asked(), then_.heads_asked()) : then_.heads_asked();
}

void SitesInTurn::check(const SiteShape& site) const {
  if (first_ != nullptr) first_->check(site);
  then_.check(site);
}

void SitesInTurn::check(const HeadName& head) const {
  if (first_ != nullptr) first_->check(head);
  then_.check(head);
}

size_t Site::write_name(std::span<char> to) const {
  return is_of_one_head(part)
             ? fmt::format_to_n(to.data(), to.size(), "{}.{}.{}", owner, name_of(part), head).size
             : fmt::format_to_n(to.data(), to.size(), "{}.{}", owner, name_of(part)).size;
}

std::string Site::name() const {
  std::string name(owner.size() + 40, '\0');
  const size_t size = write_name(name);
  MH_ASSERT(size <= name.size());
  name.resize(size);
  return name;
}

}  // namespace mh
