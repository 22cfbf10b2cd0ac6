// HeadSources: what each token that a head reads adds to F through the head (heads_contributions.h):
//
//   source(j) = sum_i gate A(i, j) v(j) g(i)      A the weights, v the values, g the gradient of F by what the head gives
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/contributions/stream_parts.h"
#include "multihead/heads/sites/site_values.h"

namespace mh {

class HeadSources {
 public:
  /// REQUIRES: the parts are heads and outlive this.
  explicit HeadSources(const std::vector<Contribution*>& heads);

  /// What a pass over the same text must keep before put().
  SiteValues& values() { return values_; }
  /// Puts the sources. A head that does not give the sum of its weights times values gets none; `remark` hears of it.
  void put(const StreamParts& stream, const std::function<void(const std::string&)>& remark) const;

 private:
  /// Whether the sources add up to the head's part.
  bool put(Contribution& head, const StreamParts::Part& part) const;

  std::vector<Contribution*> heads_;
  SiteValues values_;
};

}  // namespace mh
