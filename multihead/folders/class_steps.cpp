#include "multihead/folders/class_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "multihead/folders/step_words.h"

namespace mh {
namespace {

constexpr const char* kSpaceMark = "\u2581";
// The ids of <unk>, whatever the file says; mBART's is XLM-RoBERTa's.
constexpr size_t kUnknownOfXlmRoberta = 3, kUnknownOfT5 = 2;

bool has_token(const TokenizerParts& parts, const std::string& token) {
  return std::any_of(parts.added_tokens.begin(), parts.added_tokens.end(),
                     [&](const AddedToken& added) { return added.content == token; }) ||
         std::any_of(parts.model.vocabulary.begin(), parts.model.vocabulary.end(),
                     [&](const auto& entry) { return entry.first == token; });
}

int32_t id_in(const TokenizerParts& parts, const std::string& token) {
  for (const AddedToken& added : parts.added_tokens) {
    if (added.content == token) return added.id;
  }
  for (const auto& [text, id] : parts.model.vocabulary) {
    if (text == token) return id;
  }
  return -1;
}

TemplatePiece special_piece(const std::string& token, int32_t type) {
  return {.sequence = 0, .special = token, .type_id = type};
}
TemplatePiece text_piece(char sequence, int32_t type) {
  return {.sequence = sequence, .special = "", .type_id = type};
}

/// FIRST A LAST, and of two texts FIRST A LAST B LAST, or with twice LAST between them. Nothing when the tokenizer lacks one of
/// them.
std::optional<PostProcessorStep> around(const TokenizerParts& parts, const std::string& first,
                                        const std::string& last, bool twice, int32_t type_of_second) {
  if (!has_token(parts, first) || !has_token(parts, last)) return std::nullopt;
  PostProcessorStep step;
  step.single = {special_piece(first, 0), text_piece('A', 0), special_piece(last, 0)};
  step.pair = step.single;
  if (twice) step.pair.push_back(special_piece(last, 0));
  step.pair.push_back(text_piece('B', type_of_second));
  step.pair.push_back(special_piece(last, type_of_second));
  for (const std::string& token : {first, last}) {
    if (!step.special_tokens.empty() && step.special_tokens.back().name == token) continue;
    step.special_tokens.push_back({.name = token, .ids = {id_in(parts, token)}, .tokens = {token}});
  }
  return step;
}

/// The same with a token behind each text alone.
std::optional<PostProcessorStep> behind(const TokenizerParts& parts, const std::string& last) {
  if (!has_token(parts, last)) return std::nullopt;
  PostProcessorStep step;
  step.single = {text_piece('A', 0), special_piece(last, 0)};
  step.pair = {text_piece('A', 0), special_piece(last, 0), text_piece('B', 0), special_piece(last, 0)};
  step.special_tokens = {{.name = last, .ids = {id_in(parts, last)}, .tokens = {last}}};
  return step;
}

void put_word_piece(const ClassOptions& options, TokenizerParts& parts) {
  const std::string unknown = options.unk.value_or("[UNK]");
  if (has_token(parts, unknown)) parts.model.unknown_token = unknown;
  parts.model.continuing_subword_prefix = "##";
  parts.model.max_input_chars_per_word = 100;
  parts.normalizers = {{.kind = NormalizerStep::Kind::kBert,
                        .handle_chinese_chars = options.tokenize_chinese_chars.value_or(true),
                        .strip_accents = options.strip_accents,
                        .lowercase = options.do_lower_case.value_or(true)}};
  parts.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kBert}};
  parts.decoders = {{.kind = DecoderStep::Kind::kWordPiece, .affix = "##"}};
}

void put_byte_level(const ClassOptions& options, TokenizerParts& parts) {
  parts.model.continuing_subword_prefix = parts.model.end_of_word_suffix = "";
  parts.model.fuse_unknown = parts.model.byte_fallback = parts.model.ignore_merges = false;
  parts.normalizers = {};
  parts.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kByteLevel,
                           .add_prefix_space = options.add_prefix_space.value_or(false)}};
  parts.decoders = {{.kind = DecoderStep::Kind::kByteLevel}};
}

