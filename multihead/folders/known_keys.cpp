#include "multihead/folders/known_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::json;

bool begins_as(std::string_view key, std::string_view pattern) {
  return pattern.ends_with('*') && key.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool is_obeyed(const KeyNames& obeyed, std::string_view key) {
  return obeyed.contains(key) || std::any_of(obeyed.begin(), obeyed.end(), [&](const std::string& pattern) {
           return begins_as(key, pattern);
         });
}

const KeyRule* rule_of(const std::vector<KeyRule>& rules, std::string_view key) {
  const auto is_it = [&](const KeyRule& rule) { return rule.key == key; };
  auto found = std::find_if(rules.begin(), rules.end(), is_it);
  if (found == rules.end()) {
    found = std::find_if(rules.begin(), rules.end(),
                         [&](const KeyRule& rule) { return begins_as(key, rule.key); });
  }
  return found == rules.end() ? nullptr : &*found;
}

bool changes_nothing(const KeyRule& rule, const json& value) {
  if (rule.harmless.empty()) return rule.refused.empty();
  const json values = json::parse(rule.harmless);
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Whether the reader looks into the object that is the key's value.
bool knows_inside(const KnownKeys& known, const std::string& key) {
  const std::string begin = key + ".";
  const auto next = known.obeyed.lower_bound(begin);
  return (next != known.obeyed.end() && next->starts_with(begin)) ||
         std::any_of(known.rules.begin(), known.rules.end(),
                     [&](const KeyRule& rule) { return rule.key.starts_with(begin); });
}

void look(const KnownKeys& known, const json& object, const std::string& before, KeyFindings& found) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    const std::string key = before + name;
    if (value.is_object() && knows_inside(known, key)) {
      look(known, value, key + ".", found);
      continue;
    }
    if (is_obeyed(known.obeyed, key)) continue;
    const KeyRule* const rule = rule_of(known.rules, key);
    if (rule != nullptr && changes_nothing(*rule, value)) continue;
    if (rule != nullptr && !rule->refused.empty()) {
      found.refused.push_back(fmt::format("{} is {}; {}", key, json_excerpt(value), rule->refused));
    } else {
      found.unused.push_back(key);
    }
  }
}

}  // namespace

std::string KeyFindings::remark() const {
  if (unused.empty()) return {};
  return with("is not known here and was not used", "are not known here and were not used");
}

std::string KeyFindings::with(std::string_view of_one, std::string_view of_several) const {
  if (unused.size() == 1) return fmt::format("{}: {} {}", file, unused.front(), of_one);
  return fmt::format("{}: {} and {} {}", file, fmt::join(unused.begin(), unused.end() - 1, ", "),
                     unused.back(), of_several);
}

void KeyFindings::throw_if_refused() const {
  if (!refused.empty()) throw FormatError(fmt::format("{}: {}", file, fmt::join(refused, "; ")));
}

template <class Json>
KeyFindings KnownKeys::look_at(const Json& object, std::string_view file) const
  requires requires { object.is_object(); }
{
  if (!object.is_object())
    throw FormatError(fmt::format("{}: expected an object, got {}", file, json_excerpt(object)));
  KeyFindings found{.file = std::string(file)};
  look(*this, object, "", found);
  return found;
}

template KeyFindings KnownKeys::look_at(const json& object, std::string_view file) const;

KeyFindings KnownKeys::look_at(std::string_view text, std::string_view file) const {
  return look_at(parse_json_strictly(text, file), file);
}

KnownKeys& KnownKeys::add(const KnownKeys& other) {
  obeyed.insert(other.obeyed.begin(), other.obeyed.end());
  rules.insert(rules.end(), other.rules.begin(), other.rules.end());
  return *this;
}

}  // namespace mh
