// The head at which a page opens, and what it does in words, from the evidence of a run as the header of the page has it. Only the
// sources of this room include it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/heads/reports/json_parts.h"
#include "multihead/models/model.h"

namespace mh {

struct PageOpening {
  std::string head = {};   // "encoder.0.self_attention.2"
  std::string words = {};  // "article → noun, 97 %"
  std::string by = {};     // which evidence says so: "relation", "alignment", "role", "given"
};

/// With trees or alignments the head whose score's lower bound is furthest above the best fixed offset (of alignments, whose intervals
/// are not known, the score); without, the one that gives most weight to the token before, the next, its own or the
/// first, in this order from a half on. Heads of an encoder come before others, and of equal ones
/// the first. Throws UsageError on heads that the model does not have.
PageOpening best_opening(const Model& model, const HeadsJson& evidence);
/// A head that the user named: its strongest relation, or else what it does most.
PageOpening opening_at(const Model& model, const HeadsJson& evidence, const std::string& head);

/// The ids of the query tokens at which a head is sure more often than elsewhere, the first of which stands out most; empty where
/// evidence does not say.
std::vector<int32_t> tokens_of_head(const HeadsJson& evidence, const std::string& head);

}  // namespace mh
