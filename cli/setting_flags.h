// Flags that come from a table of settings, a struct's visit(): name, range or names, default and help stand
// there.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/flag_names.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "multihead/io/setting_visitor.h"

namespace mh::cli {

class SettingFlags {
 public:
  /// A flag for each of the settings but `others`, for which the verb has flags of its own. The values are the defaults.
  template <class Settings>
  void add(CLI::App& verb, Settings settings, std::set<std::string, std::less<>> others = {}) {
    Add each{*this, verb, std::move(others)};
    settings.visit(each);
  }
  /// Puts what was given on the command line into the same settings.
  template <class Settings>
  void take(Settings& settings) const {
    Take each{options_};
    settings.visit(each);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [field, option] : options_) names.push_back(option->get_name());
    return names;
  }

 private:
  using Options = std::map<std::string, CLI::Option*, std::less<>>;  // by the setting's name

  class Add : public SettingVisitor<Add> {
   public:
    Add(SettingFlags& flags, CLI::App& verb, std::set<std::string, std::less<>> others)
        : flags_(flags), verb_(verb), others_(std::move(others)) {}

    template <class T, class R>
    void setting(std::string_view name, const T& value, const R& rule, const About& about) {
      if (others_.contains(name)) return;
      const std::string flag = flag_of(verb_, name);
      if constexpr (detail::IsVector<T>::value) {
        const auto place = std::make_shared<std::vector<std::string>>();
        CLI::Option* option = verb_.add_option(flag, *place, about.help + "; may be given again")
                                  ->take_all()
                                  ->allow_extra_args(false);
        if constexpr (detail::kIsSeveralNames<T>)
          take_names<typename T::value_type>(option, std::nullopt, rule);
        keep(name, option, about, place);
      } else {
        add_one(name, flag, value, rule, about);
      }
    }

   private:
    template <class T, class R>
    void add_one(std::string_view name, const std::string& flag, const T& value, const R& rule,
                 const About& about) {
      using Value = detail::WithoutOptional<T>;
      constexpr bool kOptional = detail::IsOptional<T>::value;
      std::optional<Value> now;
      if constexpr (!kOptional) now = value;
      // CLI11 reads enums; of another type with names it reads the place among them.
      using Read = std::conditional_t<kHasNames<Value> && !std::is_enum_v<Value>, size_t, Value>;
      const auto place = std::make_shared<Read>();
      if constexpr (std::is_same_v<Read, Value>) *place = now.value_or(Value{});
      CLI::Option* option = nullptr;
      if constexpr (std::is_same_v<Value, bool>) {
        option = verb_.add_flag(flag, *place, about.help);
      } else {
        option = verb_.add_option(flag, *place, about.help);
        if constexpr (kHasNames<Value>) {
          take_names(option, now, rule);
        } else if constexpr (!std::is_same_v<Value, std::string>) {
          check_number(option, rule);
        }
        if constexpr (!kOptional && !kHasNames<Value>) option->capture_default_str();
      }
      keep(name, option, about, place);
    }
    void keep(std::string_view name, CLI::Option* option, const About& about, std::shared_ptr<void> place) {
      if (*about.otherwise != '\0') option->default_str(about.otherwise);
      if (*about.value != '\0') option->type_name(about.value);
      if (*about.group != '\0') option->group(about.group);
      if (about.rare) rare_flags(verb_, {option->get_name().c_str()});
      flags_.options_.emplace(name, option);
      flags_.places_.push_back(std::move(place));
    }

    SettingFlags& flags_;
    CLI::App& verb_;
    std::set<std::string, std::less<>> others_;
  };

  class Take : public SettingVisitor<Take> {
   public:
    explicit Take(const Options& options) : options_(options) {}

    template <class T, class R>
    void setting(std::string_view name, T& value, const R& rule, const About&) {
      using Value = detail::WithoutOptional<T>;
      const auto found = options_.find(name);
      if (found == options_.end() || found->second->count() == 0) return;
      const CLI::Option* option = found->second;
      if constexpr (detail::kIsSeveralNames<T>) {
        value = option->as<T>();
      } else if constexpr (detail::IsVector<T>::value) {
        value.clear();
        for (const std::string& text : option->as<std::vector<std::string>>()) value.emplace_back(text);
      } else if constexpr (kHasNames<Value> && !std::is_enum_v<Value>) {
        value = std::data(rule)[option->as<size_t>()].second;
      } else {
        value = option->as<Value>();
      }
    }

   private:
    const Options& options_;
  };

  Options options_;
  std::vector<std::shared_ptr<void>> places_;
};

}  // namespace mh::cli
