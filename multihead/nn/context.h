// Context: everything that differs between training, inference and cached decoding (tape, dropout, who is called
// at sites). It is passed through the layers, so that their code is the same in all cases.
#pragma once

#include <cstdint>
#include <optional>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/kernels/dropout.h"
#include "multihead/nn/sites.h"

namespace mh {

/// The random key of the dropout of one update. Without it there is no dropout.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t update = 0;
};

struct Context {
  Tape& tape;
  std::optional<DropoutKey> dropout = std::nullopt;
  Sites* sites = nullptr;  // who is called at the places of docs/sites.md

  bool wants(const Site& site) const { return sites != nullptr && sites->wants(site); }
  /// What a model goes on with at a site.
  Var at(const Site& site, const SiteValue& value) const {
    return wants(site) ? sites->at(tape, site, value) : value.value;
  }
};

/// Returns the dropout of one site for the rows of these sequences; none when the context has no key or the
/// rate is 0.
Dropout dropout_at(const Context& context, float rate, uint32_t site, const Sequences& rows);

}  // namespace mh
