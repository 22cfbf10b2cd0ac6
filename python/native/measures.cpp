// BLEU, the ledger, and how many threads compute.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "call.h"
#include "module_parts.h"
#include "multihead/base/thread_pool.h"
#include "multihead/evaluate/bleu.h"
#include "multihead/models/named_geometry.h"
#include "multihead/nn/ledger.h"
#include "settings.h"

namespace mh::python {
namespace {

/// A dictionary of Python whose keys are names.
using Named = nb::typed<nb::dict, nb::str, nb::any>;

/// references[r][i]: reference r of sentence i.
Named bleu(const std::vector<std::string>& hypotheses,
           const std::vector<std::vector<std::string>>& references, const std::string& settings) {
  const auto config = settings_of<BleuConfig>(settings, "bleu");
  std::string signature;
  const BleuScore score = long_call([&] {
    const Bleu scorer(config, references);
    signature = scorer.signature();
    return scorer.score(hypotheses);
  });
  Named found;
  found["score"] = score.score;
  found["precisions"] = std::vector<double>(score.precisions.begin(), score.precisions.end());
  found["brevity_penalty"] = score.brevity_penalty;
  found["hypothesis_length"] = score.counts.hyp_len;
  found["reference_length"] = score.counts.ref_len;
  found["line"] = score.line();
  found["signature"] = signature;
  return found;
}

nb::typed<nb::list, Named> costs(const std::string& geometry, int heads, int d_model, int64_t queries,
                                 int64_t keys, bool causal) {
  HeadGeometry described{.heads = heads};
  if (!geometry.empty()) described = named_geometry(geometry, heads, d_model);
  LedgerOptions options;
  if (causal) options.mask = Mask::causal();
  const Ledger counted = ledger(described, d_model, queries, keys, options);
  std::vector<LedgerPart> parts = counted.parts;
  parts.push_back(counted.total());
  parts.back().name = "total";
  nb::typed<nb::list, Named> rows;
  for (const LedgerPart& part : parts) {
    Named row;
    row["part"] = part.name;
    row["parameters"] = part.parameters;
    row["multiply_adds"] = part.multiply_adds;
    row["other_flops"] = part.other_flops;
    row["flops"] = part.flops();
    row["exponentials"] = part.exponentials;
    row["read_bytes"] = part.read_bytes;
    row["written_bytes"] = part.written_bytes;
    row["kept_bytes"] = part.kept_bytes;
    rows.append(row);
  }
  return rows;
}

std::vector<std::string> geometry_list() {
  std::vector<std::string> names;
  for (const GeometryName& one : geometry_names()) names.emplace_back(one.name);
  return names;
}

}  // namespace

void add_measures(nb::module_& module) {
  using namespace nb::literals;
  module.def("bleu", bleu, "hypotheses"_a, "references"_a, nb::kw_only(), "settings"_a);
  module.def("ledger", costs, "geometry"_a, nb::kw_only(), "heads"_a, "d_model"_a, "queries"_a, "keys"_a,
             "causal"_a);
  module.def("geometries", geometry_list);
  module.def("threads", thread_count);
  module.def(
      "set_threads", [](int threads) { long_call([&] { set_thread_count(threads); }); }, "threads"_a);
}

}  // namespace mh::python
