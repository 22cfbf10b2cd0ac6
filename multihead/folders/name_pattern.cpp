#include "multihead/folders/name_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"

namespace mh {

/// Reads a pattern by recursive descent: alternatives of sequences of repeated items.
class NamePatternReader {
 public:
  NamePatternReader(std::string_view pattern, std::vector<NamePattern::Node>& nodes)
      : pattern_(pattern), nodes_(nodes) {}

  size_t whole() {
    const size_t root = either(0);
    if (at_ < pattern_.size()) fail();
    return root;
  }

 private:
  using Node = NamePattern::Node;
  using Kind = Node::Kind;
  static constexpr int kDeepest = 5, kMostTimes = 100;

  [[noreturn]] void fail() const {
    throw FormatError(fmt::format(
        "the pattern {} has something at character {} that is not read; expected characters, ., classes, "
        "groups, |, *, +, ?",
        in_quotes(pattern_, kWholeName), at_ + 1));
  }
  bool more() const { return at_ < pattern_.size(); }
  char now() const { return pattern_[at_]; }
  bool take(char c) {
    if (!more() || now() != c) return false;
    ++at_;
    return true;
  }
  char next() {
    if (!more()) fail();
    return pattern_[at_++];
  }
  size_t add(Node node) {
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  size_t either(int depth) {
    if (depth > kDeepest) fail();
    std::vector<size_t> parts{sequence(depth)};
    while (take('|')) parts.push_back(sequence(depth));
    return parts.size() == 1 ? parts.front() : add({.kind = Kind::kEither, .parts = std::move(parts)});
  }
  size_t sequence(int depth) {
    std::vector<size_t> parts;
    while (more() && now() != '|' && now() != ')') parts.push_back(repeated(depth));
    return add({.kind = Kind::kSequence, .parts = std::move(parts)});
  }
  size_t repeated(int depth) {
    const size_t one = item(depth);
    int least = 1, most = 1;
    if (take('*')) {
      least = 0, most = -1;
    } else if (take('+')) {
      most = -1;
    } else if (take('?')) {
      least = 0;
    } else if (take('{')) {
      least = most = number();
      if (take(',')) most = more() && now() == '}' ? -1 : number();
      if (!take('}') || (most >= 0 && most < least)) fail();
    } else {
      return one;
    }
    take('?');  // lazy: the whole name is matched alike
    return add({.kind = Kind::kRepeat, .parts = {one}, .least = least, .most = most});
  }
  int number() {
    int value = 0;
    const size_t begin = at_;
    while (more() && now() >= '0' && now() <= '9') {
      value = 10 * value + (next() - '0');
      if (value > kMostTimes) fail();
    }
    if (at_ == begin) fail();
    return value;
  }
  size_t item(int depth) {
    const char c = next();
    if (c == '(') {
      if (take('?') && !take(':')) fail();
      const size_t inside = either(depth + 1);
      if (!take(')')) fail();
      return inside;
    }
    if (c == '^') return add({.kind = Kind::kBegin});
    if (c == '$') return add({.kind = Kind::kEnd});
    if (c == '*' || c == '+' || c == '?' || c == '{') {
      --at_;
      fail();
    }
    std::vector<bool> set(256, c == '.');
    if (c == '.') {
      set['\n'] = false;
    } else if (c == '[') {
      read_class(set);
    } else if (c == '\\') {
      escaped(set);
    } else {
      set[static_cast<unsigned char>(c)] = true;
    }
    return add({.kind = Kind::kSet, .set = std::move(set)});
  }
  /// Behind a backslash. Returns the character where it is a single one, else '\0'.
  char escaped(std::vector<bool>& set) {
    const char c = next();
    const auto range = [&](unsigned char low, unsigned char high) {
      for (int i = low; i <= high; ++i) set[static_cast<size_t>(i)] = true;
    };
    if (c == 'd' || c == 'w') range('0', '9');
    if (c == 'w') range('a', 'z'), range('A', 'Z'), range('_', '_');
    if (c == 'd' || c == 'w') return '\0';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) fail();
    set[static_cast<unsigned char>(c)] = true;
    return c;
  }
  void read_class(std::vector<bool>& set) {
    const bool negated = take('^');
    for (bool first = true; first || !take(']'); first = false) {
      char low = next();
      if (low == '[') fail();
      if (low == '\\') low = escaped(set);
      if (low == '\0') continue;
      char high = low;
      if (more() && now() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        high = next();
        if (high == '\\' || high == '[' || high < low) fail();
      }
      for (int i = static_cast<unsigned char>(low); i <= static_cast<unsigned char>(high); ++i)
        set[static_cast<size_t>(i)] = true;
    }
    if (negated) set.flip();
  }

  std::string_view pattern_;
  std::vector<Node>& nodes_;
  size_t at_ = 0;
};

NamePattern::NamePattern(std::string_view pattern) {
  constexpr size_t kLongest = 1000;
  if (pattern.size() > kLongest)
    throw FormatError(fmt::format("the pattern {} has {} characters; expected at most {}", in_quotes(pattern),
                                  pattern.size(), kLongest));
  root_ = NamePatternReader(pattern, nodes_).whole();
}

bool NamePattern::matches(std::string_view name) const {
  Places begin(name.size() + 1, false);
  begin.front() = true;
  return after(root_, name, begin).back();
}

/// The places that a node may end at when it begins at one of `before`.
NamePattern::Places NamePattern::after(size_t node, std::string_view name, const Places& before) const {
  const Node& here = nodes_[node];
  Places found(before.size(), false);
  if (before == found) return found;
  const auto join = [&](const Places& more) {
    bool grew = false;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!more[i] || found[i]) continue;
      found[i] = grew = true;
    }
    return grew;
  };
  switch (here.kind) {
    case Node::Kind::kSet:
      for (size_t i = 0; i < name.size(); ++i)
        found[i + 1] = before[i] && here.set[static_cast<unsigned char>(name[i])];
      return found;
    case Node::Kind::kBegin:
      found.front() = before.front();
      return found;
    case Node::Kind::kEnd:
      found.back() = before.back();
      return found;
    case Node::Kind::kSequence: {
      Places places = before;
      for (const size_t part : here.parts) places = after(part, name, places);
      return places;
    }
    case Node::Kind::kEither:
      for (const size_t part : here.parts) join(after(part, name, before));
      return found;
    case Node::Kind::kRepeat:
      break;
  }
  Places places = before;
  for (int i = 0; i < here.least; ++i) {
    Places next = after(here.parts.front(), name, places);
    if (next == places) break;  // and so it stays
    places = std::move(next);
  }
  join(places);
  for (int i = here.least; here.most < 0 || i < here.most; ++i) {
    places = after(here.parts.front(), name, places);
    if (!join(places)) break;  // nothing new
  }
  return found;
}

}  // namespace mh
