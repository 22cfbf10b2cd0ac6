// Flags that come from a table of settings, a struct's visit(): name, range or names, default and help stand
// there.
#pragma once

#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/flag_names.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/io/setting_visitor.h"

namespace mh::cli {

class SettingFlags {
 public:
  /// A flag for each of the settings but `others`, for which the verb has flags of its own. The values are the defaults;
  /// what is true by default has a flag --no-NAME.
  template <class Settings>
  void add(Verb& verb, Settings settings, std::set<std::string, std::less<>> others = {}) {
    Add each{flags_, verb, std::move(others)};
    settings.visit(each);
  }
  /// Puts what was given on the command line into the same settings.
  template <class Settings>
  void take(Settings& settings) const {
    Take each{flags_};
    settings.visit(each);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [field, flag] : flags_) names.push_back(flag->get_name());
    return names;
  }

 private:
  using Flags = std::map<std::string, Flag*, std::less<>>;  // by the setting's name

  static std::string negated(std::string_view name) { return "--no-" + flag_name(name); }

  class Add : public SettingVisitor<Add> {
   public:
    Add(Flags& flags, Verb& verb, std::set<std::string, std::less<>> others)
        : flags_(flags), verb_(verb), others_(std::move(others)) {}

    template <class T, class R>
    void setting(std::string_view name, const T& value, const R& rule, const About& about) {
      if (others_.contains(name)) return;
      using Value = mh::detail::WithoutOptional<T>;
      constexpr bool kOptional = mh::detail::IsOptional<T>::value;
      Flag* const flag = add_flag(name, value, about);
      if constexpr (mh::detail::IsVector<T>::value) {
        flag->again()->description(about.help + "; may be given again");
        if constexpr (mh::detail::kIsSeveralNames<T>)
          take_names<typename T::value_type>(flag, std::nullopt, rule);
      } else if constexpr (std::is_same_v<Value, bool>) {
        flag->expected(0);
      } else if constexpr (kHasNames<Value>) {
        take_names(flag, std::optional<Value>(value), rule);
      } else {
        if constexpr (!std::is_same_v<Value, std::string>) check_number(flag, rule);
        if constexpr (!kOptional) flag->default_str(default_text(value));
      }
      if (*about.otherwise != '\0') flag->default_str(about.otherwise);
      if (*about.value != '\0') flag->type_name(about.value);
      flag->group(about.group)->rare(about.rare);
      flag->setting = name;
      flags_.emplace(name, flag);
    }

   private:
    template <class T>
    Flag* add_flag(std::string_view name, const T& value, const About& about) {
      if constexpr (std::is_same_v<T, bool>) {
        std::string help = about.help;
        help[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(help[0])));
        if (value) return verb_.add_option(negated(name), "Without " + help);
      }
      return verb_.add_option(flag_of(verb_, name), about.help);
    }

    Flags& flags_;
    Verb& verb_;
    std::set<std::string, std::less<>> others_;
  };

  class Take : public SettingVisitor<Take> {
   public:
    explicit Take(const Flags& flags) : flags_(flags) {}

    template <class T, class R>
    void setting(std::string_view name, T& value, const R& rule, const About&) {
      using Value = mh::detail::WithoutOptional<T>;
      const auto found = flags_.find(name);
      if (found == flags_.end() || found->second->times == 0) return;
      const Flag& flag = *found->second;
      if constexpr (mh::detail::kIsSeveralNames<T>) {
        value.clear();
        for (const std::string& text : flag.given) value.push_back(named(text, rule));
      } else if constexpr (mh::detail::IsVector<T>::value) {
        value.clear();
        for (const std::string& text : flag.given) value.emplace_back(text);
      } else if constexpr (std::is_same_v<Value, bool>) {
        value = flag.get_name() != negated(name);
      } else if constexpr (std::is_same_v<Value, std::string>) {
        value = flag.given.back();
      } else if constexpr (kHasNames<Value>) {
        value = named(flag.given.back(), rule);
      } else {
        value = *number_in<Value>(flag.given.back());
      }
    }

   private:
    const Flags& flags_;
  };

  Flags flags_;
};

/// Settings of a verb and the flags that they come from.
template <class Settings>
struct FlaggedSettings {
  Settings settings = {};
  SettingFlags flags = {};

  void add(Verb& verb) { flags.add(verb, settings); }
  void take() { flags.take(settings); }
  const Settings* operator->() const { return &settings; }
};

}  // namespace mh::cli
