#include "multihead/heads/lens/stream_ends.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "multihead/nn/sites.h"

namespace mh {

StreamEnds::StreamEnds(const Model& model, std::string stack, bool sublayers)
    : stack_(std::move(stack)), streams_(model) {
  places_.push_back({.site = Site{stack_, SitePart::kEmbeddings}.name()});
  std::set<std::string> there;
  for (const SiteShape& site : model.sites()) there.insert(site.name);
  for (int layer = 0; layer < streams_.layers().at(stack_); ++layer) {
    for (const SitePart part :
         {SitePart::kAfterSelfAttention, SitePart::kAfterCrossAttention, SitePart::kOutput}) {
      std::string site = Site{fmt::format("{}.{}", stack_, layer), part}.name();
      if (there.contains(site) && (sublayers || part == SitePart::kOutput))
        places_.push_back({.site = std::move(site), .layer = layer});
    }
  }
  for (const LensPlace& place : places_) kept_.push_back(place.site);
  if (const auto encoder = streams_.layers().find("encoder"); encoder != streams_.layers().end())
    kept_.push_back(streams_.site(encoder->first, encoder->second));
}

void StreamEnds::each(const SiteValues& first_pass, Sites* sites,
                      const std::function<void(size_t, Context&)>& read) const {
  const int layers = streams_.layers().at(stack_);
  const std::string end = streams_.site(stack_, layers);
  Tape tape;
  for (size_t place = 0; place < places_.size(); ++place) {
    const std::vector<LayerStart> starts = streams_.starts(stack_, layers, [&](const std::string& site) {
      return std::as_const(first_pass.value(site == end ? places_[place].site : site)).view();
    });
    Context context{.tape = tape, .sites = sites, .starts = starts};
    read(place, context);
    tape.clear();
  }
}

}  // namespace mh
