// A word and its place in a tree of dependencies: what the grammar makes and CoNLL-U files hold.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mh {

/// Labels are those of Universal Dependencies 2.
struct Word {
  std::string form;
  std::string lemma;
  std::string upos;      // "NOUN"
  int head = -1;         // index of its head in the sentence; -1: it is the root
  std::string relation;  // "nsubj"

  bool operator==(const Word&) const = default;
};

/// The forms with one space between.
std::string text_of(std::span<const Word> words);

/// Whether exactly one word is a root and every other hangs below it. REQUIRES: heads in [-1, size).
bool is_tree(std::span<const Word> words);

}  // namespace mh
