// Reads and writes CoNLL-U, the file format of Universal Dependencies: one word a line in ten columns, an
// empty line between sentences. https://universaldependencies.org/format.html
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/data/tree_bank.h"

namespace mh {

/// One word with all of its columns; an empty column is "_".
struct ConlluWord : Word {
  std::string xpos = "_";
  std::string features = "_";
  std::string enhanced = "_";  // DEPS
  std::string misc = "_";
};

/// A line that is not a word of the tree: a token of several words ("3-4") or an empty node ("8.1").
struct ConlluExtra {
  size_t before = 0;  // index of the word it stands before
  std::string line;
};

struct ConlluSentence {
  std::vector<std::string> comments;  // each begins with '#'
  std::vector<ConlluWord> words;
  std::vector<ConlluExtra> extras;

  /// Returns the words with the columns that a tree needs.
  std::vector<Word> tree() const;
};

/// Reads lines. Several empty lines, also at the beginning and the end, are as one, and so are lines of spaces. format_conllu()
/// writes the same bytes again, except for line ends and empty lines. Throws FormatError "NAME:LINE: ..." on anything that is not CoNLL-U: a wrong number of columns,
/// word numbers with gaps, heads that do not exist, a tree with cycles or without exactly one root.
std::vector<ConlluSentence> parse_conllu(std::span<const std::string> lines, std::string_view name);

/// Reads a file, gzip or not, sentence by sentence, so that memory does not grow with it.
class ConlluFileReader {
 public:
  /// Throws FileError.
  explicit ConlluFileReader(const std::filesystem::path& path);
  ~ConlluFileReader();
  ConlluFileReader(const ConlluFileReader&) = delete;
  ConlluFileReader& operator=(const ConlluFileReader&) = delete;

  /// The next sentences, at most so many; fewer at the end of the file. Throws FormatError as parse_conllu() does.
  std::vector<ConlluSentence> next(size_t most);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string format_conllu(std::span<const ConlluSentence> sentences);
/// Writes one sentence. REQUIRES: no column is empty or has a tab or line end.
std::string format_conllu(std::span<const Word> words, std::string_view sentence_id);

}  // namespace mh
