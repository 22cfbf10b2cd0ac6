// The names of heads, as users write them: the attention's name and the head's number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mh {

/// Returns the number if `text` is digits only and fits into an int.
std::optional<int> whole_number_in(std::string_view text);

struct HeadName {
  std::string attention;
  int head = 0;
};
/// "encoder.3.self_attention.1" -> {"encoder.3.self_attention", 1}; the model checks whether it has such a
/// head. Throws UsageError on a name of another form and on a number above kLargestHeadNumber.
HeadName parse_head_name(std::string_view name);
constexpr int kLargestHeadNumber = 65535;

}  // namespace mh
