// SentenceBuilder: puts words in order; a word may be added before its head. It remembers the meaning of
// each word, for the alignment.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/data/tree_bank.h"

namespace mh::grammar {

/// The meaning of a word: a node of the tree and a part of it. Words of the two languages with the same
/// meaning are aligned.
struct Meaning {
  const void* node = nullptr;  // null: aligned to nothing
  int part = 0;
  auto operator<=>(const Meaning&) const = default;
};

class SentenceBuilder {
 public:
  /// Reserves an id for a word that is added later, so that it can already be the head of other words.
  int reserve() {
    words_.emplace_back();
    heads_.push_back(-1);
    meanings_.emplace_back();
    return static_cast<int>(words_.size()) - 1;
  }
  void put(int id, std::string form, std::string_view lemma, std::string_view upos, std::string_view relation,
           int head, Meaning meaning) {
    auto& word = words_[static_cast<size_t>(id)];
    word = {std::move(form), std::string(lemma), std::string(upos), -1, std::string(relation)};
    heads_[static_cast<size_t>(id)] = head;
    meanings_[static_cast<size_t>(id)] = meaning;
    order_.push_back(id);
  }
  int add(std::string form, std::string_view lemma, std::string_view upos, std::string_view relation,
          int head, Meaning meaning) {
    const int id = reserve();
    put(id, std::move(form), lemma, upos, relation, head, meaning);
    return id;
  }
  /// Adds a comma, unless the last word is one or there is no word yet.
  void comma(int head, Meaning meaning = {}) {
    if (order_.empty()) return;
    if (last().form != ",") {
      add(",", ",", "PUNCT", "punct", head, meaning);
    } else if (meaning.node != nullptr) {
      meanings_[static_cast<size_t>(order_.back())] = meaning;
    }
  }
  /// Adds the full stop; it replaces a comma that closed a clause.
  void full_stop(int head, Meaning meaning) {
    if (!order_.empty() && last().form == ",") order_.pop_back();
    add(".", ".", "PUNCT", "punct", head, meaning);
  }
  /// Returns the words in order, with heads as places in the sentence, and the meaning of each; the builder
  /// is empty afterwards.
  std::pair<std::vector<Word>, std::vector<Meaning>> finish() {
    std::vector<int> place(words_.size(), -1);  // by id
    for (size_t i = 0; i < order_.size(); ++i) place[static_cast<size_t>(order_[i])] = static_cast<int>(i);
    std::vector<Word> words;
    std::vector<Meaning> meanings;
    words.reserve(order_.size());
    meanings.reserve(order_.size());
    for (const int id : order_) {
      words.push_back(std::move(words_[static_cast<size_t>(id)]));
      const int head = heads_[static_cast<size_t>(id)];
      words.back().head = head < 0 ? -1 : place[static_cast<size_t>(head)];
      meanings.push_back(meanings_[static_cast<size_t>(id)]);
    }
    return {std::move(words), std::move(meanings)};
  }

 private:
  const Word& last() const { return words_[static_cast<size_t>(order_.back())]; }

  std::vector<Word> words_;  // by id
  std::vector<int> heads_;   // id of the head, by id
  std::vector<Meaning> meanings_;
  std::vector<int> order_;
};

/// Parts of a node that are words of their own.
enum Part : int {
  kHead,  // the noun, the verb, the preposition
  kDeterminer,
  kAuxiliary,
  kNegation,
  kMiddle,
  kEdge,
  kMarker,  // "because", "that", "but", "and", the relative pronoun
  kComma,
  kStop,
  kModifiers,  // kModifiers + 2 i: the degree of adjective i; + 2 i + 1: the adjective
};

}  // namespace mh::grammar
