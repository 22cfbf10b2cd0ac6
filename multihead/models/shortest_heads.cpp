#include "multihead/models/shortest_heads.h"

#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mh {

HeadGeometry shortest(HeadGeometry g, int d_model) {
  const HeadGeometry whole = completed(g, d_model, "");
  const auto leave_out = [&](const auto& field, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, std::optional<float>>) {
      const Value kept = std::exchange(value, Value{});
      if (!problems_of(g, d_model).empty() || completed(g, d_model, "") != whole) value = kept;
    }
    static_cast<void>(field);
  };
  // The scale follows from sizes, values' sizes from keys': what depends on others is left out first.
  const auto in_turn = [&](const std::set<std::string_view>& names) {
    HeadGeometry::describe(g, [&](const HeadField& field, auto& value, const auto&...) {
      if (names.contains(field.name)) leave_out(field, value);
    });
  };
  for (const char* name : {"scale", "value_heads", "key_heads", "d_value", "d_key"}) in_turn({name});
  HeadGeometry::describe(g, [&](const HeadField& field, auto& value, const auto&...) {
    if (field.only) leave_out(field, value);
  });
  return g;
}

}  // namespace mh
