// What a struct's visit() says of its settings, as JSON: what Python's signatures, docstrings and checks are made of.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/io/config.h"
#include "multihead/io/setting_visitor.h"

namespace mh {

struct SettingDescription {
  std::string name;
  std::string kind;  // "whole number", "number", "truth value", "text", "name", "texts", "names"
  std::vector<std::string> values = {};  // of a name, or of names
  std::string within = {};               // of a number: "1 to 1000", "at least 0"; empty: any of its type
  std::string standard = {};             // the default, as JSON
  std::string otherwise = {};            // what counts where that says nothing; empty: nothing does
  std::string help = {};

  template <class V>
  void visit(V& v) {
    v("name", name);
    v("kind", kind);
    v("values", values);
    v("within", within);
    v("default", standard);
    v("otherwise", otherwise);
    v("help", help);
  }
};

namespace detail {
/// "1 to 1000", "at least 0", or nothing where the rule is as wide as the type. T: as numbers_within().
template <class T>
std::string range_text(const Rule<T>& rule);

class DescribeSettings : public SettingVisitor<DescribeSettings> {
 public:
  std::vector<SettingDescription> found;

  template <class T, class R>
  void setting(std::string_view name, T& value, const R& rule, const About& about) {
    using Inner = WithoutOptional<T>;
    SettingDescription one{.name = std::string(name),
                           .kind = kind_of<Inner>(),
                           .otherwise = about.otherwise,
                           .help = about.help};
    if constexpr (kHasNames<Inner> || kIsSeveralNames<Inner>) {
      for (const auto& [text, meaning] : rule) one.values.emplace_back(text);
    } else if constexpr (kIsNumber<Inner>) {
      one.within = range_text(rule);
    }
    struct One {
      T& value;
      const R& rule;
      void visit(ConfigVisitor& v) { v("value", value, rule); }
    };
    const std::string json = to_json_line(One{value, rule});
    one.standard = json.substr(json.find(':') + 1, json.rfind('}') - json.find(':') - 1);
    found.push_back(std::move(one));
  }

 private:
  template <class T>
  static const char* kind_of() {
    if constexpr (kIsSeveralNames<T>) return "names";
    if constexpr (IsVector<T>::value) return "texts";
    if constexpr (kHasNames<T>) return "name";
    if constexpr (std::is_same_v<T, bool>) return "truth value";
    if constexpr (std::is_floating_point_v<T>) return "number";
    if constexpr (kIsNumber<T>) return "whole number";
    return "text";
  }
};
}  // namespace detail

/// In the order of visit(), with the values of `settings` as defaults.
template <class Settings>
std::vector<SettingDescription> describe_settings(Settings settings) {
  detail::DescribeSettings describe;
  settings.visit(describe);
  return std::move(describe.found);
}

}  // namespace mh
