// Context: everything that differs between training, inference and cached decoding (tape, dropout, who is called
// at sites). It is passed through the layers, so that their code is the same in all cases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "multihead/autograd/tape.h"
#include "multihead/base/finite.h"
#include "multihead/base/matrix_view.h"
#include "multihead/batch/batch.h"
#include "multihead/kernels/dropout.h"
#include "multihead/nn/sites.h"

namespace mh {

/// The random key of the dropout of one update. Without it there is no dropout.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t update = 0;
};

/// Where a pass over whole sequences begins in a stack, in place of its first layer: what stands below was computed before,
/// by a pass over the same sequences that kept the site "STACK.LAYER.input" (of the number of layers: the last "output").
struct LayerStart {
  std::string_view stack;
  int layer = 0;
  ConstMatrixView input = {};  // [N, d_model]
};

struct Context {
  Tape& tape;
  std::optional<DropoutKey> dropout = std::nullopt;
  Sites* sites = nullptr;                   // who is called at the places of docs/sites.md
  std::span<const LayerStart> starts = {};  // at most one of a stack; no site below it is called

  /// Where a stack begins; null: at its first layer.
  const LayerStart* start_of(std::string_view stack) const {
    const auto found = std::find_if(starts.begin(), starts.end(),
                                    [&](const LayerStart& start) { return start.stack == stack; });
    return found == starts.end() ? nullptr : &*found;
  }

  /// What to say of a result that is not finite.
  Blame blame() const { return sites != nullptr && sites->changes() ? Blame::kEdits : Blame::kWeights; }
  bool wants(const Site& site) const { return sites != nullptr && sites->wants(site); }
  /// What a model goes on with at a site.
  Var at(const Site& site, const SiteValue& value) const {
    return wants(site) ? sites->at(tape, site, value) : value.value;
  }
};

/// Returns the dropout of one stream (DropoutStreams) for the rows of these sequences; none when the context has no key or the
/// rate is 0.
Dropout dropout_at(const Context& context, float rate, uint32_t stream, const Sequences& rows);

}  // namespace mh
