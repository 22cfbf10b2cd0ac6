#include "multihead/models/head_changes.h"

#include <cctype>
#include <utility>

namespace mh {

HeadChanges HeadChanges::of_json(std::string_view text, std::string_view name) {
  struct File {
    HeadChanges changes;
    void visit(ConfigVisitor& v) { changes.show<Names::kOfFiles>(v); }
  } file;
  from_json(file, text, name);
  return file.changes;
}

void HeadChanges::apply(HeadGeometry& geometry) const {
  struct Given {
    const HeadChanges& changes;
    void visit(ConfigVisitor& v) const {
      HeadGeometry all = changes.values_;
      HeadGeometry::describe(all, [&](const HeadField& field, auto& value, const auto&... names) {
        if (changes.given_.contains(field.name)) v(field.name, value, names...);
      });
    }
  };
  from_json(geometry, to_json_line(Given{*this}), "heads");
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
