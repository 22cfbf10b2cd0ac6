#include "multihead/data/tree_bank.h"

#include <cstddef>

namespace mh {

std::string text_of(std::span<const Word> words) {
  std::string text;
  for (const Word& word : words) {
    if (!text.empty()) text += ' ';
    text += word.form;
  }
  return text;
}

bool is_tree(std::span<const Word> words) {
  // Each word is walked from once: states 0 new, 1 on the path of this walk, 2 known to end at a root.
  std::vector<char> state(words.size(), 0);
  int roots = 0;
  for (size_t start = 0; start < words.size(); ++start) {
    size_t at = start;
    while (state[at] == 0) {
      state[at] = 1;
      if (words[at].head < 0) {
        ++roots;
        break;
      }
      at = static_cast<size_t>(words[at].head);
      if (state[at] == 1) return false;  // a circle
    }
    for (at = start; state[at] == 1; at = static_cast<size_t>(words[at].head)) {
      state[at] = 2;
      if (words[at].head < 0) break;
    }
  }
  return roots == 1;
}

}  // namespace mh
