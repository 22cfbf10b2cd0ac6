// Damages a model so that attention scores overflow, whatever it reads: its weights stay finite.
#pragma once

#include <stdexcept>
#include <string>

#include "multihead/models/model.h"

namespace mh::test {

/// In every attention whose name ends with `attention`, all queries are 3e38 and all keys 3e38 * sign, so that
/// every score is infinite with that sign.
inline void overflow_scores(Model& model, const std::string& attention, float sign) {
  int changed = 0;
  model.visit([&](const std::string& name, Parameter& parameter) {
    const auto is = [&](const char* leaf) { return name.ends_with(attention + leaf); };
    const auto fill = [&](float value) {
      parameter.value.fill(value);
      parameter.changed();
      ++changed;
    };
    if (is(".w_q") || is(".w_k")) fill(0);
    if (is(".b_q")) fill(3e38f);
    if (is(".b_k")) fill(3e38f * sign);
  });
  if (changed == 0 || changed % 4 != 0) throw std::logic_error("no such attention with biases: " + attention);
}

}  // namespace mh::test
