#include "multihead/heads/reports/page/page_opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace mh {
namespace {

/// A relation of Universal Dependencies by the words at its two ends.
struct RelationWords {
  const char *relation, *dependent, *head;
};
constexpr RelationWords kRelations[] = {
    {"det", "article", "noun"},
    {"amod", "adjective", "noun"},
    {"nsubj", "subject", "verb"},
    {"obj", "object", "verb"},
    {"iobj", "indirect object", "verb"},
    {"case", "preposition", "noun"},
    {"aux", "auxiliary", "verb"},
    {"cop", "copula", "predicate"},
    {"advmod", "adverb", "what it modifies"},
    {"nmod:poss", "possessive", "noun"},
    {"nummod", "number", "noun"},
    {"compound", "part of a compound", "noun"},
    {"cc", "conjunction", "conjunct"},
    {"mark", "subordinator", "verb"},
    {"obl", "oblique noun", "verb"},
    {"nmod", "attribute", "noun"},
    {"punct", "punctuation", "head"},
};

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

/// "object → verb" or, of the other directions, "verb → object".
std::string arrow(const std::string& relation, bool to_head) {
  const auto* known = std::find_if(std::begin(kRelations), std::end(kRelations),
                                   [&](const auto& r) { return relation == r.relation; });
  const std::string dependent = known != std::end(kRelations) ? known->dependent : relation,
                    head = known != std::end(kRelations) ? known->head : "its head";
  return to_head ? fmt::format("{} → {}", dependent, head) : fmt::format("{} → {}", head, dependent);
}

struct OpeningHead {
  PageOpening opening = {};
  double strength = 0;
};

bool is_encoder(const OpeningHead& candidate) {
  return candidate.opening.head.starts_with("encoder");
}

/// Heads of the encoder come first: they read both ways, and what they find is in the text that was given.
void keep_better(std::optional<OpeningHead>& best, OpeningHead other) {
  const bool better =
      !best || (is_encoder(*best) == is_encoder(other) ? other.strength > best->strength : is_encoder(other));
  if (better) best = std::move(other);
}

/// Of the heads that read; `head`: of this one alone, or "".
std::optional<OpeningHead> best_relation(const HeadsJson& report, const std::string& head) {
  constexpr int64_t kLeastWords = 50;
  std::optional<OpeningHead> best;
  for (const HeadsJson& score : report[head.empty() ? "best" : "relations"]) {
    const std::string direction = score["direction"], relation = score["relation"];
    if (relation == "all" || direction == "read_by_head" || score["support"].get<int64_t>() < kLeastWords ||
        score["gain_half_width"].is_null() || (!head.empty() && score["head"] != head))
      continue;
    const double above = score["score"].get<double>() - score["baseline"].get<double>() -
                         score["gain_half_width"].get<double>();
    if (above <= 0) continue;
    keep_better(
        best,
        {{.head = score["head"],
          .words = fmt::format("{}, {}", arrow(relation, direction == "to_head"), percent(score["score"])),
          .by = "relation"},
         above});
  }
  return best;
}

std::optional<OpeningHead> best_alignment(const HeadsJson& report, const std::string& head) {
  std::optional<OpeningHead> best;
  const double baseline = report["alignment_baseline"]["accuracy"];
  for (const HeadsJson& score : report["alignment"]) {
    if (!head.empty() && score["head"] != head) continue;
    const double accuracy = score["accuracy"];
    if (accuracy <= baseline) continue;
    const bool predicts = score["query"] == "predicts";
    keep_better(best, {{.head = score["head"],
                        .words = fmt::format("{} → its source word, {}", predicts ? "word to come" : "word",
                                             percent(accuracy)),
                        .by = "alignment"},
                       accuracy - baseline});
  }
  return best;
}

/// What a head gives its weight to: the one before, the next, itself, the first; in cross-attention the first alone.
constexpr size_t kRoles = 4;
std::array<std::optional<OpeningHead>, kRoles> roles(const HeadsJson& stats) {
  const auto candidate = [&](const char* to, double share) {
    return OpeningHead{{.head = stats["head"],
                        .words = fmt::format("each token → {}, {}", to, percent(share)),
                        .by = "role"},
                       share};
  };
  std::array<std::optional<OpeningHead>, kRoles> found;
  found[3] = candidate("the first token", stats["on_first"]);
  if (stats["head"].get<std::string>().find("cross") != std::string::npos) return found;
  found[0] = candidate("the one before", stats["at_offset"]["-1"]);
  found[1] = candidate("the next one", stats["at_offset"]["+1"]);
  found[2] = candidate("itself", stats["at_offset"]["+0"]);
  return found;
}

PageOpening best_role(const HeadsJson& report, const std::string& head) {
  constexpr double kMostly = 0.5;
  std::array<std::optional<OpeningHead>, kRoles> best;
  for (const HeadsJson& stats : report["heads"]) {
    if (!head.empty() && stats["head"] != head) continue;
    const auto of_head = roles(stats);
    for (size_t r = 0; r < kRoles; ++r) {
      if (of_head[r]) keep_better(best[r], *of_head[r]);
    }
  }
  std::optional<OpeningHead> strongest;
  for (const auto& role : best) {
    if (role && role->strength >= kMostly && head.empty()) return role->opening;
    if (role) keep_better(strongest, *role);
  }
  return strongest ? strongest->opening : PageOpening();
}

PageOpening opening(const HeadsJson& evidence, const std::string& head) {
  std::optional<OpeningHead> best;
  if (!evidence["relations"].is_null()) best = best_relation(evidence["relations"], head);
  if (!best && !evidence["alignment"].is_null()) best = best_alignment(evidence["alignment"], head);
  return best ? best->opening : best_role(evidence["stats"], head);
}

}  // namespace

PageOpening best_opening(const HeadsJson& evidence) {
  return opening(evidence, "");
}

PageOpening opening_at(const HeadsJson& evidence, const std::string& head) {
  PageOpening found = opening(evidence, head);
  found.head = head;
  found.by = "given";
  return found;
}

std::vector<int32_t> tokens_of_head(const HeadsJson& evidence, const std::string& head) {
  std::vector<int32_t> ids;
  if (evidence["where"].is_null()) return ids;
  for (const HeadsJson& of : evidence["where"]["heads"]) {
    if (of["head"] != head) continue;
    for (const HeadsJson& token : of["query_tokens"]) ids.push_back(token["id"]);
  }
  return ids;
}

}  // namespace mh
