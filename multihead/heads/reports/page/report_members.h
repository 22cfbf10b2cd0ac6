// What a page takes over from a report that a verb wrote before: its members, each of the kind that it must be, and its names of heads,
// which must be the model's. It shows nlohmann's type, so only the sources of this folder include it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>

#include "multihead/heads/reports/json_parts.h"
#include "multihead/models/model.h"
#include "multihead/nn/attention_place.h"
#include "multihead/text/json_node.h"

namespace mh {

enum class MemberKind { kText, kCount, kNumber, kShare, kNumberOrNull, kNumbers, kInterval };

struct Member {
  const char* name;
  MemberKind kind;
};

/// These members alone. Throws FormatError, the file and the path first, on one that is missing or of another kind; a share is a number
/// from 0 to 1.
HeadsJson members_of(const JsonNode& of, std::initializer_list<Member> members);
/// {"mean", "half"}; half is null where it is not known.
HeadsJson interval_at(const JsonNode& of);
/// Which model the report names, and how precisely that ran.
HeadsJson origin_of(const JsonNode& root);
/// As the page has it: in four digits.
std::string written_for_page(HeadsJson json);

/// The names of heads that a report may have. Each check throws FormatError, which tells to give the report of this model.
class ReportedHeads {
 public:
  /// Of all attentions, or of one kind alone.
  explicit ReportedHeads(const Model& model, std::optional<AttentionKind> kind = std::nullopt);

  void check(const JsonNode& where, const std::string& name) const;
  /// That there are as many as the model has.
  void check_count(const JsonNode& root, size_t count) const;

 private:
  std::set<std::string> names_;
};

}  // namespace mh
