#include "multihead/base/suggestions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace mh {
namespace {

constexpr size_t kMostSuggestions = 3;
constexpr size_t kLongestGiven = 64;  // nobody mistypes a longer name, and distances take time
constexpr size_t kTooFar = std::numeric_limits<size_t>::max();

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// Letters to insert, leave out, replace or swap with the next one (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> distance(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                                 distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find_first_of("-_", at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// src: source, size: size.
bool shortens(std::string_view part, std::string_view word) {
  if (word.starts_with(part)) return !part.empty();
  if (part.size() < 3 || part.front() != word.front()) return false;  // two letters shorten many words
  size_t at = 0;
  for (const char letter : part) {
    at = word.find(letter, at);
    if (at == std::string_view::npos) return false;
    ++at;
  }
  return true;
}

// How far `given` is from `name`; kTooFar: too far to be meant.
size_t cost(std::string_view given, std::string_view name) {
  size_t least = kTooFar;
  const size_t edits = edit_distance(given, name);
  if (3 * edits <= std::max(given.size(), name.size())) least = edits;
  if (given.size() < 2) return least;
  const auto of_given = parts_of(given), of_name = parts_of(name);
  const bool each_part = of_given.size() == of_name.size() &&
                         std::equal(of_given.begin(), of_given.end(), of_name.begin(), shortens);
  if (name.starts_with(given) || each_part) least = std::min<size_t>(least, 1);
  const bool some_parts = std::all_of(of_given.begin(), of_given.end(), [&](std::string_view part) {
    return std::find(of_name.begin(), of_name.end(), part) != of_name.end();
  });
  std::string initials;
  for (const std::string_view part : of_name) initials += part.substr(0, 1);
  const bool more_parts =
      of_given.size() > of_name.size() && std::equal(of_name.begin(), of_name.end(), of_given.begin());
  if (some_parts || more_parts || initials == given) least = std::min<size_t>(least, 2);
  return least;
}

}  // namespace

std::vector<std::string> suggestions(std::string_view given, const std::vector<std::string>& names) {
  given = without_dashes(given);
  if (given.empty() || given.size() > kLongestGiven) return {};
  std::vector<std::string> nearest;
  size_t least = kTooFar;
  for (const std::string& name : names) {
    const size_t now = cost(given, without_dashes(name));
    if (now > least || now == kTooFar) continue;
    if (now < least) nearest.clear();
    least = now;
    nearest.push_back(name);
  }
  if (nearest.size() > kMostSuggestions) nearest.resize(kMostSuggestions);
  return nearest;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& names) {
  const std::vector<std::string> nearest = suggestions(given, names);
  return nearest.empty() ? "" : fmt::format("did you mean {}?", fmt::join(nearest, " or "));
}

}  // namespace mh