void put_gemma(const ClassOptions& options, TokenizerParts& parts) {
  parts.model.unknown_token = options.unk.value_or("<unk>");
  parts.model.fuse_unknown = parts.model.byte_fallback = true;
  parts.model.ignore_merges = false;
  parts.normalizers = {
      {.kind = NormalizerStep::Kind::kReplace, .pattern = {.literal = " "}, .content = kSpaceMark}};
  parts.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kSplit,
                           .behavior = SplitBehavior::kMergedWithPrevious,
                           .pattern = {.literal = " "}}};
  parts.decoders = {{.kind = DecoderStep::Kind::kReplace, .content = " ", .pattern = {.literal = kSpaceMark}},
                    {.kind = DecoderStep::Kind::kByteFallback},
                    {.kind = DecoderStep::Kind::kFuse}};
}

void put_llama(const ClassOptions& options, TokenizerParts& parts) {
  const bool prefix = options.add_prefix_space.value_or(true);
  parts.model.fuse_unknown = parts.model.byte_fallback = true;
  parts.model.ignore_merges = false;
  parts.normalizers = {};
  const PrependScheme scheme = !prefix                          ? PrependScheme::kNever
                               : options.legacy.value_or(false) ? PrependScheme::kAlways
                                                                : PrependScheme::kFirst;
  parts.pre_tokenizers = {
      {.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = scheme, .split = false}};
  parts.decoders = {{.kind = DecoderStep::Kind::kReplace, .content = " ", .pattern = {.literal = kSpaceMark}},
                    {.kind = DecoderStep::Kind::kByteFallback},
                    {.kind = DecoderStep::Kind::kFuse}};
  if (prefix) parts.decoders.push_back({.kind = DecoderStep::Kind::kStrip, .content = " ", .start = 1});
}

const NormalizerStep* character_map(const TokenizerParts& parts) {
  const auto map = std::find_if(
      parts.normalizers.begin(), parts.normalizers.end(),
      [](const NormalizerStep& step) { return step.kind == NormalizerStep::Kind::kPrecompiled; });
  return map == parts.normalizers.end() ? nullptr : &*map;
}

void put_unigram(const ClassOptions& options, TokenizerParts& parts) {
  const PrependScheme scheme =
      options.add_prefix_space.value_or(true) ? PrependScheme::kAlways : PrependScheme::kNever;
  parts.model.byte_fallback = false;
  const NormalizerStep* const map = character_map(parts);
  parts.normalizers = map == nullptr ? std::vector<NormalizerStep>() : std::vector<NormalizerStep>{*map};
  parts.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kWhitespaceSplit},
                          {.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = scheme}};
  parts.decoders = {{.kind = DecoderStep::Kind::kMetaspace, .prepend_scheme = scheme}};
}

void put_deberta(const ClassOptions& options, TokenizerParts& parts) {
  const PrependScheme scheme =
      options.add_prefix_space.value_or(true) ? PrependScheme::kAlways : PrependScheme::kFirst;
  parts.model.byte_fallback = false;
  parts.normalizers = {{.kind = NormalizerStep::Kind::kReplace,
                        .pattern = {.kind = Pattern::Kind::kSpacesBreaks},
                        .content = " "},
                       {.kind = NormalizerStep::Kind::kNfc},
                       {.kind = NormalizerStep::Kind::kStrip, .left = false}};
  if (options.do_lower_case.value_or(false))
    parts.normalizers.insert(parts.normalizers.begin(), {.kind = NormalizerStep::Kind::kLowercase});
  parts.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = scheme}};
  if (options.split_by_punct.value_or(false))
    parts.pre_tokenizers.insert(parts.pre_tokenizers.begin(), {.kind = PreTokenizerStep::Kind::kPunctuation});
  parts.decoders = {{.kind = DecoderStep::Kind::kMetaspace, .prepend_scheme = scheme}};
}

/// mBART's, of Unigram, and those of mBART-50 and NLLB, which makes pieces by merges.
void put_many_languages(TokenizerClass kind, TokenizerParts& parts) {
  std::vector<NormalizerStep> normalizers;
  if (kind != TokenizerClass::kMbart) {
    const NormalizerStep* const map = character_map(parts);
    if (map != nullptr) normalizers.push_back(*map);
    if (map != nullptr || kind == TokenizerClass::kMbart50)
      normalizers.push_back({.kind = NormalizerStep::Kind::kReplace,
                             .pattern = {.kind = Pattern::Kind::kSpaceRun},
                             .content = " "});
  }
  parts.normalizers = std::move(normalizers);
  parts.pre_tokenizers = {
      {.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = PrependScheme::kAlways}};
  if (kind == TokenizerClass::kMbart)
    parts.pre_tokenizers.insert(parts.pre_tokenizers.begin(),
                                {.kind = PreTokenizerStep::Kind::kWhitespaceSplit});
  parts.decoders = {{.kind = DecoderStep::Kind::kMetaspace, .prepend_scheme = PrependScheme::kAlways}};
  parts.model.byte_fallback = false;
}

