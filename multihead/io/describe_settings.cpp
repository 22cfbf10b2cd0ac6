#include "multihead/io/describe_settings.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

namespace mh::detail {

template <class T>
std::string range_text(const Rule<T>& rule) {
  using Limits = std::numeric_limits<T>;
  if (rule.high != Limits::max()) return fmt::format("{} to {}", rule.low, rule.high);
  return rule.low == Limits::lowest() ? std::string() : fmt::format("at least {}", rule.low);
}
template std::string range_text(const Rule<int32_t>&);
template std::string range_text(const Rule<int64_t>&);
template std::string range_text(const Rule<uint64_t>&);
template std::string range_text(const Rule<float>&);
template std::string range_text(const Rule<double>&);

}  // namespace mh::detail
