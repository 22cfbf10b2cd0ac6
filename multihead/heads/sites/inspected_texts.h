// Reads texts for the inspection of heads: as a translator reads them, or as a model that reads one text does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/data/tree_bank.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/sites/words.h"
#include "multihead/nn/sites.h"

namespace mh {

/// One side's lines as the model reads them; an entry for each line, with one for each token.
struct InspectedTexts {
  std::vector<std::vector<int32_t>> ids;                               // a translator's without end token
  std::vector<std::vector<std::pair<int32_t, int32_t>>> offsets = {};  // Encoding::offsets
  std::vector<WordOfToken> words = {};                                 // where words are given
  std::vector<std::vector<int32_t>> types = {};                        // of tokens, where there are pairs
  std::vector<size_t> seconds = {};  // which token the second text of a pair begins at
};

/// Tells what it cuts, and what the tokenizer does not know.
class InspectedTextReader {
 public:
  using Remark = std::function<void(const std::string&)>;
  /// languages: of a translator, language_pair().
  InspectedTextReader(const ModelFolder& folder, Remark remark, const LanguagePair& languages)
      : folder_(folder),
        remark_(std::move(remark)),
        languages_(languages),
        longest_(static_cast<size_t>(folder.model->facts().max_positions)) {}

  /// As a translator reads it, a target without the end token. words: a list for each line, or none; from: what a line
  /// is called.
  InspectedTexts translated(const std::vector<std::string>& lines, TextSide side,
                            const std::vector<std::vector<Word>>& words, const LinesFrom& from) const;
  /// As a model that reads one text reads it, special tokens and all; lines of no tokens stay empty.
  InspectedTexts whole(const std::vector<std::string>& lines, const std::vector<std::vector<Word>>& words,
                       const LinesFrom& from) const;
  /// Two texts as one sequence, for each line.
  InspectedTexts pairs(const std::vector<std::string>& firsts, const std::vector<std::string>& seconds,
                       const LinesFrom& from = {.one = "pair"}) const;

 private:
  InspectedTexts read(const TextReader& reader, const std::vector<std::string>& lines,
                      const ReadLinesOptions& options, const std::vector<std::vector<Word>>& words) const;

  const ModelFolder& folder_;
  Remark remark_;
  LanguagePair languages_;
  size_t longest_;  // tokens that the model reads
};

/// Whether it is an encoder-decoder.
bool translates(const ModelFolder& folder);
bool is_causal(const ModelFolder& folder);
/// Throws UsageError when translations are `given` to a model that reads one text.
void refuse_targets(const ModelFolder& folder, bool given);
/// The greedy translations of the sources, without end tokens.
std::vector<std::vector<int32_t>> greedy_translations(const ModelFolder& folder,
                                                      std::span<const std::vector<int32_t>> sources,
                                                      const LanguagePair& languages, Sites* sites);

}  // namespace mh
