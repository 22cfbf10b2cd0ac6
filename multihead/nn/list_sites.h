// ListSites: tells who is called at sites where the rows of a batch stand in the list of texts that a task was given, so that
// what is asked for by the number of a text does not depend on which texts run together, nor in which order.
//
//   const ListOffsets offsets = ListOffsets::of_texts(lengths);          // of the whole list
//   for (batch ...) {
//     ListSites listed(options.sites, {.texts = numbers_of_the_batch, .offsets = &offsets});
//     Context context{.tape = tape, .sites = listed.sites()};
//
// A list may be a part of a longer one: the sites that an inner ListSites calls may be those of an outer one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/nn/sites.h"

namespace mh {

/// How many rows the texts of a list have at the kinds of sites: [texts + 1] each, or empty where that is not known before
/// they have run, as of words that are still to be made.
struct ListOffsets {
  std::vector<int64_t> sources = {}, targets = {}, each = {};
  int64_t most_sources = 0, most_targets = 0;  // rows of the longest text

  /// Of texts of these lengths, whether an encoder or a decoder reads them.
  static ListOffsets of_texts(std::span<const int64_t> lengths) { return of_pairs(lengths, lengths); }
  /// target_lengths: may be empty.
  static ListOffsets of_pairs(std::span<const int64_t> source_lengths,
                              std::span<const int64_t> target_lengths);
};

/// The batch that runs.
struct ListedBatch {
  std::span<const int64_t> texts = {};   // [S] ListPlaces::texts
  std::span<const int32_t> begins = {};  // [S] ListPlaces::begins
  std::optional<int64_t> count = {};     // ListPlaces::count
  const ListOffsets* offsets = nullptr;  // null: not known
};

/// For one batch at a time; what it is given must outlive the pass.
class ListSites final : public Sites {
 public:
  /// caller: may be null.
  explicit ListSites(Sites* caller, const ListedBatch& batch = {}) : caller_(caller), batch_(batch) {}

  /// Whom to name in the context: null when nobody is called.
  Sites* sites() { return caller_ != nullptr ? this : nullptr; }
  void begin(const ListedBatch& batch) { batch_ = batch; }

  bool wants(const Site& site) const override { return caller_ != nullptr && caller_->wants(site); }
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;
  std::vector<std::string> sites_asked() const override { return caller_->sites_asked(); }
  std::vector<HeadPattern> heads_asked() const override { return caller_->heads_asked(); }
  bool changes() const override { return caller_->changes(); }
  void check(const SiteShape& site) const override { caller_->check(site); }
  void check(const HeadName& head) const override { caller_->check(head); }

 private:
  Sites* caller_;
  ListedBatch batch_;
};

}  // namespace mh
