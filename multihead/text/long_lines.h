// Lines of more tokens than a model reads, in the same words for every task: they are cut (cut_tokens.h), and
// one remark counts them; or the first of them is refused.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "multihead/text/tokenizer.h"

namespace mh {

/// What lines are called in remarks and errors: "test.en line 12", or "prompt 2" where they have no file.
struct LinesFrom {
  std::string name = {};
  size_t first = 1;          // the number of the first one
  std::string one = "line";  // what one of them is

  /// The name of line i, counted from 0.
  std::string at(size_t i) const;
};

class LongLines {
 public:
  struct Limit {
    size_t longest;           // tokens that the model reads
    std::string before = {};  // what it needs room for, e.g. "26 new ones"
    bool strict = false;      // refuse a line that is longer, and say what to do
    std::string remedy = "shorten it, or let it be cut: leave out `strict`";
    TextEnd cut = TextEnd::kEnd;  // which end the others lose
  };
  LongLines(LinesFrom from, Limit limit);

  /// Notes that line i has so many tokens, before it is cut. Throws FormatError when these are too many and
  /// the limit is strict.
  void note(size_t i, size_t tokens);
  /// Calls `remark`, which may be null, when lines were cut: "2 of 3 lines cut to the 29 tokens that the model
  /// reads, at their end; test.en line 12 has 31 tokens", the first of them.
  void tell(size_t lines, const std::function<void(const std::string&)>& remark) const;

 private:
  LinesFrom from_;
  Limit limit_;
  size_t cut_ = 0;
  std::string first_;  // the first that is too long
};

}  // namespace mh
