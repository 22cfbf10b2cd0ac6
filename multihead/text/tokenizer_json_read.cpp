#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "multihead/base/error.h"
#include "multihead/text/shown.h"
#include "multihead/text/tokenizer_json.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 24;  // a tokenizer.json nests some 8 deep

[[noreturn]] void fail(std::string_view file, std::string_view where, std::string_view what) {
  throw FormatError(fmt::format("{}: {}{}{}", file, where, where.empty() ? "" : ": ", what));
}

/// Parses, refusing repeated keys (nlohmann would keep the last) and deep nesting.
Json parse(std::string_view text, std::string_view file) {
  std::vector<std::unordered_set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest)
      fail(file, "", fmt::format("nested more than {} deep; not a tokenizer.json", kDeepest));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        fail(file, "", fmt::format("the key {} is there twice", shown(key)));
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    const auto* parse_error = dynamic_cast<const Json::parse_error*>(&error);
    if (parse_error == nullptr) fail(file, "", "not JSON; is it a tokenizer.json?");
    fail(file, "",
         parse_error->byte > text.size() ? "cut short: the JSON ends in the middle"
                                         : fmt::format("not JSON from byte {} on", parse_error->byte));
  }
}

/// A value of the file that knows where it stands, so that errors can say so.
class Node {
 public:
  Node(const Json& value, std::string path, std::string_view file)
      : value_(&value), path_(std::move(path)), file_(file) {}

  [[noreturn]] void fail(std::string_view what) const { mh::fail(file_, path_, what); }
  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  /// The member, unless it is missing or null.
  std::optional<Node> find(const char* key) const {
    if (!value_->is_object()) fail("expected an object");
    const auto found = value_->find(key);
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return Node(*found, path_.empty() ? key : path_ + "." + key, file_);
  }
  Node at(const char* key) const {
    if (auto node = find(key)) return *node;
    fail(fmt::format("expected a member \"{}\"", key));
  }
  size_t size() const {
    if (!value_->is_array()) fail("expected an array");
    return value_->size();
  }
  Node item(size_t i) const { return Node((*value_)[i], fmt::format("{}[{}]", path_, i), file_); }
  std::vector<Node> items() const {
    std::vector<Node> nodes;
    for (size_t i = 0; i < size(); ++i) nodes.push_back(item(i));
    return nodes;
  }

  const std::string& text() const {
    if (!value_->is_string()) fail("expected a string");
    return value_->get_ref<const std::string&>();
  }
  std::string text(const char* key, const char* otherwise) const {
    const auto node = find(key);
    return node ? node->text() : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const auto node = find(key);
    if (!node) return otherwise;
    if (!node->value_->is_boolean()) node->fail("expected true or false");
    return node->value_->get<bool>();
  }
  int32_t number() const {
    constexpr int32_t kMost = INT32_MAX;
    const bool fits = value_->is_number_unsigned()
                          ? value_->get<uint64_t>() <= kMost
                          : value_->is_number_integer() && value_->get<int64_t>() >= 0;
    if (!fits) fail(fmt::format("expected a whole number from 0 to {}", kMost));
    return value_->get<int32_t>();
  }
  std::string one_character() const {
    const std::string& c = text();
    if (c.empty() || utf8_length(c[0]) != c.size())
      fail(fmt::format("expected one character, found {}", shown(c)));
    return c;
  }
  /// One of the names; their order is that of the enumeration.
  template <class Enum, size_t N>
  Enum choice(const std::array<const char*, N>& names) const {
    for (size_t i = 0; i < N; ++i) {
      if (text() == names[i]) return static_cast<Enum>(i);
    }
    fail(fmt::format("expected one of {}, found {}", fmt::join(names, ", "), shown(text())));
  }
  [[noreturn]] void not_supported(std::string_view supported) const {
    at("type").fail(fmt::format("{} is not supported; expected {}", shown(at("type").text()), supported));
  }

