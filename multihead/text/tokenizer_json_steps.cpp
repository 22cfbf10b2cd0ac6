#include "multihead/text/tokenizer_json_steps.h"

#include <algorithm>
#include <span>

#include "multihead/text/base64.h"
#include "multihead/text/word_rules.h"

namespace mh {
namespace {

/// A type of step: its name in files, and how the rest of it is read.
template <class Step>
struct StepType {
  const char* name;
  typename Step::Kind kind;
  void (*read)(const JsonNode& node, Step& step) = [](const JsonNode&, Step&) {};
};

/// `list` is the member of a Sequence that holds its steps.
template <class Step>
void read_steps_of(const JsonNode& node, const char* list, std::span<const StepType<Step>> types,
                   std::vector<Step>& steps) {
  const std::string& name = node.at("type").text();
  if (name == "Sequence") {
    for (const JsonNode& item : node.at(list).items()) read_steps_of(item, list, types, steps);
    return;
  }
  std::string known;
  for (const StepType<Step>& type : types) {
    if (name == type.name) {
      Step step;
      step.kind = type.kind;
      type.read(node, step);
      steps.push_back(std::move(step));
      return;
    }
    known.append(type.name).append(", ");
  }
  node.at("type").fail(fmt::format("{} is not supported; expected {}or Sequence", in_quotes(name), known));
}

Pattern read_pattern(const JsonNode& node, bool literal_only) {
  Pattern pattern;
  const auto literal = node.find("String");
  const auto expression = node.find("Regex");
  if (literal) {
    pattern.literal = literal->text();
    if (pattern.literal.empty()) literal->fail("expected a text that is not empty");
  } else if (expression && !literal_only && expression->text() == "\\s+") {
    pattern.kind = Pattern::Kind::kWhitespaceRun;
  } else if (expression && !literal_only && expression->text() == " {2,}") {
    pattern.kind = Pattern::Kind::kSpaceRun;
  } else if (expression && !literal_only && expression->text() == "\\s{2,}|[\\n\\r\\t]") {
    pattern.kind = Pattern::Kind::kSpacesBreaks;
  } else if (expression && !literal_only && expression->text() == "\\p{N}") {
    pattern.kind = Pattern::Kind::kNumber;
  } else if (expression && !literal_only && expression->text() == "\\p{N}{1,3}") {
    pattern.kind = Pattern::Kind::kThreeNumbers;
  } else if (const auto words =
                 expression && !literal_only ? word_rule_of(expression->text()) : std::nullopt) {
    pattern.kind = Pattern::Kind::kWords;
    pattern.words = *words;
  } else if (expression) {
    expression->fail(fmt::format("the regular expression {} is not supported; expected {}",
                                 in_quotes(expression->text(), kWholeName),
                                 literal_only ? "a String"
                                              : "a String, \\s+, two spaces and more, \\s{2,}|[\\n\\r\\t], "
                                                "\\p{N}, \\p{N}{1,3}, or the words of GPT-2, "
                                                "Llama 3, Qwen 2, o200k or Tekken"));
  } else {
    node.fail("expected a String or a Regex");
  }
  return pattern;
}

SplitBehavior read_behavior(const JsonNode& node) {
  constexpr std::array kNames = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  return node.choice<SplitBehavior>(kNames);
}

/// Older files say add_prefix_space where newer ones name a scheme.
PrependScheme read_scheme(const JsonNode& node) {
  constexpr std::array kNames = {"always", "first", "never"};
  if (const auto scheme = node.find("prepend_scheme")) return scheme->choice<PrependScheme>(kNames);
  return node.flag("add_prefix_space", true) ? PrependScheme::kAlways : PrependScheme::kNever;
}

// Metaspace, ByteLevel and Replace stand in several lists, with the same members.
template <class Step>
void read_metaspace(const JsonNode& node, Step& step) {
  step.replacement = node.at("replacement").one_character();
  step.prepend_scheme = read_scheme(node);
  step.split = node.flag("split", true);
}
template <class Step>
void read_byte_level(const JsonNode& node, Step& step) {
  step.add_prefix_space = node.flag("add_prefix_space", true);
  step.trim_offsets = node.flag("trim_offsets", true);
  step.use_regex = node.flag("use_regex", true);
}
template <bool literal_only, class Step>
void read_replace(const JsonNode& node, Step& step) {
  step.pattern = read_pattern(node.at("pattern"), literal_only);
  step.content = node.at("content").text();
}

std::vector<TemplatePiece> read_template(const JsonNode& node) {
  std::vector<TemplatePiece> pieces;
  for (const JsonNode& item : node.items()) {
    TemplatePiece piece;
    const auto sequence = item.find("Sequence");
    const JsonNode content = sequence ? *sequence : item.at("SpecialToken");
    if (const auto type_id = content.find("type_id")) piece.type_id = type_id->number();
    const std::string& id = content.at("id").text();
    if (!sequence) {
      piece.special = id;
    } else if (id == "A" || id == "B") {
      piece.sequence = id[0];
    } else {
      content.at("id").fail("expected A or B");
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void read_template_processing(const JsonNode& node, PostProcessorStep& step) {
  step.single = read_template(node.at("single"));
  if (const auto pair = node.find("pair")) step.pair = read_template(*pair);
  const JsonNode specials = node.at("special_tokens");
  if (!specials.value().is_object()) specials.fail("expected an object");
  for (const auto& [name, value] : specials.value().items()) {
    const JsonNode special = specials.at(name.c_str());
    TemplateToken token{.name = name, .ids = {}, .tokens = {}};
    for (const JsonNode& id : special.at("ids").items()) token.ids.push_back(id.number());
    for (const JsonNode& text : special.at("tokens").items()) token.tokens.push_back(text.text());
    if (token.ids.size() != token.tokens.size()) special.fail("expected as many ids as tokens");
    step.special_tokens.push_back(std::move(token));
  }
  int texts = 0;
  for (const TemplatePiece& piece : step.single) {
    if (piece.sequence == 'B') node.at("single").fail("a single text has no sequence B");
    texts += piece.sequence == 'A' ? 1 : 0;
    const auto named = [&](const TemplateToken& token) { return token.name == piece.special; };
    if (piece.sequence == 0 && std::find_if(step.special_tokens.begin(), step.special_tokens.end(), named) ==
                                   step.special_tokens.end()) {
      node.at("single").fail(fmt::format("{} is not among special_tokens", in_quotes(piece.special)));
    }
  }
  if (texts != 1) node.at("single").fail(fmt::format("expected the sequence A once, got it {} times", texts));
}

TemplateToken read_named_id(const JsonNode& node) {
  if (node.size() != 2) node.fail("expected a token and its id");
  const std::string& name = node.item(0).text();
  return {.name = name, .ids = {node.item(1).number()}, .tokens = {name}};
}

/// BertProcessing and RobertaProcessing name two tokens: CLS A SEP, and for a pair CLS A SEP B SEP or
/// CLS A SEP SEP B SEP.
void read_cls_and_sep(const JsonNode& node, bool roberta, PostProcessorStep& step) {
  step.special_tokens = {read_named_id(node.at("cls")), read_named_id(node.at("sep"))};
  const int32_t second = roberta ? 0 : 1;
  const auto special = [&](size_t i, int32_t type_id) {
    return TemplatePiece{.sequence = 0, .special = step.special_tokens[i].name, .type_id = type_id};
  };
  step.single = {special(0, 0), {.sequence = 'A'}, special(1, 0)};
  step.pair = step.single;
  if (roberta) step.pair.push_back(special(1, 0));
  step.pair.push_back({.sequence = 'B', .special = "", .type_id = second});
  step.pair.push_back(special(1, second));
}
void read_bert_processing(const JsonNode& node, PostProcessorStep& step) {
  read_cls_and_sep(node, false, step);
}
void read_roberta_processing(const JsonNode& node, PostProcessorStep& step) {
  read_cls_and_sep(node, true, step);
  step.trim_offsets = node.flag("trim_offsets", true);
  step.add_prefix_space = node.flag("add_prefix_space", true);
}

}  // namespace

void read_steps(const JsonNode& node, std::vector<NormalizerStep>& steps) {
  using Step = NormalizerStep;
  static constexpr StepType<Step> kTypes[] = {
      {"NFC", Step::Kind::kNfc},
      {"NFD", Step::Kind::kNfd},
      {"NFKC", Step::Kind::kNfkc},
      {"NFKD", Step::Kind::kNfkd},
      {"Lowercase", Step::Kind::kLowercase},
      {"Strip", Step::Kind::kStrip,
       [](const JsonNode& strip, Step& step) {
         step.left = strip.flag("strip_left", true);
         step.right = strip.flag("strip_right", true);
       }},
      {"StripAccents", Step::Kind::kStripAccents},
      {"Prepend", Step::Kind::kPrepend,
       [](const JsonNode& prepend, Step& step) { step.content = prepend.at("prepend").text(); }},
      {"Replace", Step::Kind::kReplace, read_replace<false, Step>},
      {"Nmt", Step::Kind::kNmt},
      {"Precompiled", Step::Kind::kPrecompiled,
       [](const JsonNode& precompiled, Step& step) {
         const auto map = precompiled.find("precompiled_charsmap");
         if (!map) return;
         const auto bytes = from_base64(map->text());
         if (!bytes) map->fail("expected base64");
         step.character_map = *bytes;
       }},
      {"BertNormalizer", Step::Kind::kBert,
       [](const JsonNode& bert, Step& step) {
         step.clean_text = bert.flag("clean_text", true);
         step.handle_chinese_chars = bert.flag("handle_chinese_chars", true);
         if (bert.find("strip_accents")) step.strip_accents = bert.flag("strip_accents", true);
         step.lowercase = bert.flag("lowercase", true);
       }},
  };
  read_steps_of<Step>(node, "normalizers", kTypes, steps);
}

void read_steps(const JsonNode& node, std::vector<PreTokenizerStep>& steps) {
  using Step = PreTokenizerStep;
  static constexpr StepType<Step> kTypes[] = {
      {"Whitespace", Step::Kind::kWhitespace},
      {"WhitespaceSplit", Step::Kind::kWhitespaceSplit},
      {"Metaspace", Step::Kind::kMetaspace, read_metaspace<Step>},
      {"ByteLevel", Step::Kind::kByteLevel, read_byte_level<Step>},
      {"BertPreTokenizer", Step::Kind::kBert},
      {"Punctuation", Step::Kind::kPunctuation,
       [](const JsonNode& punctuation, Step& step) {
         if (const auto behavior = punctuation.find("behavior")) step.behavior = read_behavior(*behavior);
       }},
      {"Digits", Step::Kind::kDigits,
       [](const JsonNode& digits, Step& step) {
         step.individual_digits = digits.flag("individual_digits", false);
       }},
      {"Split", Step::Kind::kSplit,
       [](const JsonNode& split, Step& step) {
         step.pattern = read_pattern(split.at("pattern"), false);
         step.behavior = read_behavior(split.at("behavior"));
         step.invert = split.flag("invert", false);
       }},
  };
  read_steps_of<Step>(node, "pretokenizers", kTypes, steps);
}

void read_steps(const JsonNode& node, std::vector<PostProcessorStep>& steps) {
  using Step = PostProcessorStep;
  static constexpr StepType<Step> kTypes[] = {
      {"TemplateProcessing", Step::Kind::kTemplateProcessing, read_template_processing},
      {"ByteLevel", Step::Kind::kByteLevel, read_byte_level<Step>},
      {"BertProcessing", Step::Kind::kTemplateProcessing, read_bert_processing},
      {"RobertaProcessing", Step::Kind::kRoberta, read_roberta_processing},
  };
  read_steps_of<Step>(node, "processors", kTypes, steps);
}

void read_steps(const JsonNode& node, std::vector<DecoderStep>& steps) {
  using Step = DecoderStep;
  static constexpr StepType<Step> kTypes[] = {
      {"Metaspace", Step::Kind::kMetaspace, read_metaspace<Step>},
      {"ByteLevel", Step::Kind::kByteLevel, read_byte_level<Step>},
      {"BPEDecoder", Step::Kind::kBpe,
       [](const JsonNode& bpe, Step& step) {
         step.affix = bpe.text("suffix", "</w>");
         if (step.affix.empty()) bpe.at("suffix").fail("expected a text that is not empty");
       }},
      {"WordPiece", Step::Kind::kWordPiece,
       [](const JsonNode& word_piece, Step& step) {
         step.affix = word_piece.text("prefix", "##");
         step.cleanup = word_piece.flag("cleanup", true);
       }},
      {"Fuse", Step::Kind::kFuse},
      {"ByteFallback", Step::Kind::kByteFallback},
      {"Strip", Step::Kind::kStrip,
       [](const JsonNode& strip, Step& step) {
         step.content = strip.at("content").one_character();
         step.start = strip.at("start").number();
         step.stop = strip.at("stop").number();
       }},
      {"Replace", Step::Kind::kReplace, read_replace<true, Step>},
  };
  read_steps_of<Step>(node, "decoders", kTypes, steps);
}

}  // namespace mh
