#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/mistyped.h"
#include "multihead/base/error.h"

namespace mh::cli {
namespace {

std::string what_is_expected(const Flag& flag) {
  const std::string& name = flag.value;
  if (name == "FILE") return "a file";
  if (name == "DIR") return "a folder";
  if (name == "MODEL") return "a model";
  return name.find('|') != std::string::npos || name == "TEXT" ? "a text" : name;
}

// "-" is standard input, and -1 a number.
bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--" && (word[1] < '0' || word[1] > '9');
}

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<Flag*> given_flags(const Verb& verb) {
  std::vector<Flag*> given = verb.all_flags();
  std::erase_if(given, [](const Flag* flag) { return flag->times == 0; });
  return given;
}

class Reader {
 public:
  Reader(Verb& tool, const std::vector<std::string>& words) : verb_(&tool), words_(words) {}

  void read() {
    bool only_arguments = false;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (only_arguments) {
        read_argument(word);
      } else if (word == "--") {
        only_arguments = true;
      } else if (is_flag(word)) {
        read_flag(word);
      } else if (Verb* const next = verb_->verb(word)) {
        enter(*next);
      } else {
        read_argument(word);
      }
    }
  }

 private:
  // A verb does not take the flags of the verb above.
  void enter(Verb& next) {
    for (const auto& flag : verb_->flags()) {
      if (verb_->get_parent() != nullptr && flag->times > 0) throw UsageError(flag_of_parent(next, *flag));
    }
    verb_ = verb_->choice = &next;
  }

  // "--flag value...", "--flag=value", "-f value", "-fvalue".
  void read_flag(const std::string& word) {
    const bool is_long = word.starts_with("--");
    const size_t end = std::min(is_long ? word.find('=') : size_t{2}, word.size());
    const std::string name = word.substr(0, end);
    Flag* const flag = verb_->find_flag(name);
    if (flag == nullptr) throw UsageError(no_flag(*verb_, is_long ? name : word));
    ++flag->times;
    if (end == word.size()) return read_values(*flag, name);
    const std::string value = word.substr(end + (is_long ? 1 : 0));
    if (flag->most == 0) throw UsageError(name + " takes no value");
    if (value.empty() && !flag->takes_empty) throw UsageError(name + " needs a value");
    flag->given.push_back(value);
  }

  void read_values(Flag& flag, const std::string& name) {
    const size_t most =
        flag.most > 1 ? Flag::kMany : flag.most;  // of three texts for two none is an argument
    for (size_t taken = 0; taken < most; ++taken) {
      const bool needed = taken == 0 && flag.least > 0;
      if (at_ == words_.size()) {
        if (needed) throw UsageError(name + " needs a value");
        return;
      }
      const std::string& next = words_[at_];
      if (verb_->find_flag(next.substr(0, next.find('='))) != nullptr) {
        if (needed) throw UsageError(fmt::format("{} needs a value, but {} follows", name, next));
        return;
      }
      const bool fits = flag.own_words.empty() || is_one_of(next, flag.own_words);
      if (taken >= flag.least && !fits) return;
      if (taken >= flag.least &&
          (is_flag(next) || next == "--" || verb_->verb(next) != nullptr || keeps_room()))
        return;
      flag.given.push_back(next);
      ++at_;
    }
  }

  // The last word is that of an argument that must be there.
  bool keeps_room() const {
    const auto arguments = verb_->arguments();
    return at_ + 1 == words_.size() &&
           std::any_of(arguments.begin(), arguments.end(),
                       [](const Flag* argument) { return argument->is_required && argument->times == 0; });
  }

  void read_argument(const std::string& word) {
    for (Flag* argument : verb_->arguments()) {
      if (argument->times > 0 && argument->most != Flag::kMany) continue;
      ++argument->times;
      return argument->given.push_back(word);
    }
    if (verb_->wants_verb()) throw UsageError(no_verb(*verb_, word));
    verb_->strays.push_back(word);
  }

  Verb* verb_;
  const std::vector<std::string>& words_;
  size_t at_ = 0;
};

void check_together(const Flag& flag) {
  const std::string& name = flag.get_name();
  if (flag.times > 1 && flag.most == 1 && !flag.may_repeat)
    throw UsageError(fmt::format("{} is given more than once: {}", name, fmt::join(flag.given, " and ")));
  if (flag.most > 1 && flag.most != Flag::kMany && flag.given.size() != flag.most)
    throw UsageError(fmt::format("{}: expected {} values, got {}", name, flag.most, flag.given.size()));
  for (const Flag* other : flag.excluded) {
    if (other->times > 0)
      throw UsageError(fmt::format("{} and {} cannot be given together", name, other->get_name()));
  }
}

void check_value(const Flag& flag, const std::string& value) {
  std::string wrong;
  for (const Flag::Check& check : flag.checks) {
    if (wrong.empty()) wrong = check(value);
  }
  if (wrong.empty() && !flag.own_words.empty() && !is_one_of(value, flag.own_words))
    wrong = fmt::format("expected {} or nothing, got {}", fmt::join(flag.own_words, ", "), value);
  if (wrong.empty() && value.empty() && !flag.takes_empty)
    wrong = fmt::format("expected {}, got nothing", what_is_expected(flag));
  if (!wrong.empty()) throw UsageError(flag.get_name() + ": " + wrong);
}

}  // namespace

void read_words(Verb& tool, const std::vector<std::string>& words) {
  Reader(tool, words).read();
}

void hand_over(const Verb& verb) {
  const std::vector<Flag*> flags = given_flags(verb);
  for (const Flag* flag : flags) check_together(*flag);
  for (const Flag* flag : flags) {
    for (const std::string& value : flag->given) check_value(*flag, value);
  }
  for (const Flag* flag : flags) {
    for (const Flag* other : flag->needed) {
      if (other->times == 0)
        throw UsageError(fmt::format("{} requires {}", flag->get_name(), other->get_name()));
    }
  }
  if (verb.wants_verb()) throw UsageError(no_verb(verb, ""));
  if (!verb.strays.empty()) throw UsageError(too_many_arguments(verb, verb.strays));
  for (const auto& flag : verb.flags()) {
    if (flag->is_required && flag->times == 0) throw UsageError(missing(verb, *flag));
  }
  for (const Flag* flag : flags) {
    for (const Flag::Use& use : flag->uses) {
      if (flag->most == 0) use("");
      for (const std::string& value : flag->given) use(value);
    }
  }
}

}  // namespace mh::cli
