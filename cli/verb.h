// The command line as a table: verbs, their flags and arguments. Reading, help, completion and errors all look here.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh::cli {

/// A flag of a verb (-i,--input), an argument by its place (references), or both at once (model,--model).
struct Flag {
  /// What is wrong with a value; empty: nothing.
  using Check = std::function<std::string(const std::string&)>;
  using Use = std::function<void(const std::string&)>;
  static constexpr size_t kMany = static_cast<size_t>(-1);

  Flag(const std::string& names_and_argument, std::string what_it_does);

  // What a verb says of its flag, one after the other.
  Flag* description(std::string text) { return about = std::move(text), this; }
  Flag* type_name(std::string name) { return value = std::move(name), this; }
  Flag* default_str(std::string text) { return usual = std::move(text), this; }
  Flag* group(std::string name) { return title = std::move(name), this; }
  Flag* rare(bool wanted = true) { return is_rare = wanted, this; }
  Flag* required() { return is_required = true, this; }
  /// Its value may be the empty text; of other flags that would quietly mean that they were not given.
  Flag* may_be_empty() { return takes_empty = true, this; }
  /// It takes so many values each time.
  Flag* expected(size_t from, size_t to) { return least = from, most = to, this; }
  Flag* expected(size_t values) { return expected(values, values); }
  /// It may have one of these words behind it, and no others: what else follows is an argument.
  Flag* may_have(std::vector<std::string> words) { return own_words = std::move(words), expected(0, 1); }
  /// It may be given again, with one value each time.
  Flag* again() { return may_repeat = true, expected(1); }
  Flag* check(Check check) { return checks.push_back(std::move(check)), this; }
  /// What is done with each value when all that was given is right.
  Flag* each(Use use) { return uses.push_back(std::move(use)), this; }
  Flag* needs(const Flag* other) { return needed.push_back(other), this; }
  Flag* excludes(Flag* other) { return excluded.push_back(other), other->excluded.push_back(this), this; }

  size_t count() const { return times; }
  const std::vector<std::string>& results() const { return given; }
  /// "--input"; "references" of an argument without a flag.
  const std::string& get_name() const { return names.empty() ? argument : names.back(); }
  bool is_named(std::string_view name) const;
  bool is_argument() const { return !argument.empty(); }
  bool is_needed() const { return is_required || usual == "needed"; }
  /// "FILE...", "a|b", "[FILE]" of a value that may be left out; empty for a flag without a value.
  std::string value_name() const;

  std::string argument;            // its name; empty: it is a flag only
  std::vector<std::string> names;  // "-i", "--input"
  std::string about;
  std::string value = "TEXT";  // what stands for the value in help: FILE, N, a|b
  std::string usual;           // what help calls the default; empty: nothing
  std::string title;           // of its group in help
  std::string setting;         // its name in the visit() that it comes from; empty: it comes from none
  size_t least = 1, most = 1;  // values each time
  std::vector<std::string> own_words;  // may_have(); empty: a value may be anything
  bool may_repeat = false, is_required = false, takes_empty = false;
  bool is_rare = false;  // only --help-all shows it
  std::vector<Check> checks;
  std::vector<Use> uses;
  std::vector<const Flag*> needed, excluded;

  // By the command line.
  size_t times = 0;
  std::vector<std::string> given;
};

/// The tool, one of its verbs, or a verb of a verb.
class Verb {
 public:
  explicit Verb(std::string name, std::string about = "", Verb* parent = nullptr)
      : name_(std::move(name)), about_(std::move(about)), parent_(parent) {}
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  Verb* add_subcommand(std::string name, std::string about);
  /// A flag with a value, which goes nowhere unless each() says so.
  Flag* add_option(const std::string& names, std::string about);
  /// Help shows the text that is there as the default.
  Flag* add_option(const std::string& names, std::string& place, std::string about);
  /// It takes several values.
  Flag* add_option(const std::string& names, std::vector<std::string>& place, std::string about);
  /// A flag without a value.
  Flag* add_flag(const std::string& names, bool& place, std::string about);
  Flag* add_flag(const std::string& names, std::string about);
  void footer(std::string examples) { footer_ = std::move(examples); }
  /// The title above it in help; empty: help does not list it.
  void group(std::string title) { group_ = std::move(title); }
  void callback(std::function<void()> run) { run_ = std::move(run); }

  Verb* get_parent() const { return parent_; }
  const Verb& tool() const { return parent_ == nullptr ? *this : parent_->tool(); }
  const std::string& get_name() const { return name_; }
  const std::string& get_description() const { return about_; }
  const std::string& get_footer() const { return footer_; }
  const std::string& get_group() const { return group_; }
  /// "multihead data grammar": what one types for this verb.
  std::string typed_name() const;

  const std::vector<std::unique_ptr<Verb>>& verbs() const { return verbs_; }
  /// Null: there is none of that name.
  Verb* verb(std::string_view name) const;
  /// Those that help lists.
  std::vector<const Verb*> listed_verbs() const;
  std::vector<std::string> listed_names() const;
  /// It does nothing itself: one of its verbs must follow.
  bool wants_verb() const { return !listed_verbs().empty() && arguments().empty(); }

  const std::vector<std::unique_ptr<Flag>>& flags() const { return flags_; }
  std::vector<Flag*> arguments() const;
  /// With those that every verb takes.
  std::vector<Flag*> all_flags() const;
  /// By any of its names; null: there is none.
  Flag* find(std::string_view name) const;
  /// The same, and of those that every verb takes.
  Flag* find_flag(std::string_view name) const;
  Flag* get_option(std::string_view name) const;

  /// The verb that was chosen of these, and of its own.
  const Verb& chosen() const { return choice == nullptr ? *this : choice->chosen(); }
  void run() const { run_(); }

  // By the command line.
  Verb* choice = nullptr;           // of its verbs
  std::vector<std::string> strays;  // arguments without a place

 private:
  std::string name_, about_, footer_, group_ = "Verbs";
  Verb* parent_;
  std::vector<std::unique_ptr<Verb>> verbs_;
  std::vector<std::unique_ptr<Flag>> flags_;
  std::function<void()> run_;
};

/// Puts these flags under this title; the groups stand in the order in which their first flags were added.
void group_flags(Verb& verb, const char* title, std::initializer_list<const char*> flags);
/// What stands for the value of these flags: FILE, DIR, HEAD, ...
void name_values(Verb& verb, const char* name, std::initializer_list<const char*> flags);
/// Leaves these flags, or all but these, to --help-all.
void rare_flags(Verb& verb, std::initializer_list<const char*> flags);
void common_flags(Verb& verb, std::initializer_list<const char*> flags);

}  // namespace mh::cli
