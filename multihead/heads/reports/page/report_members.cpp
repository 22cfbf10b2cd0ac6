#include "multihead/heads/reports/page/report_members.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/heads/reports/page/page_texts.h"
#include "multihead/nn/head_name.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

constexpr int kReportDigits = 4;

double number_at(const JsonNode& node) {
  if (!node.value().is_number()) node.fail("expected a number");
  return node.value().get<double>();
}

double share_at(const JsonNode& node) {
  const double share = number_at(node);
  if (share < 0 || share > 1) node.fail(fmt::format("expected a share from 0 to 1, got {}", share));
  return share;
}

HeadsJson number_or_null(const JsonNode& of, const char* name) {
  const auto found = of.find(name);
  return found ? HeadsJson(number_at(*found)) : HeadsJson();
}

HeadsJson member_of(const JsonNode& of, const Member& member) {
  if (member.kind == MemberKind::kNumberOrNull) return number_or_null(of, member.name);
  const JsonNode node = of.at(member.name);
  switch (member.kind) {
    case MemberKind::kText:
      return node.text();
    case MemberKind::kCount:
      return node.number();
    case MemberKind::kInterval:
      return interval_at(node);
    case MemberKind::kShare:
      return share_at(node);
    case MemberKind::kNumbers:
      return json_items(node.items(), [](const JsonNode& one) { return HeadsJson(number_at(one)); });
    case MemberKind::kNumber:
    case MemberKind::kNumberOrNull:
      break;
  }
  return number_at(node);
}

}  // namespace

HeadsJson interval_at(const JsonNode& of) {
  return {{"mean", number_at(of.at("mean"))}, {"half", number_or_null(of, "half")}};
}

HeadsJson members_of(const JsonNode& of, std::initializer_list<Member> members) {
  HeadsJson json;
  for (const Member& member : members) json[member.name] = member_of(of, member);
  return json;
}

HeadsJson origin_of(const JsonNode& root) {
  return members_of(root, {{"model", MemberKind::kText}, {"precision", MemberKind::kText}});
}

std::string written_for_page(HeadsJson json) {
  return written(with_short_numbers(std::move(json), kReportDigits));
}

ReportedHeads::ReportedHeads(const Model& model, std::optional<AttentionKind> kind) {
  for (const Model::Attention& attention : model.attentions()) {
    if (kind && attention.place.kind != *kind) continue;
    for (int head = 0; head < attention.heads; ++head) names_.insert(HeadName{attention.name, head}.name());
  }
}

void ReportedHeads::check(const JsonNode& where, const std::string& name) const {
  if (!names_.contains(name))
    where.fail(fmt::format("the model has no head {}; give the report of this model", in_quotes(name)));
}

void ReportedHeads::check_count(const JsonNode& root, size_t count) const {
  if (count != names_.size())
    root.fail(fmt::format("it has {} heads, and the model {}; give the report of this model", count,
                          names_.size()));
}

}  // namespace mh
