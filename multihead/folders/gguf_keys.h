// What GGUF's metadata may say of a model that is read here: which keys are obeyed, which change nothing, and which are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/io/gguf.h"

namespace mh {

/// A line for the keys that are not known here and were not used, and one for each special token that is none. Keys that
/// llama.cpp does not look for (of other programs' own) are passed over. Throws FormatError on those that are refused.
std::vector<std::string> gguf_remarks(const GgufFile& file);

enum class GgufSpecial { kBegin, kEnd, kEndOfTurn, kEndOfMessage, kUnknown, kPad };

/// The key of its id: "tokenizer.ggml.bos_token_id".
const char* gguf_key(GgufSpecial token);

/// The id of a special token; empty where the file says none. Of an id that is no token of the file, such as -1, llama.cpp takes
/// its default: with SentencePiece 1 for the begin, 2 for the end and 0 for the unknown one, otherwise none. So does this.
/// Throws FormatError when it is no integer.
std::optional<int32_t> gguf_special_token(const GgufFile& file, GgufSpecial token);

}  // namespace mh