 private:
  const Json* value_;
  std::string path_;
  std::string_view file_;
};

Pattern read_pattern(const Node& node, bool literal_only) {
  Pattern pattern;
  const auto literal = node.find("String");
  const auto expression = node.find("Regex");
  if (literal) {
    pattern.literal = literal->text();
    if (pattern.literal.empty()) literal->fail("expected a text that is not empty");
  } else if (expression && !literal_only && expression->text() == "\\s+") {
    pattern.kind = Pattern::Kind::whitespace_run;
  } else if (expression && !literal_only && expression->text() == " {2,}") {
    pattern.kind = Pattern::Kind::space_run;
  } else if (expression) {
    expression->fail(fmt::format("the regular expression {} is not supported; expected {}",
                                 shown(expression->text()),
                                 literal_only ? "a String" : "a String, \\s+ or two spaces and more"));
  } else {
    node.fail("expected a String or a Regex");
  }
  return pattern;
}

void read_normalizer(const Node& node, std::vector<NormalizerStep>& steps) {
  using Kind = NormalizerStep::Kind;
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    for (const Node& item : node.at("normalizers").items()) read_normalizer(item, steps);
    return;
  }
  NormalizerStep step;
  if (type == "NFC") {
    step.kind = Kind::nfc;
  } else if (type == "NFKC") {
    step.kind = Kind::nfkc;
  } else if (type == "NFD") {
    step.kind = Kind::nfd;
  } else if (type == "NFKD") {
    step.kind = Kind::nfkd;
  } else if (type == "Lowercase") {
    step.kind = Kind::lowercase;
  } else if (type == "StripAccents") {
    step.kind = Kind::strip_accents;
  } else if (type == "Strip") {
    step.kind = Kind::strip;
    step.left = node.flag("strip_left", true);
    step.right = node.flag("strip_right", true);
  } else if (type == "Prepend") {
    step.kind = Kind::prepend;
    step.content = node.at("prepend").text();
  } else if (type == "Replace") {
    step.kind = Kind::replace;
    step.pattern = read_pattern(node.at("pattern"), false);
    step.content = node.at("content").text();
  } else {
    node.not_supported("NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace or Sequence");
  }
  steps.push_back(std::move(step));
}

SplitBehavior read_behavior(const Node& node) {
  constexpr std::array kNames = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  return node.choice<SplitBehavior>(kNames);
}

/// Older files say add_prefix_space where newer ones name a scheme.
PrependScheme read_scheme(const Node& node) {
  constexpr std::array kNames = {"always", "first", "never"};
  if (const auto scheme = node.find("prepend_scheme")) return scheme->choice<PrependScheme>(kNames);
  return node.flag("add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
}

void read_pre_tokenizer(const Node& node, std::vector<PreTokenizerStep>& steps) {
  using Kind = PreTokenizerStep::Kind;
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    for (const Node& item : node.at("pretokenizers").items()) read_pre_tokenizer(item, steps);
    return;
  }
  PreTokenizerStep step;
  if (type == "Whitespace") {
    step.kind = Kind::whitespace;
  } else if (type == "WhitespaceSplit") {
    step.kind = Kind::whitespace_split;
  } else if (type == "Metaspace") {
    step.kind = Kind::metaspace;
    step.replacement = node.at("replacement").one_character();
    step.prepend_scheme = read_scheme(node);
    step.split = node.flag("split", true);
  } else if (type == "ByteLevel") {
    step.kind = Kind::byte_level;
    step.add_prefix_space = node.flag("add_prefix_space", true);
    step.trim_offsets = node.flag("trim_offsets", true);
    step.use_regex = node.flag("use_regex", true);
  } else if (type == "Punctuation") {
    step.kind = Kind::punctuation;
    if (const auto behavior = node.find("behavior")) step.behavior = read_behavior(*behavior);
  } else if (type == "Digits") {
    step.kind = Kind::digits;
    step.individual_digits = node.flag("individual_digits", false);
  } else if (type == "Split") {
    step.kind = Kind::split;
    step.pattern = read_pattern(node.at("pattern"), false);
    step.behavior = read_behavior(node.at("behavior"));
    step.invert = node.flag("invert", false);
  } else {
    node.not_supported(
        "Whitespace, WhitespaceSplit, Metaspace, ByteLevel, Punctuation, Digits, Split or Sequence");
  }
  steps.push_back(std::move(step));
}

