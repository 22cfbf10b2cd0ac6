#include "multihead/folders/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <utility>

#include "multihead/text/tokenizer_json.h"

namespace mh {
namespace {

constexpr const char* kSpaceMark = "\u2581";
constexpr size_t kUnknownOfXlmRoberta = 3;  // the id of <unk>, whatever the file says

struct ClassName {
  std::string_view name;
  TokenizerClass kind = TokenizerClass::kAsWritten;
  bool gives_types = false;
};
// Without "Fast", which changes nothing in transformers 5.
constexpr std::array kClassNames = {
    ClassName{"BertTokenizer", TokenizerClass::kBert, true},
    ClassName{"DistilBertTokenizer", TokenizerClass::kBert},
    ClassName{"MPNetTokenizer", TokenizerClass::kMpnet},
    ClassName{"RobertaTokenizer", TokenizerClass::kRoberta},
    ClassName{"GPT2Tokenizer", TokenizerClass::kGpt2},
    ClassName{"Qwen2Tokenizer", TokenizerClass::kQwen2},
    ClassName{"LlamaTokenizer", TokenizerClass::kLlama},
    ClassName{"XLMRobertaTokenizer", TokenizerClass::kXlmRoberta},
    ClassName{"CamembertTokenizer", TokenizerClass::kCamembert},
    ClassName{"PreTrainedTokenizer"},
    ClassName{"TokenizersBackend"},
    ClassName{"PythonBackend"},
    ClassName{"MarianTokenizer"},  // it opens OPUS's layout alone
};
// What AutoTokenizer takes for a model whose files name no class.
constexpr std::pair<std::string_view, std::string_view> kClassesOfModels[] = {
    {"bert", "BertTokenizer"},
    {"distilbert", "BertTokenizer"},
    {"mpnet", "MPNetTokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
};
constexpr std::string_view kDefault = "TokenizersBackend";

ChosenClass class_of(std::string_view name) {
  const auto* const found = std::find_if(kClassNames.begin(), kClassNames.end(),
                                         [&](const ClassName& known) { return known.name == name; });
  if (found == kClassNames.end()) return {.name = std::string(name), .known = false};
  return {.kind = found->kind, .name = std::string(name), .gives_types = found->gives_types};
}

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

void put_llama(const ClassOptions& options, TokenizerParts& parts) {
  const bool prefix = options.add_prefix_space.value_or(true);
  parts.model.fuse_unknown = parts.model.byte_fallback = true;
  parts.model.ignore_merges = false;
  parts.normalizers = {};
  const PrependScheme scheme = !prefix                         ? PrependScheme::kNever
                               : options.legacy.value_or(false) ? PrependScheme::kAlways
                                                                : PrependScheme::kFirst;
  parts.pre_tokenizers = {
      {.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = scheme, .split = false}};
  parts.decoders = {
      {.kind = DecoderStep::Kind::kReplace, .content = " ", .pattern = {.literal = kSpaceMark}},
      {.kind = DecoderStep::Kind::kByteFallback},
      {.kind = DecoderStep::Kind::kFuse}};
  if (prefix) parts.decoders.push_back({.kind = DecoderStep::Kind::kStrip, .content = " ", .start = 1});
}

void put_unigram(const ClassOptions& options, TokenizerParts& parts) {
  const PrependScheme scheme =
      options.add_prefix_space.value_or(true) ? PrependScheme::kAlways : PrependScheme::kNever;
  parts.model.byte_fallback = false;
  const auto map = std::find_if(
      parts.normalizers.begin(), parts.normalizers.end(),
      [](const NormalizerStep& step) { return step.kind == NormalizerStep::Kind::kPrecompiled; });
  parts.normalizers =
      map == parts.normalizers.end() ? std::vector<NormalizerStep>() : std::vector<NormalizerStep>{*map};
  parts.pre_tokenizers = {{.kind = PreTokenizerStep::Kind::kWhitespaceSplit},
                          {.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = scheme}};
  parts.decoders = {{.kind = DecoderStep::Kind::kMetaspace, .prepend_scheme = scheme}};
}

void put_template(std::optional<PostProcessorStep> step, TokenizerParts& parts) {
  if (step) parts.post_processors = {std::move(*step)};
}

/// What 4.57 and 5 both do to the file's own steps: the arguments that are given.
void put_options(const ClassOptions& options, TokenizerParts& parts) {
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
    if (step.kind != PostProcessorStep::Kind::kRoberta) continue;
    step.trim_offsets = options.trim_offsets.value_or(step.trim_offsets);
    step.add_prefix_space = options.add_prefix_space.value_or(step.add_prefix_space);
  }
}

/// A pipeline without tokens, in which the same work is always written in the same words.
struct Pipeline {
  std::string normalizer, pre_tokenizer, decoder, post_processor, model;

