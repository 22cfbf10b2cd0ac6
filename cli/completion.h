// Scripts that complete multihead's verbs, flags and their values in a shell, made from the command line
// itself.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

enum class CompletedKind {
  kNone,   // a flag that takes no value, or a verb that takes no argument
  kFree,   // a number or a text: nothing to offer
  kFiles,  // files and folders
  kFolders,
  kWords
};

/// What can stand for a flag's value, or as an argument without a flag.
struct CompletedValue {
  CompletedKind kind = CompletedKind::kNone;
  std::vector<std::string> words = {};
  bool optional = false;  // the flag may stand without it
};

struct CompletedFlag {
  std::vector<std::string> names;  // with their dashes: "-i", "--input"
  std::string about, value_name;
  CompletedValue value;
  bool again = false;  // may be given more than once
};

struct CompletedVerb {
  std::string path;   // "" of multihead itself, "data grammar"
  std::string about;  // one sentence
  std::vector<CompletedFlag> flags;
  std::vector<std::string> verbs;  // that follow
  CompletedValue argument;         // without a flag
};

/// multihead itself first, then its verbs and theirs.
std::vector<CompletedVerb> completed_verbs(const CLI::App& app);

/// The verb `name` that follows `verb`. REQUIRES: it is among verb.verbs.
const CompletedVerb& next_verb(const std::vector<CompletedVerb>& verbs, const CompletedVerb& verb,
                               const std::string& name);

std::string bash_completion(const std::vector<CompletedVerb>& verbs);
std::string zsh_completion(const std::vector<CompletedVerb>& verbs);
std::string fish_completion(const std::vector<CompletedVerb>& verbs);

}  // namespace mh::cli
