// The tokens of lines of text, or of pairs of texts, as a model reads them: with the special tokens of its tokenizer,
// and cut to its longest sequence as Hugging Face's truncation does. Every task reads its lines here; prompts alone lose their
// beginning instead (tasks/prompt_tokens.h).
//
//   a text       [CLS] text [SEP]                 loses its end before the closing special tokens
//   a pair       [CLS] first [SEP] second [SEP]   the longer of the two loses its end, until both are equally long
//   translator   text                             loses its end token, for which a place is kept; BART's begins with <s>, that of
//                                                 a model of many languages with a code (language_codes.h)
//
// Where the tokenizer says so (Tokenizer::cut_end()), texts lose their start instead of their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/text/cut_tokens.h"
#include "multihead/text/long_lines.h"
#include "multihead/text/unknown_tokens.h"

namespace mh {

struct TextTokens {
  std::vector<int32_t> ids;
  std::vector<int32_t> types = {};  // of each token; empty: all of type 0
  /// Where each token stands in its text (Encoding::offsets); of a single text only when they were asked for.
  std::vector<std::pair<int32_t, int32_t>> offsets = {};
  std::optional<size_t> second = {};  // of two texts: which token the second one begins at
  size_t uncut = 0;                   // tokens that there were before they were cut
  bool has_unknown = false;           // one of these was the tokenizer's unknown token
};

/// Whose text it is: the only one that a model reads, or one of a translator's, which loses what ends it, for which a place is
/// kept (source_end() of language_codes.h).
enum class TextSide { kOnly, kSource, kTarget };

class TextReader {
 public:
  struct Options {
    size_t longest = 0;  // tokens of a sequence, special tokens among them
    TextSide side = TextSide::kOnly;
    bool offsets = false;         // of single texts
    LanguagePair languages = {};  // of a translator
  };
  /// `folder` must outlive this. Throws FileError when it has no tokenizer, UsageError when nothing says a language that it
  /// needs.
  TextReader(const ModelFolder& folder, const Options& options);
  TextReader(const ModelFolder& folder, size_t longest) : TextReader(folder, Options{.longest = longest}) {}

  const Tokenizer& tokenizer() const { return tokenizer_; }
  size_t longest() const { return longest_; }
  /// Throws FormatError on a text that is not UTF-8.
  TextTokens read(const std::string& text) const;
  /// Two texts as one sequence, with the token types of the tokenizer's template, if the model has types. Throws
  /// UsageError as check_pairs() does, FormatError on a text that is not UTF-8.
  TextTokens read(const std::string& first, const std::string& second) const;
  /// Throws UsageError, saying why, when the model does not read two texts as one sequence: only encoders and classifiers do
  /// whose tokenizer has a template for a pair and whose longest sequence has room for one.
  void check_pairs() const;

 private:
  bool has_unknown(std::span<const int32_t> ids) const;

  const ModelFolder& folder_;
  const Tokenizer& tokenizer_;
  size_t longest_;
  TextCut cut_;
  std::optional<int32_t> end_;   // left out
  size_t room_for_end_ = 0;      // tokens
  std::vector<int32_t> before_;  // codes of languages, instead of the tokenizer's template
  bool own_template_ = true;
  bool offsets_;
  bool has_types_;  // of tokens
};

struct ReadLinesOptions {
  LinesFrom from = {};
  std::span<const std::string> seconds = {};  // a second text for each line, or none
  /// Makes the text that is read of a line, which is UTF-8; null: the line itself.
  std::function<std::string(const std::string&)> prepare = nullptr;
  /// Hears how many lines were cut, and what the tokenizer does not know; may be null.
  std::function<void(const std::string&)> remark = nullptr;
  bool strict = false;               // refuse a line that is too long, which is cut otherwise
  bool whole = false;                // the same of a caller that can read whole lines alone
  UnknownTokens* unknown = nullptr;  // what the tokenizer does not know is counted here instead of told
};
/// Reads lines, or pairs, with all threads. Throws FormatError that names the line which is not UTF-8, or with `strict` too
/// long, or with `whole`; UsageError unless there are as many second texts, and as check_pairs() does.
std::vector<TextTokens> read_lines(const TextReader& reader, std::span<const std::string> lines,
                                   const ReadLinesOptions& options);

/// The line with the prefix before it, if it has words.
std::string behind_prefix(const std::string& prefix, const std::string& line);

/// How many tokens stay of two texts that have so many, when there is room for `room` in all: the shorter stays
/// whole if that leaves the longer at least as many, else both get half, the longer (of equal ones the second) one
/// more of an odd number. That is the strategy "longest_first" of Hugging Face.
std::pair<size_t, size_t> shares_of_pair(size_t first, size_t second, size_t room);

}  // namespace mh
