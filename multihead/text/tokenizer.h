// Tokenizer: turns text into token ids, and ids back into text. It reads and writes Hugging Face's
// tokenizer.json, so the tokenizers of existing models can be used, and the `tokenizers` library opens
// ours. Models: byte-pair encoding (Sennrich et al. 2016), WordPiece
// (BERT), Unigram (Kudo 2018) and whole words. train_tokenizer.h learns one
// from text; tokenizer_parts.h shows the steps of the pipeline.
//
//   const Tokenizer tokenizer = Tokenizer::from_json(read_file(path), path);
//   const std::vector<int32_t> ids = tokenizer.encode_ids("a garden");  // and often an end token
//   tokenizer.decode(ids);                                              // "a garden"
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh {

struct TokenizerParts;

/// Of the ends of a text, that which is cut off where a model reads fewer tokens.
enum class TextEnd { kStart, kEnd };

/// A text as tokens. The three lists have one entry for each token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<std::string> tokens;
  /// Characters (code points) [first, second) of the original text; {0, 0} for tokens that the template
  /// added, such as "</s>".
  std::vector<std::pair<int32_t, int32_t>> offsets;
};

/// Two texts as one sequence, e.g. "[CLS] first [SEP] second [SEP]".
struct TokenPair {
  std::vector<int32_t> ids;
  std::vector<int32_t>
      types;  // of each token, which models with token types are given: of BERT's, 0 up to the
              // first [SEP], then 1
};

/// A tokenizer never changes: copies are cheap and share its data, and any number of threads may use it at
/// once.
class Tokenizer {
 public:
  /// Reads tokenizer.json: WordLevel, WordPiece, BPE and Unigram models. Throws FormatError in one line that
  /// starts with `file_name_for_errors` on anything malformed, contradictory or not supported (naming the
  /// type). The file's truncation is kept (truncation()) but not obeyed, so that no text is cut off silently;
  /// its padding is ignored.
  static Tokenizer from_json(std::string_view json, std::string_view file_name_for_errors);
  /// Throws FormatError on parts that contradict each other: ids must be 0 … n-1 without holes.
  explicit Tokenizer(TokenizerParts parts);

  /// Returns the tokenizer.json, which Hugging Face `tokenizers` opens with the same ids, offsets and
  /// decoding. Throws UsageError when that format cannot tell this tokenizer; files() has it then.
  std::string to_json() const;
  /// Returns what to write into a model's folder, by the files' names: tokenizer.json under the name `json`, or the
  /// files that the tokenizer was read from when tokenizer.json cannot tell it (OPUS: source.spm, vocab.json).
  std::map<std::string, std::string> files(const std::string& json = "tokenizer.json") const;

  /// Throws FormatError when `text` is not UTF-8.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  /// Returns only the ids, which is faster.
  std::vector<int32_t> encode_ids(std::string_view text, bool add_special_tokens = true) const;
  /// Whether the tokenizer says how two texts are put together: it has a template for a pair.
  bool joins_pairs() const;
  /// Puts the special tokens of that template around the ids of two texts, which encode_ids(text, false) gives.
  /// Throws UsageError when there is no such template.
  TokenPair joined(std::span<const int32_t> first, std::span<const int32_t> second) const;
  /// Returns the text of the ids. Throws UsageError on an id that is no token's.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;
  /// The same of what a model said, whose vocabulary may have been rounded up: ids that are no token's are left out.
  std::string decode_known(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  /// The size of the vocabulary, added tokens included: the highest id + 1.
  int32_t size() const;
  std::optional<int32_t> id_of(std::string_view token) const;
  /// Throws UsageError on ids out of range.
  const std::string& token_of(int32_t id) const;
  /// The token as people read it, e.g. in a table. Those of byte-level tokenizers (GPT-2, RoBERTa, Llama 3) are
  /// shown as the text that they stand for: a space as U+2581, and a byte that is no whole character by itself,
  /// or is a control character, as <0xE6>. All other tokens are shown as token_of() has them, but for characters that a line cannot have, \u202e. Not for programs:
  /// two tokens may look alike. Throws UsageError on ids out of range.
  std::string shown(int32_t id) const;
  /// The id of the unknown token, which stands for text that the vocabulary does not have.
  std::optional<int32_t> unknown_id() const;
  /// How many tokens the file wants a text cut to, those of the template included: the caller's to obey.
  std::optional<int32_t> truncation() const;
  /// Which end a text loses that has more tokens than a model reads: its end, unless the files say otherwise
  /// (truncation_side of tokenizer_config.json, direction in tokenizer.json's truncation).
  TextEnd cut_end() const;
  /// Whether a model with token types is given those that the template says.
  bool gives_types() const;

 private:
  struct Pipeline;
  std::shared_ptr<const Pipeline> pipeline_;
};

}  // namespace mh
