// The names of heads, as users write them: an attention's name and a number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mh {

/// A number of digits only, not above the largest int.
std::optional<int> whole_number_in(std::string_view text);

struct HeadName {
  std::string attention;
  int head = 0;
};
/// "encoder.3.self_attention.1" -> {"encoder.3.self_attention", 1}; whether there is such a head is the
/// model's to say. Throws UsageError on a name of another form and on a number above kLargestHeadNumber.
HeadName parse_head_name(std::string_view name);
constexpr int kLargestHeadNumber = 65535;

}  // namespace mh
