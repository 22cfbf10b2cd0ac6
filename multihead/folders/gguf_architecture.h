// The architectures of GGUF files that are read: a table with an entry for each, which says by what config.json of Hugging Face
// its metadata can be said, what its tensors are called there, and what a converter has done to their numbers. It shows the type
// of nlohmann's json, so only sources of this folder include it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "multihead/folders/family_names.h"
#include "multihead/io/gguf.h"

namespace mh {

/// A key of the metadata that becomes a field of config.json as it is.
struct GgufField {
  const char* key;  // behind "ARCHITECTURE."
  const char* field;
  enum class Kind { kInteger, kNumber, kFlag };
  Kind kind = Kind::kInteger;
  double low = 0, high = 0;              // of numbers
  std::optional<double> otherwise = {};  // where the key is missing, llama.cpp's default; unset: no field
};

struct GgufArchitecture {
  std::string_view name;        // general.architecture; its keys begin with it
  std::string_view model_type;  // of config.json
  std::string_view class_name;  // "LlamaForCausalLM"
  /// Names of modules in Hugging Face's files, without "model.", and in GGUF. Those that most have alike are elsewhere.
  std::span<const TensorName> modules = {};
  /// By what config.json its metadata is said: of a decoder with the fields below, or of T5's encoder-decoders, which have fields of
  /// their own.
  enum class Config { kDecoder, kT5 };
  Config config = Config::kDecoder;

  /// The order of rows that belong to heads of D rows.
  enum class Rows {
    kAsInModel,
    kNeighbours,  // of attn_q and attn_k, since ggml turns neighbouring numbers: row 2 j + s of a head is row s D / 2 + j
                  // of the model, s = 0, 1
    kByPart,  // of attn_qkv all queries come first, then all keys, all values; in the model a head's are together
  };
  Rows rows = Rows::kAsInModel;
  bool norms_plus_one = false;  // the gains of norms are stored with 1 added
  bool rope_factors = false;    // has the tensors rope_factors_long and rope_factors_short

  const char* epsilon_key = "attention.layer_norm_rms_epsilon";
  const char* epsilon_field = "rms_norm_eps";
  const char* activation_field = "hidden_act";
  const char* activation = "silu";
  bool key_heads = true;  // has num_key_value_heads
  bool head_size = true;  // has head_dim, also where it is hidden_size / num_attention_heads
  const char* rope_base_field = "rope_theta";
  const char* rotated_share_field = nullptr;  // of heads that turn in part; null: they turn as a whole
  const char* attention_bias =
      nullptr;  // the tensor by which attention_bias is told; null: there is no such field
  const char* feed_forward_bias = nullptr;  // and mlp_bias
  std::span<const GgufField> fields = {};   // further ones
  /// What no table can say: adds fields to config.json, and refuses what is not done.
  void (*finish)(const GgufFile& file, const GgufArchitecture& architecture,
                 nlohmann::ordered_json& config) = nullptr;
  std::span<const char* const> finish_keys =
      {};  // keys that it reads, and scalings of positions that only this one has

  /// "llama.block_count".
  std::string key(std::string_view name) const;
  /// The name of a tensor of Hugging Face's model in the file, as it is when GGUF has no name for it.
  std::string tensor(std::string_view theirs) const;
  /// Whether its model_type is a family that is read.
  bool is_read() const;
};

/// All entries, those of families that are not read, too.
std::span<const GgufArchitecture> gguf_architectures();
/// The entry of a file. Throws FormatError that names the architecture and those that are read.
const GgufArchitecture& gguf_architecture(const GgufFile& file);

/// Throws FormatError unless its family is read, too.
void refuse_unread_architecture(const GgufFile& file);

}  // namespace mh
