#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/text/base64.h"
#include "multihead/text/tokenizer_json.h"
#include "multihead/text/tokenizer_json_model.h"
#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/word_rules.h"

namespace mh {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail_as_sentence_piece() {
  throw UsageError(
      "a tokenizer of a SentencePiece model cannot be written as tokenizer.json; copy the model's file");
}

/// null, the one step, or all of them as a sequence.
Json sequence(const char* key, std::vector<Json> steps) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps[0]);
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

Json json_of(const Pattern& pattern) {
  switch (pattern.kind) {
    case Pattern::Kind::kWhitespaceRun:
      return {{"Regex", "\\s+"}};
    case Pattern::Kind::kSpaceRun:
      return {{"Regex", " {2,}"}};
    case Pattern::Kind::kSpacesBreaks:
      return {{"Regex", "\\s{2,}|[\\n\\r\\t]"}};
    case Pattern::Kind::kNumber:
      return {{"Regex", "\\p{N}"}};
    case Pattern::Kind::kThreeNumbers:
      return {{"Regex", "\\p{N}{1,3}"}};
    case Pattern::Kind::kWords:
      return {{"Regex", expression_of(pattern.words)}};
    case Pattern::Kind::kLiteral:
      break;
  }
  return {{"String", pattern.literal}};
}

const char* name_of(PrependScheme scheme) {
  constexpr std::array kNames = {"always", "first", "never"};
  return kNames[static_cast<size_t>(scheme)];
}
const char* name_of(SplitBehavior behavior) {
  constexpr std::array kNames = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  return kNames[static_cast<size_t>(behavior)];
}

/// Metaspace and ByteLevel carry the same members wherever they stand.
template <class Step>
Json metaspace(const Step& step) {
  return {{"type", "Metaspace"},
          {"replacement", step.replacement},
          {"prepend_scheme", name_of(step.prepend_scheme)},
          {"split", step.split}};
}
template <class Step>
Json byte_level(const Step& step) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", step.add_prefix_space},
          {"trim_offsets", step.trim_offsets},
          {"use_regex", step.use_regex}};
}

Json json_of(const NormalizerStep& step) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::kNfc:
      return {{"type", "NFC"}};
    case Kind::kNfkc:
      return {{"type", "NFKC"}};
    case Kind::kNfd:
      return {{"type", "NFD"}};
    case Kind::kNfkd:
      return {{"type", "NFKD"}};
    case Kind::kLowercase:
      return {{"type", "Lowercase"}};
    case Kind::kStripAccents:
      return {{"type", "StripAccents"}};
    case Kind::kStrip:
      return {{"type", "Strip"}, {"strip_left", step.left}, {"strip_right", step.right}};
    case Kind::kPrepend:
      return {{"type", "Prepend"}, {"prepend", step.content}};
    case Kind::kNmt:
      return {{"type", "Nmt"}};
    case Kind::kPrecompiled:
      return {{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(step.character_map)}};
    case Kind::kSentencePiece:
      fail_as_sentence_piece();
    case Kind::kBert:
      return {{"type", "BertNormalizer"},
              {"clean_text", step.clean_text},
              {"handle_chinese_chars", step.handle_chinese_chars},
              {"strip_accents", step.strip_accents ? Json(*step.strip_accents) : Json()},
              {"lowercase", step.lowercase}};
    case Kind::kReplace:
      break;
  }
  return {{"type", "Replace"}, {"pattern", json_of(step.pattern)}, {"content", step.content}};
}

Json json_of(const PreTokenizerStep& step) {
  using Kind = PreTokenizerStep::Kind;
  switch (step.kind) {
    case Kind::kWhitespace:
      return {{"type", "Whitespace"}};
    case Kind::kWhitespaceSplit:
      return {{"type", "WhitespaceSplit"}};
    case Kind::kBert:
      return {{"type", "BertPreTokenizer"}};
    case Kind::kMetaspace:
      return metaspace(step);
    case Kind::kByteLevel:
      return byte_level(step);
    case Kind::kPunctuation:
      return {{"type", "Punctuation"}, {"behavior", name_of(step.behavior)}};
    case Kind::kDigits:
      return {{"type", "Digits"}, {"individual_digits", step.individual_digits}};
    case Kind::kSplit:
      break;
  }
  return {{"type", "Split"},
          {"pattern", json_of(step.pattern)},
          {"behavior", name_of(step.behavior)},
          {"invert", step.invert}};
}

