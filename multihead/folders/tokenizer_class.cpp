#include "multihead/folders/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <utility>
namespace mh {
namespace {

struct ClassName {
  std::string_view name;
  TokenizerClass kind = TokenizerClass::kAsWritten;
  bool gives_types = false;
  CodePlace codes = CodePlace::kNone;
};
// Without "Fast", which changes nothing in transformers 5.
constexpr std::array kClassNames = {
    ClassName{"BertTokenizer", TokenizerClass::kBert, true},
    ClassName{"DistilBertTokenizer", TokenizerClass::kBert},
    ClassName{"ElectraTokenizer", TokenizerClass::kBert, true},
    ClassName{"MPNetTokenizer", TokenizerClass::kMpnet},
    ClassName{"RobertaTokenizer", TokenizerClass::kRoberta},
    ClassName{"BartTokenizer", TokenizerClass::kRoberta},
    ClassName{"GPT2Tokenizer", TokenizerClass::kGpt2},
    ClassName{"CodeGenTokenizer", TokenizerClass::kGpt2},  // other offsets alone
    ClassName{"GPTNeoXTokenizer", TokenizerClass::kGptNeox},
    ClassName{"GemmaTokenizer", TokenizerClass::kGemma},
    ClassName{"Qwen2Tokenizer", TokenizerClass::kQwen2},
    ClassName{"LlamaTokenizer", TokenizerClass::kLlama},
    ClassName{"XLMRobertaTokenizer", TokenizerClass::kXlmRoberta},
    ClassName{"CamembertTokenizer", TokenizerClass::kCamembert},
    ClassName{"T5Tokenizer", TokenizerClass::kT5},
    ClassName{"DebertaV2Tokenizer", TokenizerClass::kDeberta, true},
    ClassName{"MBartTokenizer", TokenizerClass::kMbart, false, CodePlace::kBehind},
    ClassName{"MBart50Tokenizer", TokenizerClass::kMbart50, false, CodePlace::kBefore},
    ClassName{"NllbTokenizer", TokenizerClass::kNllb, false, CodePlace::kBefore},
    ClassName{"M2M100Tokenizer", TokenizerClass::kAsWritten, false, CodePlace::kBefore},
    ClassName{"PreTrainedTokenizer"},
    ClassName{"TokenizersBackend"},
    ClassName{"PythonBackend"},
    ClassName{"MarianTokenizer"},  // it opens OPUS's layout alone
};
// What AutoTokenizer takes for a model whose files name no class.
constexpr std::pair<std::string_view, std::string_view> kClassesOfModels[] = {
    {"bert", "BertTokenizer"},
    {"distilbert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"mpnet", "MPNetTokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"bart", "RobertaTokenizer"},
    {"mbart", "MBartTokenizer"},
    {"m2m_100", "M2M100Tokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"deberta-v2", "DebertaV2Tokenizer"},
    {"t5", "T5Tokenizer"},
    {"mt5", "T5Tokenizer"},
    {"umt5", "T5Tokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_neo", "GPT2Tokenizer"},
    {"opt", "GPT2Tokenizer"},
    {"phi", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
};
constexpr std::string_view kDefault = "TokenizersBackend";

ChosenClass class_of(std::string_view name) {
  const auto* const found = std::find_if(kClassNames.begin(), kClassNames.end(),
                                         [&](const ClassName& known) { return known.name == name; });
  if (found == kClassNames.end()) return {.name = std::string(name), .known = false};
  return {.kind = found->kind,
          .name = std::string(name),
          .gives_types = found->gives_types,
          .codes = found->codes};
}

}  // namespace

ChosenClass choose_tokenizer_class(std::string_view model_type, std::string_view named, bool byte_level) {
  if (named.ends_with("Fast")) named.remove_suffix(4);
  // Of these models transformers does not believe the file.
  if (model_type == "mistral" || model_type == "modernbert" || model_type == "phi3")
    return class_of(kDefault);
  if (model_type == "qwen2") named = "";
  if (named == "LlamaTokenizer" && byte_level) return class_of(kDefault);
  if (!named.empty()) return class_of(named);
  const auto* const found = std::find_if(std::begin(kClassesOfModels), std::end(kClassesOfModels),
                                         [&](const auto& entry) { return entry.first == model_type; });
  return class_of(found == std::end(kClassesOfModels) ? kDefault : found->second);
}

std::string_view default_token(TokenizerClass kind, std::string_view key) {
  using Defaults = std::array<std::pair<std::string_view, std::string_view>, 7>;
  constexpr Defaults kBertTokens = {{{"unk_token", "[UNK]"},
                                     {"sep_token", "[SEP]"},
                                     {"pad_token", "[PAD]"},
                                     {"cls_token", "[CLS]"},
                                     {"mask_token", "[MASK]"}}};
  constexpr Defaults kRobertaTokens = {{{"bos_token", "<s>"},
                                        {"eos_token", "</s>"},
                                        {"unk_token", "<unk>"},
                                        {"sep_token", "</s>"},
                                        {"pad_token", "<pad>"},
                                        {"cls_token", "<s>"},
                                        {"mask_token", "<mask>"}}};
  constexpr std::string_view kEnd = "<|endoftext|>";
  constexpr Defaults kGpt2Tokens = {{{"bos_token", kEnd}, {"eos_token", kEnd}, {"unk_token", kEnd}}};
  constexpr Defaults kGptNeoxTokens = {
      {{"bos_token", kEnd}, {"eos_token", kEnd}, {"unk_token", kEnd}, {"pad_token", "<|padding|>"}}};
  constexpr Defaults kGemmaTokens = {{{"bos_token", "<bos>"},
                                      {"eos_token", "<eos>"},
                                      {"unk_token", "<unk>"},
                                      {"pad_token", "<pad>"},
                                      {"mask_token", "<mask>"}}};
  constexpr Defaults kQwen2Tokens = {{{"eos_token", kEnd}, {"unk_token", kEnd}, {"pad_token", kEnd}}};
  constexpr Defaults kLlamaTokens = {{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}};
  constexpr Defaults kT5Tokens = {{{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}}};
  const auto find = [&](const Defaults& defaults) {
    for (const auto& [name, token] : defaults) {
      if (name == key) return token;
    }
    return std::string_view();
  };
  switch (kind) {
    case TokenizerClass::kBert:
      return find(kBertTokens);
    case TokenizerClass::kDeberta:
      return key == "bos_token" ? "[CLS]" : key == "eos_token" ? "[SEP]" : find(kBertTokens);
    case TokenizerClass::kMpnet:
      return key == "unk_token" ? "[UNK]" : find(kRobertaTokens);
    case TokenizerClass::kRoberta:
    case TokenizerClass::kXlmRoberta:
    case TokenizerClass::kCamembert:
    case TokenizerClass::kMbart:
    case TokenizerClass::kNllb:
      return find(kRobertaTokens);
    case TokenizerClass::kMbart50:
      return key == "bos_token" ? std::string_view() : find(kRobertaTokens);
    case TokenizerClass::kGpt2:
      return find(kGpt2Tokens);
    case TokenizerClass::kGptNeox:
      return find(kGptNeoxTokens);
    case TokenizerClass::kGemma:
      return find(kGemmaTokens);
    case TokenizerClass::kQwen2:
      return find(kQwen2Tokens);
    case TokenizerClass::kLlama:
      return find(kLlamaTokens);
    case TokenizerClass::kT5:
      return find(kT5Tokens);
    case TokenizerClass::kAsWritten:
      break;
  }
  return {};
}

bool fits_class(TokenizerClass kind, const TokenModel& model) {
  using Kind = TokenModel::Kind;
  switch (kind) {
    case TokenizerClass::kBert:
    case TokenizerClass::kMpnet:
      return model.kind == Kind::kWordPiece;
    case TokenizerClass::kRoberta:
    case TokenizerClass::kGpt2:
    case TokenizerClass::kGptNeox:
    case TokenizerClass::kGemma:
    case TokenizerClass::kQwen2:
    case TokenizerClass::kLlama:
    case TokenizerClass::kNllb:
      return model.kind == Kind::kBpe;
    case TokenizerClass::kXlmRoberta:
    case TokenizerClass::kCamembert:
    case TokenizerClass::kT5:
    case TokenizerClass::kDeberta:
    case TokenizerClass::kMbart:
    case TokenizerClass::kMbart50:
      return model.kind == Kind::kUnigram;
    case TokenizerClass::kAsWritten:
      break;
  }
  return true;
}

}  // namespace mh
