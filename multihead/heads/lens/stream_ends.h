// StreamEnds: the places of a model's last stack at which the lens reads, and the model's end run on the stream of each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/heads/sites/stack_streams.h"
#include "multihead/models/model.h"
#include "multihead/nn/context.h"

namespace mh {

class StreamEnds {
 public:
  /// The stack whose states the model predicts by: `stack`. sublayers: LensOptions::sublayers.
  StreamEnds(const Model& model, std::string stack, bool sublayers);

  const std::vector<LensPlace>& places() const { return places_; }
  /// The sites that a first pass must keep: those of the places, and where a decoder's encoder ends.
  const std::vector<std::string>& kept_sites() const { return kept_; }
  /// Calls read(place, context) for each place. A pass of the model over the sequences of the first pass begins, with that context,
  /// behind the last layers, with the stream of the place. What is on the tape is gone afterwards.
  void each(const SiteValues& first_pass, Sites* sites,
            const std::function<void(size_t place, Context& context)>& read) const;

 private:
  std::string stack_;
  StackStreams streams_;
  std::vector<LensPlace> places_;
  std::vector<std::string> kept_;
};

}  // namespace mh
