#include "cli/verb.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "multihead/io/cut_at.h"

namespace mh::cli {

Flag::Flag(const std::string& names_and_argument, std::string what_it_does) : about(std::move(what_it_does)) {
  for (std::string_view name : cut_at(names_and_argument, ',')) {
    if (name.starts_with('-')) {
      names.emplace_back(name);
    } else {
      argument = name;
    }
  }
}

bool Flag::is_named(std::string_view name) const {
  return name == argument || std::find(names.begin(), names.end(), name) != names.end();
}

std::string Flag::value_name() const {
  if (most == 0) return "";
  return least == 0 ? "[" + value + "]" : value + (most == kMany ? "..." : "");
}

Verb* Verb::add_subcommand(std::string name, std::string about) {
  return verbs_.emplace_back(std::make_unique<Verb>(std::move(name), std::move(about), this)).get();
}

Flag* Verb::add_option(const std::string& names, std::string about) {
  return flags_.emplace_back(std::make_unique<Flag>(names, std::move(about))).get();
}

Flag* Verb::add_option(const std::string& names, std::string& place, std::string about) {
  return add_option(names, std::move(about))->default_str(place)->each([&place](const std::string& text) {
    place = text;
  });
}

Flag* Verb::add_option(const std::string& names, std::vector<std::string>& place, std::string about) {
  return add_option(names, std::move(about))
      ->expected(1, Flag::kMany)
      ->each([&place](const std::string& text) { place.push_back(text); });
}

Flag* Verb::add_flag(const std::string& names, std::string about) {
  return add_option(names, std::move(about))->expected(0);
}

Flag* Verb::add_flag(const std::string& names, bool& place, std::string about) {
  return add_flag(names, std::move(about))->each([&place](const std::string&) { place = true; });
}

std::string Verb::typed_name() const {
  return parent_ == nullptr ? name_ : parent_->typed_name() + " " + name_;
}

Verb* Verb::verb(std::string_view name) const {
  const auto found =
      std::find_if(verbs_.begin(), verbs_.end(), [&](const auto& v) { return v->name_ == name; });
  return found == verbs_.end() ? nullptr : found->get();
}

std::vector<const Verb*> Verb::listed_verbs() const {
  std::vector<const Verb*> listed;
  for (const auto& verb : verbs_) {
    if (!verb->group_.empty()) listed.push_back(verb.get());
  }
  return listed;
}

std::vector<std::string> Verb::listed_names() const {
  std::vector<std::string> names;
  for (const Verb* verb : listed_verbs()) names.push_back(verb->name_);
  return names;
}

std::vector<Flag*> Verb::arguments() const {
  std::vector<Flag*> arguments;
  for (const auto& flag : flags_) {
    if (flag->is_argument()) arguments.push_back(flag.get());
  }
  return arguments;
}

Flag* Verb::find(std::string_view name) const {
  const auto found =
      std::find_if(flags_.begin(), flags_.end(), [&](const auto& f) { return f->is_named(name); });
  return found == flags_.end() ? nullptr : found->get();
}

std::vector<Flag*> Verb::all_flags() const {
  std::vector<Flag*> all;
  for (const auto& flag : flags_) all.push_back(flag.get());
  if (parent_ == nullptr) return all;
  for (const auto& flag : tool().flags_) all.push_back(flag.get());
  return all;
}

Flag* Verb::find_flag(std::string_view name) const {
  if (!name.starts_with('-')) return nullptr;
  Flag* const own = find(name);
  return own != nullptr || parent_ == nullptr ? own : tool().find(name);
}

Flag* Verb::get_option(std::string_view name) const {
  if (Flag* const flag = find(name)) return flag;
  throw std::logic_error(typed_name() + " has no flag " + std::string(name));
}

void group_flags(Verb& verb, const char* title, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) verb.get_option(flag)->group(title);
}

void name_values(Verb& verb, const char* name, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) verb.get_option(flag)->type_name(name);
}

void rare_flags(Verb& verb, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) verb.get_option(flag)->rare();
}

void common_flags(Verb& verb, std::initializer_list<const char*> flags) {
  for (const auto& flag : verb.flags()) flag->rare();
  for (const char* flag : flags) verb.get_option(flag)->rare(false);
}

}  // namespace mh::cli
