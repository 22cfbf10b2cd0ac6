// Word: a word and its place in a dependency tree. The built-in grammar makes such trees, and CoNLL-U files
// contain them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mh {

/// Part of speech and relation are labels of Universal Dependencies 2.
struct Word {
  std::string form;
  std::string lemma;
  std::string upos;      // "NOUN"
  int head = -1;         // index of its head in the sentence; -1: it is the root
  std::string relation;  // "nsubj"

  bool operator==(const Word&) const = default;
};

/// Returns the forms with one space between them.
std::string text_of(std::span<const Word> words);

/// Whether the heads form a tree: exactly one word is the root, and all others are below it. REQUIRES:
/// heads in [-1, size).
bool is_tree(std::span<const Word> words);

}  // namespace mh