/// CODE A </s>, or A </s> CODE, and of two texts one behind the other.
std::optional<PostProcessorStep> around_languages(TokenizerClass kind, const ClassOptions& options,
                                                  const TokenizerParts& parts) {
  const bool nllb = kind == TokenizerClass::kNllb;
  const std::string code = options.language.value_or(nllb ? "eng_Latn" : "en_XX"),
                    end = options.eos.value_or("</s>");
  if (!has_token(parts, code) || !has_token(parts, end)) return std::nullopt;
  const bool behind = kind == TokenizerClass::kMbart || (nllb && options.legacy_behaviour.value_or(false));
  PostProcessorStep step;
  if (!behind) step.single.push_back(special_piece(code, 0));
  step.single.push_back(text_piece('A', 0));
  step.pair = step.single;
  step.pair.push_back(text_piece('B', 0));
  for (auto* pieces : {&step.single, &step.pair}) {
    pieces->push_back(special_piece(end, 0));
    if (behind) pieces->push_back(special_piece(code, 0));
  }
  for (const std::string& token : {code, end})
    step.special_tokens.push_back({.name = token, .ids = {id_in(parts, token)}, .tokens = {token}});
  return step;
}

/// XLM-RoBERTa's and T5's is the piece of one id; CamemBERT's that of the name, else the first, DeBERTa's else the second.
void put_unknown_piece(TokenizerClass kind, const ClassOptions& options, TokenModel& model) {
  const auto& pieces = model.pieces;
  size_t at = kind == TokenizerClass::kT5 ? kUnknownOfT5 : kUnknownOfXlmRoberta;
  const bool deberta = kind == TokenizerClass::kDeberta;
  if (deberta || kind == TokenizerClass::kCamembert) {
    const std::string name = options.unk.value_or(deberta ? "[UNK]" : "<unk>");
    const auto named = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const ScoredPiece& piece) { return piece.text == name; });
    at = named == pieces.end() ? (deberta ? 1 : 0) : static_cast<size_t>(named - pieces.begin());
    if (model.unknown_token == name)
      return;  // of a SentencePiece model, where it is none of the pieces with scores
  }
  if (at < pieces.size()) model.unknown_token = pieces[at].text;
}

void put_template(std::optional<PostProcessorStep> step, TokenizerParts& parts) {
  if (step) parts.post_processors = {std::move(*step)};
}

/// What 4.57 and 5 both do to the file's own steps: the arguments that are given.
void put_options(TokenizerClass kind, const ClassOptions& options, TokenizerParts& parts) {
  for (NormalizerStep& step : parts.normalizers) {
    if (step.kind != NormalizerStep::Kind::kBert) continue;
    step.lowercase = options.do_lower_case.value_or(step.lowercase);
    step.handle_chinese_chars = options.tokenize_chinese_chars.value_or(step.handle_chinese_chars);
    if (options.strip_accents) step.strip_accents = options.strip_accents;
  }
  for (PreTokenizerStep& step : parts.pre_tokenizers) {
    if (step.kind == PreTokenizerStep::Kind::kByteLevel)
      step.add_prefix_space = options.add_prefix_space.value_or(step.add_prefix_space);
  }
  for (PostProcessorStep& step : parts.post_processors) {
    if (kind != TokenizerClass::kRoberta || step.kind != PostProcessorStep::Kind::kRoberta) continue;
    step.trim_offsets = options.trim_offsets.value_or(step.trim_offsets);
    step.add_prefix_space = options.add_prefix_space.value_or(step.add_prefix_space);
  }
}

bool digits_stand_alone(const TokenModel& model) {
  return std::none_of(model.vocabulary.begin(), model.vocabulary.end(), [](const auto& entry) {
    return entry.first.size() > 1 && entry.first.find_first_of("0123456789") != std::string::npos &&
           !entry.first.starts_with('<');  // "<|reserved_12|>" is no result of merges
  });
}

}  // namespace

