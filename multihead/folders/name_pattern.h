// NamePattern: a regular expression of Python over the names of modules, as the files of adapters have them
// ("decoder\.layers\.[0-3]\..*q_proj"). Only what such names need is read; look-ahead, references and other things are
// refused.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mh {

/// Characters, `.`, escapes (\. \d \w), classes, groups up to five deep, alternatives, * + ? {m,n}, ^ and $. All places where
/// a part may end are followed at once, so no pattern takes long.
class NamePattern {
 public:
  /// Throws FormatError that quotes the pattern when it has something else.
  explicit NamePattern(std::string_view pattern);
  /// Whether it matches the whole name, as re.fullmatch().
  bool matches(std::string_view name) const;

 private:
  friend class NamePatternReader;
  struct Node {
    enum class Kind { kSet, kBegin, kEnd, kSequence, kEither, kRepeat };
    Kind kind = Kind::kSequence;
    std::vector<bool> set = {};      // kSet: which of the 256 bytes
    std::vector<size_t> parts = {};  // numbers of nodes
    int least = 0, most = 0;         // kRepeat; most is -1 where there is no limit
  };
  using Places = std::vector<bool>;  // of a name: before each byte, and after the last
  Places after(size_t node, std::string_view name, const Places& before) const;

  std::vector<Node> nodes_;
  size_t root_ = 0;
};

}  // namespace mh
