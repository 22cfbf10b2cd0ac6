#include "multihead/heads/reports/page/page_opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "multihead/nn/attention_place.h"
#include "multihead/nn/head_name.h"

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
  AttentionKind kind = AttentionKind::kEncoderSelf;
  double strength = 0;
};

bool is_encoder(const OpeningHead& candidate) {
  return candidate.kind == AttentionKind::kEncoderSelf;
}

/// The attention's kind of the head that a part of a report is about.
AttentionKind kind_of_head(const Model& model, const HeadsJson& part) {
  return model.place(parse_head_name(part["head"].get<std::string>()).attention).kind;
}

/// Heads of the encoder come first: they read both ways, and what they find is in the text that was given.
void keep_better(std::optional<OpeningHead>& best, OpeningHead other) {
  const bool better =
      !best || (is_encoder(*best) == is_encoder(other) ? other.strength > best->strength : is_encoder(other));
  if (better) best = std::move(other);
}

/// Of the heads that read; `head`: of this one alone, or "".
std::optional<OpeningHead> best_relation(const Model& model, const HeadsJson& report,
                                         const std::string& head) {
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
         kind_of_head(model, score),
         above});
  }
  return best;
}

std::optional<OpeningHead> best_alignment(const Model& model, const HeadsJson& report,
                                          const std::string& head) {
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
                       kind_of_head(model, score),
                       accuracy - baseline});
  }
  return best;
}

/// What a head gives its weight to: the one before, the next, itself, the first; in cross-attention the first alone.
constexpr size_t kRoles = 4;
std::array<std::optional<OpeningHead>, kRoles> roles(const Model& model, const HeadsJson& stats) {
  const AttentionKind kind = kind_of_head(model, stats);
  const auto candidate = [&](const char* to, double share) {
    return OpeningHead{{.head = stats["head"],
                        .words = fmt::format("each token → {}, {}", to, percent(share)),
                        .by = "role"},
                       kind,
                       share};
  };
  std::array<std::optional<OpeningHead>, kRoles> found;
  found[3] = candidate("the first token", stats["on_first"]);
  if (kind == AttentionKind::kCross) return found;
  found[0] = candidate("the one before", stats["at_offset"]["-1"]);
  found[1] = candidate("the next one", stats["at_offset"]["+1"]);
  found[2] = candidate("itself", stats["at_offset"]["+0"]);
  return found;
}

PageOpening best_role(const Model& model, const HeadsJson& report, const std::string& head) {
  constexpr double kMostly = 0.5;
  std::array<std::optional<OpeningHead>, kRoles> best;
  for (const HeadsJson& stats : report["heads"]) {
    if (!head.empty() && stats["head"] != head) continue;
    const auto of_head = roles(model, stats);
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

PageOpening opening(const Model& model, const HeadsJson& evidence, const std::string& head) {
  std::optional<OpeningHead> best;
  if (!evidence["relations"].is_null()) best = best_relation(model, evidence["relations"], head);
  if (!best && !evidence["alignment"].is_null()) best = best_alignment(model, evidence["alignment"], head);
  return best ? best->opening : best_role(model, evidence["stats"], head);
}

}  // namespace

PageOpening best_opening(const Model& model, const HeadsJson& evidence) {
  return opening(model, evidence, "");
}

PageOpening opening_at(const Model& model, const HeadsJson& evidence, const std::string& head) {
  PageOpening found = opening(model, evidence, head);
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
