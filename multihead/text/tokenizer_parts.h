// What a tokenizer is made of, as plain data: the pipeline that tokenizer.json describes.
//
//   text -> added tokens cut out -> normalizers -> pre-tokenizers -> model -> post-processors -> ids
//   ids -> decoders -> text
//
// The names are those of Hugging Face's format, whose Sequences are flattened into lists of steps here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mh {

enum class TextEnd;  // tokenizer.h

/// The regular expressions by which byte-level tokenizers cut words; each part of a text is a word.
/// word_rules.h has them.
enum class WordRule { kGpt2, kLlama3, kQwen2, kO200k, kTekken };

/// What to look for in a text: a literal text, or one of the regular expressions that tokenizers use.
struct Pattern {
  enum class Kind {
    kLiteral,
    kWhitespaceRun,  ///< \s+
    kSpaceRun,       ///< " {2,}"
    kSpacesBreaks,   ///< \s{2,}|[\n\r\t]
    kWords,          ///< `words`
    kNumber,         ///< \p{N}
    kThreeNumbers,   ///< \p{N}{1,3}
  };
  Kind kind = Kind::kLiteral;
  std::string literal = {};
  WordRule words = WordRule::kGpt2;
};

struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfkc,
    kNfd,
    kNfkd,
    kLowercase,
    kStrip,
    kStripAccents,
    kPrepend,
    kReplace,
    kBert,
    kNmt,
    kPrecompiled,
    kSentencePiece
  };
  Kind kind = Kind::kNfc;
  bool left = true;                        ///< strip
  bool right = true;                       ///< strip
  Pattern pattern = {};                    ///< replace
  std::string content = {};                ///< prepend, replace
  std::string character_map = {};          ///< precompiled, sentence_piece: its bytes (character_map.h)
  bool add_dummy_prefix = true;            ///< sentence_piece: a space before the text
  bool remove_extra_whitespaces = true;    ///< sentence_piece: at the ends, and all but one of a run
  bool escape_whitespaces = true;          ///< sentence_piece: a space becomes U+2581
  std::vector<std::string> kept = {};      ///< sentence_piece: texts that stay as they are
  bool clean_text = true;                  ///< bert: removes control characters; whitespace becomes ' '
  bool handle_chinese_chars = true;        ///< bert: puts spaces around ideographs
  std::optional<bool> strip_accents = {};  ///< bert; none: as `lowercase`
  bool lowercase = true;                   ///< bert
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kAlways, kFirst, kNever };

struct PreTokenizerStep {
  enum class Kind {
    kWhitespace,
    kWhitespaceSplit,
    kMetaspace,
    kByteLevel,
    kPunctuation,
    kDigits,
    kSplit,
    kBert
  };
  Kind kind = Kind::kWhitespace;
  std::string replacement = "\u2581";  ///< metaspace: one character that stands for a space
  PrependScheme prepend_scheme = PrependScheme::kAlways;  ///< metaspace
  bool split = true;                                      ///< metaspace
  bool add_prefix_space = true;                           ///< byte_level
  bool trim_offsets = true;                               ///< byte_level: kept for writing
  bool use_regex = true;                                  ///< byte_level: GPT-2's words
  SplitBehavior behavior = SplitBehavior::kIsolated;      ///< punctuation, split
  bool individual_digits = false;                         ///< digits
  bool invert = false;                                    ///< split
  Pattern pattern = {};                                   ///< split
};

/// One place of a template: the text itself (sequence 'A' or 'B') or a special token.
struct TemplatePiece {
  char sequence = 0;  ///< 'A', 'B', or 0 for a special token
  std::string special = {};
  int32_t type_id = 0;
};
struct TemplateToken {
  std::string name = {};
  std::vector<int32_t> ids = {};
  std::vector<std::string> tokens = {};
};

struct PostProcessorStep {
  /// kRoberta: the offsets of kByteLevel, then the template. BERT's own is a template.
  enum class Kind { kTemplateProcessing, kByteLevel, kRoberta };
  Kind kind = Kind::kTemplateProcessing;
  std::vector<TemplatePiece> single = {};
  std::vector<TemplatePiece> pair = {};  ///< of two texts; post_processor.h says when it can be used
  std::vector<TemplateToken> special_tokens = {};
  bool add_prefix_space = true;  ///< byte_level, roberta
  bool trim_offsets = true;      ///< byte_level, roberta: offsets leave out the spaces around a word
  bool use_regex = true;         ///< byte_level: kept for writing
};

