// What the files of a model folder are called (model_folder.h).
#pragma once

namespace mh {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kWeightsIndexFile = "model.safetensors.index.json";
inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr const char* kPiecesFile = "tokenizer.model";   // a SentencePiece model
inline constexpr const char* kDebertaPiecesFile = "spm.model";  // another
inline constexpr const char* kTargetTokenizerFile = "target_tokenizer.json";
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kSpecialTokensFile = "special_tokens_map.json";  // of older folders
inline constexpr const char* kAddedTokensFile = "added_tokens.json";          // of older folders
inline constexpr const char* kChatTemplateFile = "chat_template.jinja";
inline constexpr const char* kGenerationConfigFile = "generation_config.json";
inline constexpr const char* kAdapterConfigFile = "adapter_config.json";  // of peft, beside the weights
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

}  // namespace mh
