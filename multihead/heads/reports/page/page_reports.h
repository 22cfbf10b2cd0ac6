// What a page shows of reports that verbs of `multihead heads` wrote before with --json, since their questions are none of a text of the
// page: a circuit is found on pairs of texts, retrieval on long texts with needles, heads that align on a corpus. Only the sources of this room include it.
//
//   const std::string circuit = mh::page_circuit(*folder.model, {.json = read_file("c.json"), .name = "c.json"});
#pragma once

#include <string>

#include "multihead/heads/reports/page/page_run.h"
#include "multihead/models/model.h"

namespace mh {

/// Of a report of `multihead heads circuit` the members that a page shows, in four digits, with kMostDrawnEdges edges at most; of none
/// an empty text. Throws FormatError, the report's name first, on what is no such report, and on one of another model: one whose edges,
/// or their number, are not those of this one.
std::string page_circuit(const Model& model, const PageReport& report);
/// In the same way of a report of `multihead heads retrieval`, whose heads must be those of the model.
std::string page_retrieval(const Model& model, const PageReport& report);
/// Of a report of `multihead heads alignment`, with --no-gold or with a gold alignment, whose heads must be those of the model's
/// cross-attention. `chosen` has the names of heads, and is null of a gold alignment.
std::string page_aligners(const Model& model, const PageReport& report);

}  // namespace mh
