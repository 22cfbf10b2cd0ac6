// The names of heads, as users write them: the attention's name and the head's number, or a pattern that several
// names fit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mh {

/// Whether `text` is `pattern` with any characters in place of each *.
bool fits(std::string_view text, std::string_view pattern);
/// Returns the number if `text` is digits only and fits into an int.
std::optional<int> whole_number_in(std::string_view text);

struct HeadName {
  std::string attention;
  int head = 0;

  /// "encoder.3.self_attention.1".
  std::string name() const { return attention + "." + std::to_string(head); }
  bool operator==(const HeadName&) const = default;
};
/// "encoder.3.self_attention.1" -> {"encoder.3.self_attention", 1}; the model checks whether it has such a
/// head. Throws UsageError on a name of another form and on a number above kLargestHeadNumber.
HeadName parse_head_name(std::string_view name);
constexpr int kLargestHeadNumber = 65535;

/// One head by its name, or several by a pattern: * stands for any characters, dots too. All heads of an attention
/// are "encoder.3.self_attention.*", those of all cross-attentions "*.cross_attention.*", and "encoder.*.0" is head
/// 0 of every layer of the encoder. Which heads there are the model says (Model::heads_named).
class HeadPattern {
 public:
  /// All heads, "*".
  HeadPattern() = default;
  /// Throws UsageError on a text that has no * and is no head's name.
  explicit HeadPattern(std::string_view text);

  const std::string& text() const { return text_; }
  /// The head, when the text names one; none when it is a pattern.
  const std::optional<HeadName>& one() const { return one_; }
  bool matches(std::string_view attention, int head) const;

 private:
  std::string text_ = "*";
  std::optional<HeadName> one_;
};

}  // namespace mh
