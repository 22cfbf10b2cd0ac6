#include "multihead/io/check_option.h"

#include <fmt/format.h>

#include <cstdint>

#include "multihead/base/error.h"

namespace mh::detail {

template <class T>
void refuse_option(std::string_view name, T value, Rule<T> rule) {
  throw UsageError(
      fmt::format("`{}`: expected {}, got {}", name, numbers_within(rule.low, rule.high), value));
}
template void refuse_option(std::string_view, int32_t, Rule<int32_t>);
template void refuse_option(std::string_view, int64_t, Rule<int64_t>);
template void refuse_option(std::string_view, uint64_t, Rule<uint64_t>);
template void refuse_option(std::string_view, float, Rule<float>);
template void refuse_option(std::string_view, double, Rule<double>);

}  // namespace mh::detail
