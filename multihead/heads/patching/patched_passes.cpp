#include "multihead/heads/patching/patched_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "multihead/heads/sites/observe_text.h"
#include "multihead/nn/list_sites.h"
#include "multihead/nn/stack_config.h"

namespace mh {
namespace {

std::string heads_site(const std::string& attention) {
  return Site{attention, SitePart::kHeads}.name();
}

}  // namespace

PatchedPasses::PatchedPasses(const PatchReader& reader, const PatchTexts& texts, const Options& options)
    : reader_(reader), texts_(texts), options_(options), streams_(reader.model()) {
  if (options.sites != nullptr) reader.check(*options.sites);
  for (const Model::Attention& attention : reader.model().attentions())
    head_columns_[heads_site(attention.name)] = 0;
  for (const SiteShape& site : reader.model().sites()) {
    if (const auto found = head_columns_.find(site.name); found != head_columns_.end())
      found->second = site.columns / site.blocks;
  }
  const auto keep_part = [&](SiteValues& values) {
    if (options_.part == PatchedPart::kHeads) values.keep("*.heads");
    if (options_.part == PatchedPart::kPattern) values.keep("*.weights.*");
  };
  keep_part(clean_);
  if (options_.part == PatchedPart::kStream) streams_.keep(clean_);
  keep_part(corrupt_);
  streams_.keep(corrupt_);
  clean_score_ = run(texts.clean, 1, clean_)[0];
  corrupt_score_ = run(texts.corrupt, 1, corrupt_)[0];
}

std::string PatchedPasses::name_of(const PatchPlace& place) const {
  return place.attention.empty() ? streams_.site(place.stack, place.layer)
                                 : fmt::format("{}.{}", place.attention, place.head);
}

std::vector<AnswerScores> PatchedPasses::run(const PatchText& text, int64_t copies, Sites& then,
                                             std::span<const LayerStart> starts) {
  const std::vector<int64_t> first(static_cast<size_t>(copies), 0);
  const int64_t source = std::ssize(text.ids), target = std::ssize(texts_.target.ids);
  const ListOffsets offsets =
      ListOffsets::of_pairs(std::span(&source, 1), std::span(target > 0 ? &target : &source, 1));
  ListSites listed(options_.sites, {.texts = first, .count = 1, .offsets = &offsets});
  SitesInTurn sites(listed.sites(), then);
  Context context{.tape = tape_, .sites = &sites, .starts = starts};
  std::vector<AnswerScores> scores = reader_.read(context, text, copies);
  tape_.clear();
  return scores;
}

int32_t PatchedPasses::positions(const std::string& stack) const {
  const bool reads_target = stack == "decoder" && !texts_.target.ids.empty();
  return static_cast<int32_t>((reads_target ? texts_.target : texts_.corrupt).ids.size());
}

std::vector<AnswerScores> PatchedPasses::patched(std::span<const PatchPlace> places) {
  const int64_t tokens = std::ssize(texts_.corrupt.ids) + std::ssize(texts_.target.ids);
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, options_.max_batch_tokens / tokens));
  std::vector<AnswerScores> all;
  for (size_t begin = 0; begin < places.size(); begin += at_once) {
    const std::vector<AnswerScores> some =
        patched_batch(places.subspan(begin, std::min(at_once, places.size() - begin)));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

template <class ColumnsOf>
Tensor PatchedPasses::mixed(const std::string& site, std::span<const PatchPlace> places,
                            const ColumnsOf& columns_of) const {
  const ConstMatrixView corrupt = corrupt_.value(site).view();
  Tensor all(corrupt.rows * std::ssize(places), corrupt.cols);
  for (size_t copy = 0; copy < places.size(); ++copy) {
    const auto first = static_cast<int64_t>(copy) * corrupt.rows;
    const MatrixView own = all.view().rows_between(first, first + corrupt.rows);
    for (int64_t i = 0; i < corrupt.rows; ++i) std::copy_n(corrupt.row(i), corrupt.cols, own.row(i));
    const Columns from_clean = columns_of(places[copy]);
    if (from_clean.begin == from_clean.end) continue;
    const ConstMatrixView clean = clean_.value(site).view();
    for (int64_t i = 0; i < corrupt.rows; ++i) {
      if (!places[copy].position || *places[copy].position == i)
        std::copy(clean.row(i) + from_clean.begin, clean.row(i) + from_clean.end,
                  own.row(i) + from_clean.begin);
    }
  }
  return all;
}

void PatchedPasses::put_part(std::span<const PatchPlace> places, SiteValues& put) const {
  const std::string& attention = places[0].attention;
  if (options_.part == PatchedPart::kHeads) {
    const std::string site = heads_site(attention);
    const int64_t width = head_columns_.at(site);
    put.replace({.site = site, .numbers = mixed(site, places, [&](const PatchPlace& place) {
                                 return Columns{place.head * width, (place.head + 1) * width};
                               })});
    return;
  }
  std::set<int> heads;
  for (const PatchPlace& place : places) heads.insert(place.head);
  for (const int head : heads) {
    const std::string site = weights_site({attention, head});
    const int64_t keys = corrupt_.value(site).cols();
    put.replace({.site = site, .numbers = mixed(site, places, [&](const PatchPlace& place) {
                                 return Columns{0, place.head == head ? keys : 0};
                               })});
  }
}

std::vector<AnswerScores> PatchedPasses::patched_batch(std::span<const PatchPlace> places) {
  const PatchPlace& first = places[0];
  const bool of_stream = options_.part == PatchedPart::kStream;
  SiteValues put;
  if (!of_stream) put_part(places, put);
  std::vector<Tensor> inputs;
  inputs.reserve(2);  // the starts point into them
  const std::vector<LayerStart> starts =
      streams_.starts(first.stack, first.layer, [&](const std::string& site) {
        const int64_t columns = of_stream && inputs.empty() ? corrupt_.value(site).cols() : 0;
        inputs.push_back(mixed(site, places, [&](const PatchPlace&) { return Columns{0, columns}; }));
        return std::as_const(inputs.back()).view();
      });
  return run(texts_.corrupt, std::ssize(places), put, starts);
}

}  // namespace mh