  explicit Pipeline(const TokenizerParts& parts) {
    TokenizerParts steps;
    steps.pre_tokenizers = parts.pre_tokenizers;
    for (PreTokenizerStep& step : steps.pre_tokenizers) step.trim_offsets = true;
    pre_tokenizer = taken(steps);
    const bool splits = !parts.pre_tokenizers.empty() &&
                        parts.pre_tokenizers.front().kind == PreTokenizerStep::Kind::kWhitespaceSplit;
    for (NormalizerStep step : parts.normalizers) {
      // Words are cut at these spaces anyway.
      if (splits && (step.kind == NormalizerStep::Kind::kStrip ||
                     (step.kind == NormalizerStep::Kind::kReplace &&
                      step.pattern.kind == Pattern::Kind::kSpaceRun)))
        continue;
      if (step.kind == NormalizerStep::Kind::kBert && !step.strip_accents) step.strip_accents = step.lowercase;
      steps.normalizers.push_back(std::move(step));
    }
    normalizer = taken(steps);
    steps.decoders = parts.decoders;
    for (DecoderStep& step : steps.decoders) {
      step.add_prefix_space = step.trim_offsets = step.use_regex = step.split = true;
    }
    decoder = taken(steps);
    steps.post_processors = parts.post_processors;
    for (PostProcessorStep& step : steps.post_processors) step.use_regex = true;
    post_processor = taken(steps);
    steps.model.kind = parts.model.kind;
    steps.model.unknown_token = parts.model.unknown_token;
    steps.model.continuing_subword_prefix = parts.model.continuing_subword_prefix;
    steps.model.end_of_word_suffix = parts.model.end_of_word_suffix;
    steps.model.max_input_chars_per_word = parts.model.max_input_chars_per_word;
    steps.model.byte_fallback = parts.model.byte_fallback;
    steps.model.ignore_merges = parts.model.ignore_merges;
    model = write_tokenizer_json(steps);
  }

 private:
  static std::string taken(TokenizerParts& steps) {
    std::string text = write_tokenizer_json(steps);
    steps = {};
    return text;
  }
};

}  // namespace

ChosenClass choose_tokenizer_class(std::string_view model_type, std::string_view named, bool byte_level) {
  if (named.ends_with("Fast")) named.remove_suffix(4);
  // Of these models transformers does not believe the file.
  if (model_type == "mistral" || model_type == "modernbert") return class_of(kDefault);
  if (model_type == "qwen2") named = "";
  if (named == "LlamaTokenizer" && byte_level) return class_of(kDefault);
  if (!named.empty()) return class_of(named);
  const auto* const found = std::find_if(std::begin(kClassesOfModels), std::end(kClassesOfModels),
                                         [&](const auto& entry) { return entry.first == model_type; });
  return class_of(found == std::end(kClassesOfModels) ? kDefault : found->second);
}

bool fits_class(TokenizerClass kind, const TokenModel& model) {
  using Kind = TokenModel::Kind;
  switch (kind) {
    case TokenizerClass::kBert:
    case TokenizerClass::kMpnet:
      return model.kind == Kind::kWordPiece;
    case TokenizerClass::kRoberta:
    case TokenizerClass::kGpt2:
    case TokenizerClass::kQwen2:
    case TokenizerClass::kLlama:
      return model.kind == Kind::kBpe;
    case TokenizerClass::kXlmRoberta:
    case TokenizerClass::kCamembert:
      return model.kind == Kind::kUnigram;
    case TokenizerClass::kAsWritten:
      break;
  }
  return true;
}

std::vector<std::string> put_class_steps(TokenizerClass kind, const ClassOptions& options,
                                         TokenizerParts& parts) {
  if (kind == TokenizerClass::kAsWritten) return {};
  TokenizerParts asked;
  asked.normalizers = parts.normalizers;
  asked.pre_tokenizers = parts.pre_tokenizers;
  asked.post_processors = parts.post_processors;
  asked.decoders = parts.decoders;
  asked.model.kind = parts.model.kind;
  asked.model.unknown_token = parts.model.unknown_token;
  asked.model.continuing_subword_prefix = parts.model.continuing_subword_prefix;
  asked.model.end_of_word_suffix = parts.model.end_of_word_suffix;
  asked.model.max_input_chars_per_word = parts.model.max_input_chars_per_word;
  asked.model.byte_fallback = parts.model.byte_fallback;
  asked.model.ignore_merges = parts.model.ignore_merges;
  put_options(options, asked);
  const Pipeline before(asked);

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
    case TokenizerClass::kQwen2:
      put_byte_level(options, parts);
      parts.normalizers = {{.kind = NormalizerStep::Kind::kNfc}};
      parts.pre_tokenizers.front().use_regex = false;
      parts.pre_tokenizers.insert(
          parts.pre_tokenizers.begin(),
          {.kind = PreTokenizerStep::Kind::kSplit,
           .pattern = {.kind = Pattern::Kind::kWords, .words = WordRule::kQwen2}});
      break;
    case TokenizerClass::kLlama:
      put_llama(options, parts);
      break;
    case TokenizerClass::kXlmRoberta:
    case TokenizerClass::kCamembert:
      put_unigram(options, parts);
      if (kind == TokenizerClass::kXlmRoberta && parts.model.pieces.size() > kUnknownOfXlmRoberta)
        parts.model.unknown_token = parts.model.pieces[kUnknownOfXlmRoberta].text;
      put_template(around(parts, options.bos.value_or("<s>"), options.eos.value_or("</s>"), true, 0), parts);
      break;
    case TokenizerClass::kAsWritten:
      break;
  }
  const Pipeline after(parts);
  std::vector<std::string> changed;
  const auto compare = [&](const char* name, std::string Pipeline::*step) {
    if (before.*step != after.*step) changed.emplace_back(name);
  };
  compare("normalizer", &Pipeline::normalizer);
  compare("pre_tokenizer", &Pipeline::pre_tokenizer);
  compare("model", &Pipeline::model);
  compare("post_processor", &Pipeline::post_processor);
  compare("decoder", &Pipeline::decoder);
  return changed;
}

}  // namespace mh
