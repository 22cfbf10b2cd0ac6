#include "multihead/folders/gguf_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

enum class Before { kNothing, kDigitsApart, kNfc };

/// What a name stands for. The names, whole_words and begins are those of llama.cpp (llama-vocab.cpp), the rest
/// is as in the tokenizer.json of the models. There is no "default": old converters wrote it, or nothing, for any
/// model, and llama.cpp then cuts text in a way that no model was trained with.
struct WordsByName {
  std::string_view name;
  WordRule words = WordRule::kGpt2;
  Before before = Before::kNothing;
  bool whole_words = false;  // a word that is a token is not put together by merges
  bool begins = false;       // with the begin-of-text token unless the file says otherwise
};
constexpr std::array kNames = {
    WordsByName{"gpt-2"},
    WordsByName{"phi-2"},
    WordsByName{"mpt"},
    WordsByName{"olmo"},
    WordsByName{"smollm", WordRule::kGpt2, Before::kDigitsApart},
    WordsByName{"starcoder", WordRule::kGpt2, Before::kDigitsApart},
    WordsByName{"codeshell", WordRule::kGpt2, Before::kDigitsApart},
    WordsByName{"refact", WordRule::kGpt2, Before::kDigitsApart},
    WordsByName{"llama-bpe", WordRule::kLlama3, Before::kNothing, true, true},
    WordsByName{"llama3", WordRule::kLlama3, Before::kNothing, true, true},
    WordsByName{"llama-v3", WordRule::kLlama3, Before::kNothing, true, true},
    WordsByName{"smaug-bpe", WordRule::kLlama3},
    WordsByName{"dbrx", WordRule::kLlama3},  // OLMo 2, Phi-4
    WordsByName{"qwen2", WordRule::kQwen2, Before::kNfc},
    WordsByName{"deepseek-r1-qwen", WordRule::kQwen2, Before::kNfc},
    WordsByName{"gpt-4o", WordRule::kO200k},
    WordsByName{"tekken", WordRule::kTekken, Before::kNothing, true, true},
};

}  // namespace

bool set_gguf_words(std::string_view name, const std::string& file, TokenizerParts& parts) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const WordsByName& known) { return known.name == name; });
  if (name.empty() || name == "default") {
    throw FormatError(fmt::format(
        "{}: \"tokenizer.ggml.pre\" is {}: it does not say how the model cuts text into words; make the "
        "file again with a converter of today, or use the model's folder",
        file, name.empty() ? "missing" : "'default'"));
  }
  if (found == kNames.end()) {
    std::string names;
    for (const WordsByName& known : kNames) names += (names.empty() ? "" : ", ") + std::string(known.name);
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.pre\": it cuts text into words as {}, which is not supported; "
                    "expected one of {}",
                    file, in_quotes(name), names));
  }
  using Kind = PreTokenizerStep::Kind;
  if (found->before == Before::kNfc) parts.normalizers = {{.kind = NormalizerStep::Kind::kNfc}};
  if (found->before == Before::kDigitsApart)
    parts.pre_tokenizers.push_back({.kind = Kind::kDigits, .individual_digits = true});
  const bool by_itself = found->words == WordRule::kGpt2;  // ByteLevel has that expression
  if (!by_itself) {
    parts.pre_tokenizers.push_back(
        {.kind = Kind::kSplit, .pattern = {.kind = Pattern::Kind::kWords, .words = found->words}});
  }
  parts.pre_tokenizers.push_back(
      {.kind = Kind::kByteLevel, .add_prefix_space = false, .use_regex = by_itself});
  parts.model.ignore_merges = found->whole_words;
  return found->begins;
}

}  // namespace mh
