#include "multihead/heads/reports/where_json.h"

#include <array>
#include <vector>

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of_token(const EvidenceToken& token) {
  return {{"token", token.token},
          {"word", token.word.empty() ? HeadsJson() : HeadsJson(token.word)},
          {"begin", token.begin},
          {"end", token.end}};
}

HeadsJson json_of_sentences(const std::vector<EvidenceSentence>& sentences, AttentionKind kind) {
  HeadsJson all = HeadsJson::array();
  for (const EvidenceSentence& sentence : sentences) {
    HeadsJson& json = all.emplace_back();
    json["line"] = sentence.line;
    json["strength"] = sentence.strength;
    json["query"] = json_of_token(sentence.query);
    json["key"] = json_of_token(sentence.key);
    json["text"] = *sentence.query_text;
    if (kind == AttentionKind::kCross) json["source"] = *sentence.key_text;
  }
  return all;
}

HeadsJson json_of_shares(const std::vector<TokenShare>& shares, const char* weight) {
  return json_items(shares, [&](const TokenShare& share) -> HeadsJson {
    return {{"token", share.token}, {"id", share.id},
            {"count", share.count}, {"occurrences", share.occurrences},
            {"share", share.share}, {"expected", share.expected},
            {"lift", share.lift()}, {"score", share.score()},
            {weight, share.weight}};
  });
}

}  // namespace

std::string where_json(const WhereReport& report, const std::string& model) {
  HeadsJson json = json_of_model(model);
  add_read(json, report.read);
  json["heads"] = HeadsJson::array();
  for (const HeadEvidence& head : report.heads) {
    const AttentionKind kind = head.place.kind;
    HeadsJson& of = json["heads"].emplace_back();
    of["head"] = head.name();
    of["queries"] = head.queries;
    of["sure"] = head.sure;
    of["strengths"] = head.strengths;
    of["quartiles"] = json_items(std::array{0.25, 0.5, 0.75},
                                 [&](double share) { return json_or_null(head.quantile(share)); });
    of["strongest"] = json_of_sentences(head.strongest, kind);
    of["usual"] = json_of_sentences(head.usual, kind);
    of["key_tokens"] = json_of_shares(head.key_tokens, "weight");
    of["query_tokens"] = json_of_shares(head.query_tokens, "rate");
    of["alike"] = json_items(head.alike, [](const HeadLike& like) -> HeadsJson {
      return {{"head", like.head.name()}, {"agreement", like.agreement}, {"by_chance", like.by_chance}};
    });
  }
  return written(json);
}

}  // namespace mh
