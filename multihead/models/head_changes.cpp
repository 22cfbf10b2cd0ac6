#include "multihead/models/head_changes.h"

#include <cctype>
#include <utility>
#include <vector>

namespace mh {

void HeadChanges::apply(HeadGeometry& geometry) const {
  std::vector<void*> fields;
  HeadGeometry::describe(geometry,
                         [&](const HeadField&, auto& value, const auto&...) { fields.push_back(&value); });
  auto field = fields.begin();
  HeadGeometry::describe(values_, [&](const HeadField& about, const auto& value, const auto&...) {
    using T = std::remove_cvref_t<decltype(value)>;
    void* const there = *field++;
    if (given_.contains(about.name)) *static_cast<T*>(there) = value;
  });
}

std::string help_of(const HeadField& field) {
  std::string help = field.help;
  for (const std::string_view unset : {"; 0: ", "; unset: "}) {
    if (const size_t at = help.find(unset); at != std::string::npos)
      help.replace(at, unset.size(), "; usually ");
  }
  if (!help.empty()) help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
  return help;
}

std::string_view setting_name(const HeadField& field) {
  constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"input", "head_input"},
                                                                           {"output", "head_output"},
                                                                           {"weights", "head_weights"},
                                                                           {"query_key_norm", "qk_norm"}};
  for (const auto& [name, among_others] : kOtherNames) {
    if (name == field.name) return among_others;
  }
  return field.name;
}

}  // namespace mh