std::vector<TemplatePiece> read_template(const Node& node) {
  std::vector<TemplatePiece> pieces;
  for (const Node& item : node.items()) {
    TemplatePiece piece;
    const auto sequence = item.find("Sequence");
    const Node content = sequence ? *sequence : item.at("SpecialToken");
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

PostProcessorStep read_template_processing(const Node& node) {
  PostProcessorStep step;
  step.single = read_template(node.at("single"));
  if (const auto pair = node.find("pair")) step.pair = read_template(*pair);
  const Node specials = node.at("special_tokens");
  if (!specials.value().is_object()) specials.fail("expected an object");
  for (const auto& [name, value] : specials.value().items()) {
    const Node special = specials.at(name.c_str());
    TemplateToken token{.name = name, .ids = {}, .tokens = {}};
    for (const Node& id : special.at("ids").items()) token.ids.push_back(id.number());
    for (const Node& text : special.at("tokens").items()) token.tokens.push_back(text.text());
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
      node.at("single").fail(fmt::format("{} is not among special_tokens", shown(piece.special)));
    }
  }
  if (texts != 1)
    node.at("single").fail(fmt::format("expected the sequence A once, found it {} times", texts));
  return step;
}

void read_post_processor(const Node& node, std::vector<PostProcessorStep>& steps) {
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    for (const Node& item : node.at("processors").items()) read_post_processor(item, steps);
  } else if (type == "TemplateProcessing") {
    steps.push_back(read_template_processing(node));
  } else if (type == "ByteLevel") {
    PostProcessorStep step;
    step.kind = PostProcessorStep::Kind::byte_level;
    step.add_prefix_space = node.flag("add_prefix_space", true);
    step.trim_offsets = node.flag("trim_offsets", true);
    step.use_regex = node.flag("use_regex", true);
    steps.push_back(std::move(step));
  } else {
    node.not_supported("TemplateProcessing, ByteLevel or Sequence");
  }
}

void read_decoder(const Node& node, std::vector<DecoderStep>& steps) {
  using Kind = DecoderStep::Kind;
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    for (const Node& item : node.at("decoders").items()) read_decoder(item, steps);
    return;
  }
  DecoderStep step;
  if (type == "Metaspace") {
    step.kind = Kind::metaspace;
    step.replacement = node.at("replacement").one_character();
    step.prepend_scheme = read_scheme(node);
    step.split = node.flag("split", true);
  } else if (type == "ByteLevel") {
    step.kind = Kind::byte_level;
    step.add_prefix_space = node.flag("add_prefix_space", true);
    step.trim_offsets = node.flag("trim_offsets", true);
    step.use_regex = node.flag("use_regex", true);
  } else if (type == "BPEDecoder") {
    step.kind = Kind::bpe;
    step.affix = node.text("suffix", "</w>");
    if (step.affix.empty()) node.at("suffix").fail("expected a text that is not empty");
  } else if (type == "WordPiece") {
    step.kind = Kind::word_piece;
    step.affix = node.text("prefix", "##");
    step.cleanup = node.flag("cleanup", true);
  } else if (type == "Fuse") {
    step.kind = Kind::fuse;
  } else if (type == "ByteFallback") {
    step.kind = Kind::byte_fallback;
  } else if (type == "Strip") {
    step.kind = Kind::strip;
    step.content = node.at("content").one_character();
    step.start = node.at("start").number();
    step.stop = node.at("stop").number();
  } else if (type == "Replace") {
    step.kind = Kind::replace;
    step.pattern = read_pattern(node.at("pattern"), true);
    step.content = node.at("content").text();
  } else {
    node.not_supported(
        "Metaspace, ByteLevel, BPEDecoder, WordPiece, Fuse, ByteFallback, Strip, Replace or Sequence");
  }
  steps.push_back(std::move(step));
}