struct DecoderStep {
  enum class Kind {
    kMetaspace,
    kByteLevel,
    kBpe,
    kWordPiece,
    kFuse,
    kByteFallback,
    kStrip,
    kReplace,
    kSentencePiece
  };
  Kind kind = Kind::kFuse;
  std::string replacement = "\u2581";                     ///< metaspace
  PrependScheme prepend_scheme = PrependScheme::kAlways;  ///< metaspace
  bool split = true;                                      ///< metaspace: kept for writing
  bool add_prefix_space = true;                           ///< byte_level: kept for writing
  bool trim_offsets = true;                               ///< byte_level: kept for writing
  bool use_regex = true;                                  ///< byte_level: kept for writing
  std::string affix = {};                                 ///< bpe: suffix; word_piece: prefix
  bool cleanup = true;                                    ///< word_piece
  std::string content = {};                               ///< strip: a character; replace: the new text
  int32_t start = 0;                                      ///< strip
  int32_t stop = 0;                                       ///< strip
  Pattern pattern = {};                                   ///< replace: a literal
  std::string unknown = {};                               ///< sentence_piece: shown as `content`
  bool trims_start = true;   ///< sentence_piece: leaves out the space before the text
  bool trims_starts = true;  ///< sentence_piece: that of every piece before the first letter
  bool trims_ends = false;   ///< sentence_piece: leaves out the whitespace at both ends of the text
};

/// A token that is matched in the text itself, before the model sees it.
struct AddedToken {
  int32_t id = 0;
  std::string content = {};
  bool single_word = false;  ///< only between non-words
  bool lstrip = false;       ///< includes the whitespace before it
  bool rstrip = false;       ///< includes the whitespace after it
  bool normalized = false;   ///< matched after normalisation rather than before
  bool special = true;       ///< left out by decode
  bool in_text = true;       ///< looked for in the text; SentencePiece's control pieces are not
};

/// A piece of a model that chooses by scores.
struct ScoredPiece {
  std::string text = {};
  double score = 0;           ///< the logarithm of its probability, or for BPE minus its rank
  int32_t id = 0;             ///< of a token; several pieces may have the unknown token's
  bool user_defined = false;  ///< SentencePiece: always taken where the text has it
};

/// The model: splits a word into tokens of the vocabulary.
struct TokenModel {
  enum class Kind { kWordLevel, kBpe, kWordPiece, kUnigram, kScoredBpe };
  Kind kind = Kind::kBpe;
  std::vector<std::pair<std::string, int32_t>> vocabulary = {};
  std::optional<std::string> unknown_token = {};
  std::string continuing_subword_prefix = {};  ///< bpe, word_piece; empty: none
  int32_t max_input_chars_per_word = 100;      ///< word_piece: longer words are unknown
  bool byte_fallback = false;  ///< bpe, unigram: unknown characters become their bytes, <0x00> … <0xFF>
  // For unigram and scored_bpe:
  std::vector<ScoredPiece> pieces = {};
  bool sentencepiece = false;    ///< that library's arithmetic (float) rather than Hugging Face's (double)
  bool looks_up_unknown = true;  ///< a run of unknown characters that is a token is that token
  // For BPE only:
  std::vector<std::pair<std::string, std::string>> merges = {};  ///< in order of rank
  std::string end_of_word_suffix = {};                           ///< empty: none
  bool fuse_unknown = false;   ///< neighbouring unknown characters become one token
  bool ignore_merges = false;  ///< a word that is in the vocabulary becomes that token without merging
};

/// How a file wants long texts cut; this library leaves that to the caller.
struct Truncation {
  int32_t max_length = 0;      ///< in tokens, those of the template included
  bool keeps_the_end = false;  ///< direction Left: the start is cut off
};

struct TokenizerParts {
  std::vector<AddedToken> added_tokens = {};
  std::vector<NormalizerStep> normalizers = {};
  std::vector<PreTokenizerStep> pre_tokenizers = {};
  std::vector<PostProcessorStep> post_processors = {};
  std::vector<DecoderStep> decoders = {};  ///< none: tokens joined by spaces
  TokenModel model;
  std::optional<Truncation> truncation = {};
  /// Which end a text that is too long loses; unset: as `truncation` says, or its end.
  std::optional<TextEnd> cut = {};
  /// Models with token types are given those of the template.
  bool gives_types = true;
  /// Marian's: ">>" at the start of a text, with all up to the first "<<", is one token (">>deu<<", the language to
  /// translate into) or the unknown one.
  bool language_code = false;
  /// The files that tell all this when tokenizer.json cannot, by their names in a model folder; else none.
  std::map<std::string, std::string> files = {};
};

/// Throws FormatError on a character map that is damaged and on the id of a template that is not among `tokens` ids.
void check_steps(const TokenizerParts& parts, size_t tokens);

}  // namespace mh
