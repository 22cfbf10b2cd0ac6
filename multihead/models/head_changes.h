// HeadChanges: some fields of a HeadGeometry that override those of another one, e.g. what flags such as
// --d-key set beside --geometry, or what JSON sets. The list of fields comes from HeadGeometry::describe().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "multihead/io/config.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

/// Ranges of the settings that stand beside a geometry.
inline constexpr Rule<int32_t> kModelWidths{.low = 1, .high = 65536};
inline constexpr Rule<int32_t> kHeadCounts{.low = 1, .high = 65536};

class HeadChanges {
 public:
  /// Reads JSON with the names of files, as HeadGeometry::visit() gives them; what is left out is not changed, and a size of
  /// 0 is refused. Throws FormatError that starts with `name`.
  static HeadChanges of_json(std::string_view text, std::string_view name);

  bool empty() const { return given_.empty(); }
  /// Overwrites the fields of `geometry` that were set here.
  void apply(HeadGeometry& geometry) const;

  /// Visits the fields as settings among others; there "input" is called head_input. Lists of columns are
  /// left out, since only files have them.
  template <class V>
  void visit(V& v) {
    show<Names::kOfSettings>(v);
  }

 private:
  enum class Names { kOfSettings, kOfFiles };
  template <Names kNames, class V>
  void show(V& v);

  HeadGeometry values_;
  std::set<std::string, std::less<>> given_;  // by the names of files
};

/// Returns the help of a field as a setting: "Size of a head's value; usually d_key".
std::string help_of(const HeadField& field);
/// Returns the name of a field as a setting among others: "input" is called head_input.
std::string_view setting_name(const HeadField& field);

template <HeadChanges::Names kNames, class V>
void HeadChanges::show(V& v) {
  const auto visit = [&](const HeadField& field, auto& value, const auto& rule) {
    using T = std::remove_reference_t<decltype(value)>;
    const std::string_view name =
        kNames == Names::kOfFiles ? std::string_view(field.name) : setting_name(field);
    const About about{.group = "Heads", .help = help_of(field), .otherwise = "by geometry"};
    const bool given = given_.contains(field.name);
    const auto keep = [&](const auto& shown) {
      if (shown) {
        given_.insert(field.name);
        value = *shown;
      } else if (given) {
        given_.erase(field.name);
        value = T{};
      }
    };
    // The optional is made with a value first, since gcc 12 warns that an empty one is uninitialised.
    const auto now = [&] {
      if constexpr (detail::IsOptional<T>::value) {
        return std::optional(value.value_or(typename T::value_type{}));
      } else {
        return std::optional(value);
      }
    };
    auto shown = now();
    if (!given) shown.reset();
    v(name, shown, rule, about);
    keep(shown);
  };
  HeadGeometry::describe(values_, [&](const HeadField& field, auto& value, const auto&... enum_names) {
    using T = std::remove_reference_t<decltype(value)>;
    if constexpr (sizeof...(enum_names) > 0) {
      (visit(field, value, enum_names), ...);
    } else if constexpr (std::is_same_v<T, int>) {
      visit(field, value, Rule<int>{.low = field.low == 0 ? 1 : field.low, .high = field.high});
    } else if constexpr (std::is_same_v<T, std::optional<float>>) {
      visit(field, value, Rule<float>{.low = 0, .high = 1000});
    } else if constexpr (detail::IsVector<T>::value) {
      if constexpr (kNames == Names::kOfFiles) visit(field, value, Presence{});
    } else {
      visit(field, value, Presence{});
    }
  });
}

}  // namespace mh