std::pair<std::string, std::string> read_merge(const Node& node) {
  if (node.value().is_array()) {
    if (node.size() != 2) node.fail("expected two tokens");
    return {node.item(0).text(), node.item(1).text()};
  }
  const std::string& merge = node.text();
  const size_t space = merge.find(' ');
  if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
    node.fail(fmt::format("expected two tokens and a space between, found {}", shown(merge)));
  }
  return {merge.substr(0, space), merge.substr(space + 1)};
}

TokenModel read_model(const Node& node) {
  TokenModel model;
  const auto type = node.find("type");
  const std::string name = type                  ? type->text()
                           : node.find("merges") ? "BPE"
                                                 : "WordLevel";  // old files name none
  if (name != "BPE" && name != "WordLevel") node.not_supported("BPE or WordLevel");
  model.kind = name == "BPE" ? TokenModel::Kind::bpe : TokenModel::Kind::word_level;

  const Node vocabulary = node.at("vocab");
  if (!vocabulary.value().is_object()) vocabulary.fail("expected an object of tokens and their ids");
  for (const auto& [token, id] : vocabulary.value().items()) {
    const bool number = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!number) vocabulary.fail(fmt::format("the id of {} is not a whole number from 0 on", shown(token)));
    model.vocabulary.emplace_back(token, id.get<int32_t>());
  }
  std::sort(model.vocabulary.begin(), model.vocabulary.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  if (const auto unknown = node.find("unk_token")) model.unknown_token = unknown->text();
  if (model.kind == TokenModel::Kind::word_level) return model;

  if (const auto dropout = node.find("dropout")) {
    if (!dropout->value().is_number() || dropout->value().get<double>() != 0) {
      dropout->fail("merges left out at random are not supported; set it to null");
    }
  }
  const Node merges = node.at("merges");
  for (size_t i = 0; i < merges.size(); ++i) model.merges.push_back(read_merge(merges.item(i)));
  model.continuing_subword_prefix = node.text("continuing_subword_prefix", "");
  model.end_of_word_suffix = node.text("end_of_word_suffix", "");
  model.fuse_unknown = node.flag("fuse_unk", false);
  model.byte_fallback = node.flag("byte_fallback", false);
  model.ignore_merges = node.flag("ignore_merges", false);
  return model;
}

AddedToken read_added_token(const Node& node) {
  AddedToken token;
  token.id = node.at("id").number();
  token.content = node.at("content").text();
  token.single_word = node.flag("single_word", false);
  token.lstrip = node.flag("lstrip", false);
  token.rstrip = node.flag("rstrip", false);
  token.special = node.flag("special", false);
  token.normalized = node.flag("normalized", !token.special);
  return token;
}

}  // namespace

TokenizerParts read_tokenizer_json(std::string_view json, std::string_view file) {
  const Json document = parse(json, file);
  const Node root(document, "", file);
  TokenizerParts parts;
  parts.model = read_model(root.at("model"));
  if (const auto node = root.find("added_tokens")) {
    for (const Node& token : node->items()) parts.added_tokens.push_back(read_added_token(token));
  }
  if (const auto node = root.find("normalizer")) read_normalizer(*node, parts.normalizers);
  if (const auto node = root.find("pre_tokenizer")) read_pre_tokenizer(*node, parts.pre_tokenizers);
  if (const auto node = root.find("post_processor")) read_post_processor(*node, parts.post_processors);
  if (const auto node = root.find("decoder")) {
    read_decoder(*node, parts.decoders);
    if (parts.decoders.empty()) parts.decoders.emplace_back();  // an empty sequence joins without spaces
  }
  return parts;
}

}  // namespace mh
