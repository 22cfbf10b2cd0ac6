// Checks of the sizes of a model, made before memory is taken for it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/config_names.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack_config.h"

namespace mh {

struct EncoderDecoderConfig;

// Dropout streams of the embeddings. Those of the layers are numbered from 0.
inline constexpr uint32_t kFirstEmbeddingStream = 1u << 20,
                          kSecondEmbeddingStream = kFirstEmbeddingStream + 1;

/// Each adds a clause to `found` for every value that is not allowed.
void check_range(std::vector<std::string>& found, std::string_view name, int64_t value, int64_t low,
                 int64_t high);
void check_rate(std::vector<std::string>& found, std::string_view name, float rate);
void check_sizes(std::vector<std::string>& found, const EmbeddingConfig& embedding, Positions positions,
                 int64_t max_positions, const ConfigNames& names);
/// prefix: before each clause, "encoder.0.self_attention: ".
void check_geometry(std::vector<std::string>& found, std::string_view prefix, const HeadGeometry& geometry,
                    Positions positions, int d_model);
void check_stack(std::vector<std::string>& found, const StackConfig& stack, int64_t d_model);
/// Of an encoder-decoder: the rates, whether its embeddings can be shared, and the ids of special tokens.
void check_dropout_and_words(std::vector<std::string>& found, const EncoderDecoderConfig& config,
                             const ConfigNames& names);
/// Whether all layers may look in this direction only.
bool all_look(AttentionDirection direction, const StackConfig& stack);

/// "n_head is 5; expected a divisor of n_embd 768".
std::string no_divisor(std::string_view heads_name, int32_t heads, std::string_view d_model_name,
                       int32_t d_model);
std::string no_activation();

/// Returns a lower bound of the number of parameters of a stack.
double least_parameters(const StackConfig& stack);

/// The heads of the attentions of stacks, by the attentions' names. REQUIRES: the stacks outlive this and keep their layers.
std::map<std::string, HeadGeometry*, std::less<>> heads_by_name(std::initializer_list<StackConfig*> stacks);

/// Puts the heads of these attentions into the configurations of the stacks that have them. Throws UsageError on a name that
/// none of them has.
void put_heads(const std::map<std::string, HeadGeometry, std::less<>>& heads,
               std::initializer_list<StackConfig*> stacks);

}  // namespace mh