std::vector<std::string> put_class_steps(TokenizerClass kind, const ClassOptions& options,
                                         TokenizerParts& parts) {
  if (kind == TokenizerClass::kAsWritten) return {};
  TokenizerParts asked;
  asked.normalizers = parts.normalizers;
  asked.pre_tokenizers = parts.pre_tokenizers;
  asked.post_processors = parts.post_processors;
  asked.decoders = parts.decoders;
  asked.model = without_lists(parts.model);
  put_options(kind, options, asked);
  const bool digits = digits_stand_alone(parts.model),
             types = kind == TokenizerClass::kBert || kind == TokenizerClass::kDeberta;
  const StepWords before(asked, digits, types);

  const auto cls = [&](const char* otherwise) { return options.cls.value_or(otherwise); };
  const auto sep = [&](const char* otherwise) { return options.sep.value_or(otherwise); };
  switch (kind) {
    case TokenizerClass::kBert:
      put_word_piece(options, parts);
      put_template(around(parts, cls("[CLS]"), sep("[SEP]"), false, 1), parts);
      break;
    case TokenizerClass::kMpnet:
      put_word_piece(options, parts);
      if (auto step = around(parts, cls("<s>"), sep("</s>"), true, 0)) {
        step->kind = PostProcessorStep::Kind::kRoberta;
        step->add_prefix_space = false;
        put_template(std::move(step), parts);
      }
      break;
    case TokenizerClass::kRoberta:
      put_byte_level(options, parts);
      if (auto step = around(parts, cls("<s>"), sep("</s>"), true, 0)) {
        step->kind = PostProcessorStep::Kind::kRoberta;
        step->add_prefix_space = options.add_prefix_space.value_or(false);
        step->trim_offsets = options.trim_offsets.value_or(true);
        put_template(std::move(step), parts);
      }
      break;
    case TokenizerClass::kGpt2:
      put_byte_level(options, parts);
      break;
    case TokenizerClass::kGptNeox:
      put_byte_level(options, parts);
      parts.normalizers = {{.kind = NormalizerStep::Kind::kNfc}};
      parts.post_processors = {};  // add_bos_token, too, is taken away from this class
      break;
    case TokenizerClass::kGemma:
      put_gemma(options, parts);
      break;
    case TokenizerClass::kQwen2:
      put_byte_level(options, parts);
      parts.normalizers = {{.kind = NormalizerStep::Kind::kNfc}};
      parts.pre_tokenizers.front().use_regex = false;
      parts.pre_tokenizers.insert(parts.pre_tokenizers.begin(),
                                  {.kind = PreTokenizerStep::Kind::kSplit,
                                   .pattern = {.kind = Pattern::Kind::kWords, .words = WordRule::kQwen2}});
      break;
    case TokenizerClass::kLlama:
      put_llama(options, parts);
      break;
    case TokenizerClass::kXlmRoberta:
    case TokenizerClass::kCamembert:
      put_unigram(options, parts);
      put_unknown_piece(kind, options, parts.model);
      put_template(around(parts, options.bos.value_or("<s>"), options.eos.value_or("</s>"), true, 0), parts);
      break;
    case TokenizerClass::kT5:
      put_unigram({}, parts);
      put_unknown_piece(kind, options, parts.model);
      put_template(behind(parts, options.eos.value_or("</s>")), parts);
      break;
    case TokenizerClass::kDeberta:
      put_deberta(options, parts);
      put_unknown_piece(kind, options, parts.model);
      put_template(around(parts, cls("[CLS]"), sep("[SEP]"), false, 1), parts);
      break;
    case TokenizerClass::kMbart:
    case TokenizerClass::kMbart50:
      put_many_languages(kind, parts);
      put_unknown_piece(kind, options, parts.model);
      put_template(around_languages(kind, options, parts), parts);
      break;
    case TokenizerClass::kNllb:
      put_many_languages(kind, parts);
      parts.model.unknown_token = options.unk.value_or("<unk>");
      parts.model.fuse_unknown = true;
      parts.model.ignore_merges = false;
      put_template(around_languages(kind, options, parts), parts);
      break;
    case TokenizerClass::kAsWritten:
      break;
  }
  const StepWords after(parts, digits, types);
  std::vector<std::string> changed;
  const auto compare = [&](const char* name, std::string StepWords::*step) {
    if (before.*step != after.*step) changed.emplace_back(name);
  };
  compare("normalizer", &StepWords::normalizer);
  compare("pre_tokenizer", &StepWords::pre_tokenizer);
  compare("model", &StepWords::model);
  compare("post_processor", &StepWords::post_processor);
  compare("decoder", &StepWords::decoder);
  return changed;
}

}  // namespace mh