Json json_of(const std::vector<TemplatePiece>& pieces) {
  Json list = Json::array();
  for (const TemplatePiece& piece : pieces) {
    const std::string id = piece.sequence == 0 ? piece.special : std::string(1, piece.sequence);
    Json entry = Json::object();
    entry[piece.sequence == 0 ? "SpecialToken" : "Sequence"] = Json{{"id", id}, {"type_id", piece.type_id}};
    list.push_back(std::move(entry));
  }
  return list;
}

Json json_of(const PostProcessorStep& step) {
  if (step.kind == PostProcessorStep::Kind::kByteLevel) return byte_level(step);
  if (step.kind == PostProcessorStep::Kind::kRoberta) {
    const auto named_id = [&](size_t place) {
      const auto token = std::find_if(step.special_tokens.begin(), step.special_tokens.end(),
                                      [&](const auto& t) { return t.name == step.single[place].special; });
      return Json::array({token->name, token->ids[0]});
    };
    return {{"type", "RobertaProcessing"},
            {"sep", named_id(2)},
            {"cls", named_id(0)},
            {"trim_offsets", step.trim_offsets},
            {"add_prefix_space", step.add_prefix_space}};
  }
  nlohmann::json specials = nlohmann::json::object();  // by name, as they are read
  for (const TemplateToken& token : step.special_tokens) {
    specials[token.name] = {{"id", token.name}, {"ids", token.ids}, {"tokens", token.tokens}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", json_of(step.single)},
          {"pair", json_of(step.pair)},
          {"special_tokens", std::move(specials)}};
}

Json json_of(const DecoderStep& step) {
  using Kind = DecoderStep::Kind;
  switch (step.kind) {
    case Kind::kMetaspace:
      return metaspace(step);
    case Kind::kByteLevel:
      return byte_level(step);
    case Kind::kBpe:
      return {{"type", "BPEDecoder"}, {"suffix", step.affix}};
    case Kind::kWordPiece:
      return {{"type", "WordPiece"}, {"prefix", step.affix}, {"cleanup", step.cleanup}};
    case Kind::kSentencePiece:
      fail_as_sentence_piece();
    case Kind::kFuse:
      return {{"type", "Fuse"}};
    case Kind::kByteFallback:
      return {{"type", "ByteFallback"}};
    case Kind::kStrip:
      return {{"type", "Strip"}, {"content", step.content}, {"start", step.start}, {"stop", step.stop}};
    case Kind::kReplace:
      break;
  }
  return {{"type", "Replace"}, {"pattern", json_of(step.pattern)}, {"content", step.content}};
}

Json json_of(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

Json json_of(const std::optional<Truncation>& truncation) {
  if (!truncation) return nullptr;
  return {{"direction", truncation->keeps_the_end ? "Left" : "Right"},
          {"max_length", truncation->max_length},
          {"strategy", "LongestFirst"},
          {"stride", 0}};
}

template <class Step>
std::vector<Json> list_of(const std::vector<Step>& steps) {
  std::vector<Json> list;
  for (const Step& step : steps) list.push_back(json_of(step));
  return list;
}

}  // namespace

std::string write_tokenizer_json(const TokenizerParts& parts) {
  const Json head = {{"version", "1.0"},
                     {"truncation", json_of(parts.truncation)},
                     {"padding", nullptr},
                     {"added_tokens", list_of(parts.added_tokens)},
                     {"normalizer", sequence("normalizers", list_of(parts.normalizers))},
                     {"pre_tokenizer", sequence("pretokenizers", list_of(parts.pre_tokenizers))},
                     {"post_processor", sequence("processors", list_of(parts.post_processors))},
                     {"decoder", sequence("decoders", list_of(parts.decoders))}};
  std::string out = head.dump(2);
  out.resize(out.size() - 2);  // reopens the object
  out += ",\n  \"model\": ";
  append_model_json(out, parts.model);
  return out + "\n}\n";
}

}  // namespace mh
