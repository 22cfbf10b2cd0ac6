#include "cli/head_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/weights_hash.h"

namespace mh::cli {
namespace {

/// "HEAD=VALUE" in two.
struct HeadChange {
  std::string head, value;
};

HeadChange head_change(std::string_view flag, const std::string& given, std::string_view example) {
  const size_t at = given.rfind('=');
  if (at == std::string::npos)
    throw UsageError(fmt::format("{} {}: expected = and a value behind the head, such as {}={}", flag, given,
                                 given, example));
  return {given.substr(0, at), given.substr(at + 1)};
}

float gate_in(const HeadChange& change) {
  double gate = 0;  // what is too small for a float is 0
  const std::string& text = change.value;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, gate);
  if (error == std::errc() && stop == end && std::abs(gate) <= std::numeric_limits<float>::max())
    return static_cast<float>(gate);
  throw UsageError(fmt::format("--gate {}=: expected a finite number, got {}", change.head,
                               text.empty() ? "nothing" : text));
}

WeightRule rule_in(const HeadChange& change) {
  if (const auto rule = value_named(change.value, kWeightRuleNames)) return *rule;
  throw UsageError(fmt::format("--replace {}=: expected {}, got {}", change.head,
                               names_listed(kWeightRuleNames),
                               change.value.empty() ? "nothing" : change.value));
}

/// "FILE" or "FILE=X", also of a file with = in its name.
std::pair<std::string, float> steering_in(const std::string& given) {
  const size_t at = given.rfind('=');
  if (at == std::string::npos || is_there(given)) return {given, 1.0f};
  const std::string strength = given.substr(at + 1);
  if (const auto number = number_in<float>(strength); number && std::isfinite(*number))
    return {given.substr(0, at), *number};
  throw UsageError(fmt::format("--steer {}=: expected a finite number, got {}", given.substr(0, at),
                               strength.empty() ? "nothing" : strength));
}

}  // namespace

void add_head_change_flags(Verb& verb, HeadChangeFlags& flags, const std::string& example) {
  const auto add = [&](const char* flag, std::vector<std::string>& given, const std::string& help,
                       const char* value) { verb.add_option(flag, given, help)->again()->type_name(value); };
  add("--mute", flags.mute,
      fmt::format("Set the output of a head to 0, e.g. {}, or of several: '{}*'; may be given again", example,
                  example.substr(0, example.rfind('.') + 1)),
      "HEAD");
  add("--gate", flags.gate, "Multiply the output of a head, or of several, by X; may be given again",
      "HEAD=X");
  add("--replace", flags.replace,
      "Replace the weights of a head, or of several, by a rule: uniform, previous (the key before the "
      "query) or first (the first key); may be given again",
      "HEAD=RULE");
  add("--steer", flags.steer,
      "Add a direction (heads steer --save) at its site, times X or once; may be given again", "FILE[=X]");
  rare_flags(verb, {"--gate", "--replace", "--steer"});
}

void ChangedHeads::check(const ModelFolder& folder) const {
  if (!directions.empty()) {
    const std::string weights = weights_hash(folder);
    for (const SteerDirection& direction : directions) check_direction(direction, *folder.model, weights);
  }
  folder.model->check(values);
}

ChangedHeads changed_heads(const HeadChangeFlags& flags) {
  ChangedHeads found;
  SiteValues& changed = found.values;
  for (const std::string& head : flags.mute) changed.mute(head);
  for (const std::string& given : flags.gate) {
    const HeadChange change = head_change("--gate", given, "0.5");
    if (std::find(flags.mute.begin(), flags.mute.end(), change.head) != flags.mute.end())
      throw UsageError(
          fmt::format("{} is given to --mute and to --gate; give it to one of them", change.head));
    changed.set_gate(change.head, gate_in(change));
  }
  for (const std::string& given : flags.replace) {
    const HeadChange change = head_change("--replace", given, "uniform");
    changed.replace_weights(change.head, rule_in(change));
  }
  for (const std::string& given : flags.steer) {
    const auto [file, strength] = steering_in(given);
    found.directions.push_back(read_direction(file));
    changed.add(found.directions.back().times(strength));
  }
  if (flags.compare && changed.empty())
    throw UsageError("--compare needs heads that are changed; give --mute, --gate, --replace or --steer");
  return found;
}

}  // namespace mh::cli
