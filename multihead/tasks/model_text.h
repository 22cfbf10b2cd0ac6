// Lines of text as the token ids that a translator reads, and back: with the tokenizers of a model's folder,
// or with the ids themselves written in decimal. Reports lines that are cut and words that the tokenizer does
// not know.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/text/long_lines.h"
#include "multihead/text/unknown_tokens.h"

namespace mh {

/// How a line holds its tokens.
enum class LineForm {
  kText,      // a tokenizer makes tokens of it
  kTokenIds,  // "17 4 230": the ids in decimal, between spaces
};

class ModelText {
 public:
  struct Options {
    LineForm form = LineForm::kText;
    std::function<void(const std::string&)> remark = nullptr;  // one line worth knowing: lines were cut
    bool strict = false;          // refuse a line that is too long, which is cut otherwise
    LanguagePair languages = {};  // of texts, where the folder has codes of languages
    std::string prefix = {};      // comes before each text of a source that is not empty
  };

  /// `folder` must outlive this. Throws FileError when it lacks a tokenizer that lines of text need,
  /// UsageError when its model translates nothing, or the prefix leaves no room for a text or stands before token ids.
  explicit ModelText(const ModelFolder& folder, Options options);
  explicit ModelText(const ModelFolder& folder) : ModelText(folder, Options{}) {}

  using Ids = std::vector<std::vector<int32_t>>;
  /// What the encoder reads, the end token last (added when it is not there). A line beyond the model's
  /// longest sequence is cut, keeping the end token, and a remark says so. Throws FormatError on a line that
  /// should be ids of the vocabulary and is not, and with `strict` on one that is too long.
  Ids sources(const std::vector<std::string>& lines, const LinesFrom& from);
  /// The same, but a line of no tokens stays empty, without the end token: its translation is no tokens.
  Ids sources_to_translate(const std::vector<std::string>& lines, const LinesFrom& from);
  /// Without end token; cut and remarked upon in the same way.
  Ids targets(const std::vector<std::string>& lines, const LinesFrom& from);
  /// One line for a target's ids, whatever they spell: line ends become spaces.
  std::string text(const std::vector<int32_t>& target) const;

  /// Of all lines until now.
  const UnknownTokens& unknown() const { return unknown_; }
  /// The same, counting from zero again.
  UnknownTokens take_unknown();

 private:
  enum class Side { kSource, kTarget };
  Ids encode(const std::vector<std::string>& lines, const LinesFrom& from, Side side);

  const ModelFolder& folder_;
  Options options_;
  UnknownTokens unknown_;
};

}  // namespace mh
