#include "multihead/models/gguf_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

/// How a text is cut into words, which GGUF gives by the name of a model that cuts it so: by GPT-2's regular
/// expression, and some set each digit apart before that. The names are llama.cpp's (llama-vocab.cpp);
/// "default" is what converters write who found no other name.
struct PreTokenizerName {
  std::string_view name;
  bool digits_apart = false;
};
constexpr std::array kPreTokenizers = {PreTokenizerName{"default"},
                                       PreTokenizerName{"gpt-2"},
                                       PreTokenizerName{"phi-2"},
                                       PreTokenizerName{"mpt"},
                                       PreTokenizerName{"olmo"},
                                       PreTokenizerName{"smollm", true},
                                       PreTokenizerName{"starcoder", true},
                                       PreTokenizerName{"codeshell", true},
                                       PreTokenizerName{"refact", true}};

std::vector<PreTokenizerStep> pre_tokenizers(std::string_view name, const std::string& file) {
  using Kind = PreTokenizerStep::Kind;
  const PreTokenizerStep words{.kind = Kind::kByteLevel, .add_prefix_space = false};
  std::string names;
  for (const PreTokenizerName& known : kPreTokenizers) {
    if (known.name == name && known.digits_apart)
      return {{.kind = Kind::kDigits, .individual_digits = true}, words};
    if (known.name == name) return {words};
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw FormatError(fmt::format(
      "{}: \"tokenizer.ggml.pre\": it cuts text into words as {}, which is not supported; expected one of {}",
      file, in_quotes(name), names));
}

std::pair<std::string, std::string> merge_of(std::string_view merge, const std::string& file) {
  const size_t space = merge.find(' ');
  if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos)
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.merges\": expected two tokens and a space between, got {}", file,
                    in_quotes(merge)));
  return {std::string(merge.substr(0, space)), std::string(merge.substr(space + 1))};
}

/// Special tokens, with their types, before and behind a text.
PostProcessorStep template_of(const GgufFile& file, const std::vector<std::string_view>& tokens) {
  PostProcessorStep step{.kind = PostProcessorStep::Kind::kTemplateProcessing};
  const auto add = [&](const char* asked, const char* which) {
    if (!file.flag(asked).value_or(false)) return;
    const auto id = file.integer(which, 0, static_cast<int64_t>(tokens.size()) - 1);
    if (!id)
      throw FormatError(fmt::format("{}: \"{}\" is true, but \"{}\" is missing", file.name(), asked, which));
    const std::string token(tokens[static_cast<size_t>(*id)]);
    step.single.push_back({.special = token});
    if (step.special_tokens.empty() || step.special_tokens.back().name != token)  // both may be one token
      step.special_tokens.push_back({.name = token, .ids = {static_cast<int32_t>(*id)}, .tokens = {token}});
  };
  add("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id");
  step.single.push_back({.sequence = 'A'});
  add("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id");
  step.pair = step.single;
  step.pair.push_back({.sequence = 'B', .type_id = 1});
  return step;
}

}  // namespace

std::optional<Tokenizer> gguf_tokenizer(const GgufFile& file) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model || *model == "none" || *model == "no_vocab") return std::nullopt;
  if (*model != "gpt2")
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.model\": tokenizers of the kind {} are not read; expected \"gpt2\" "
                    "(byte-level byte-pair encoding)",
                    file.name(), in_quotes(*model)));
  const auto tokens = file.texts("tokenizer.ggml.tokens");
  const auto merges = file.texts("tokenizer.ggml.merges");
  if (!tokens || !merges)
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.{}\" is missing", file.name(), tokens ? "merges" : "tokens"));
  const auto types = file.integers("tokenizer.ggml.token_type");
  if (types && types->size() != tokens->size())
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.token_type\" has {} items, \"tokenizer.ggml.tokens\" {}",
                    file.name(), types->size(), tokens->size()));

  const GgufTensor* embedding = file.tensor("token_embd.weight");
  if (embedding != nullptr && std::cmp_greater(tokens->size(), embedding->shape.front()))
    throw FormatError(fmt::format("{}: \"tokenizer.ggml.tokens\" has {} items, \"token_embd.weight\" {} rows",
                                  file.name(), tokens->size(), embedding->shape.front()));

  TokenizerParts parts;
  for (size_t i = 0; i < tokens->size(); ++i) {
    constexpr int64_t kControl = 3, kUserDefined = 4;  // llama_token_type
    const std::string token((*tokens)[i]);
    const auto id = static_cast<int32_t>(i);
    parts.model.vocabulary.emplace_back(token, id);
    const int64_t type = types ? (*types)[i] : 0;
    if (type == kControl || type == kUserDefined)
      parts.added_tokens.push_back({.id = id, .content = token, .special = type == kControl});
  }
  for (const std::string_view merge : *merges) parts.model.merges.push_back(merge_of(merge, file.name()));
  parts.pre_tokenizers = pre_tokenizers(file.text("tokenizer.ggml.pre").value_or("default"), file.name());
  parts.post_processors = {{.kind = PostProcessorStep::Kind::kByteLevel, .trim_offsets = false}};
  if (PostProcessorStep added = template_of(file, *tokens); !added.special_tokens.empty())
    parts.post_processors.push_back(std::move(added));
  parts.decoders = {{.kind = DecoderStep::Kind::kByteLevel}};
  try {
    return Tokenizer(std::move(parts));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: its tokenizer: {}", file.name(), error.what()));
  }
}

}  // namespace mh
