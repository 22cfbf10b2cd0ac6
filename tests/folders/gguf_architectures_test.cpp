// Small models of each architecture in GGUF, written as llama.cpp's converter does it, with the numbers of Hugging Face's classes
// (tests/oracles/gguf_architectures_goldens.py); and what the files say as config.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/gguf_architecture.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/folders/gguf_keys.h"
#include "multihead/folders/gguf_weights.h"
#include "multihead/folders/save_folder.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace test;
using testing::ElementsAre;

constexpr const char* kArchitectureGoldens = "gguf_architectures";

GgufFile golden_file(const std::string& name) {
  return GgufFile::open(fs::path(goldens_folder()) / kArchitectureGoldens / (name + ".gguf"));
}

/// The goldens of architectures whose families are read.
std::vector<std::string> goldens_read() {
  std::vector<std::string> names;
  for (const char* name :
       {"qwen2", "qwen3", "gemma2", "gemma3", "phi3", "phi3_long", "gptneox", "gptneox_serial", "olmo2"}) {
    if (gguf_architecture(golden_file(name)).is_read()) names.emplace_back(name);
  }
  return names;
}

class GgufArchitectures : public testing::TestWithParam<std::string> {
 protected:
  GoldenModel golden{kArchitectureGoldens, GetParam()};
  fs::path path = golden.folder.string() + ".gguf";

  /// A folder is read without remark, but that longer texts would need other factors.
  static testing::Matcher<std::string> is_known() {
    return testing::AnyOf("", testing::HasSubstr("long_factor is not done"));
  }
};

TEST_P(GgufArchitectures, StatesAndLogitsAreThoseOfTheModel) {
  const ModelFolder folder = load_model_folder(path);
  EXPECT_THAT(folder.remark(), is_known());
  EXPECT_EQ(folder.model_type, gguf_architecture(golden_file(GetParam())).model_type);
  expect_states_and_logits(folder.language_model(), golden);
}

TEST_P(GgufArchitectures, TheConvertedFolderIsTheSameModel) {
  const ScratchFolder scratch;
  save_model_folder(scratch / "folder", load_model_folder(path));
  const ModelFolder folder = load_model_folder(scratch / "folder");
  EXPECT_THAT(folder.remark(), is_known());
  expect_states_and_logits(folder.language_model(), golden);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufArchitectures, testing::ValuesIn(goldens_read()),
                         [](const auto& name) { return name.param; });

/// What the config.json of a golden says, and which keys of the file are not known.
json config_of(const std::string& name) {
  const GgufFile file = golden_file(name);
  EXPECT_THAT(gguf_remarks(file), ElementsAre());
  return json::parse(gguf_config_json(file));
}

void expect_fields(const std::string& name, const json& fields) {
  const json config = config_of(name);
  for (const auto& [field, value] : fields.items())
    EXPECT_EQ(config.value(field, json("no field")), value) << field;
}

TEST(GgufArchitectureConfigs, HaveTheFieldsOfTheirClasses) {
  const json common = {{"hidden_size", 32},        {"num_attention_heads", 4},
                       {"vocab_size", 283},        {"bos_token_id", 1},
                       {"eos_token_id", 2},        {"pad_token_id", 2},
                       {"num_key_value_heads", 2}, {"max_position_embeddings", 131}};
  const auto with = [&](json more) {
    more.insert(common.begin(), common.end());
    return more;
  };
  expect_fields("qwen2", with({{"architectures", {"Qwen2ForCausalLM"}},
                               {"model_type", "qwen2"},
                               {"head_dim", "no field"},
                               {"rope_theta", 1e6},
                               {"attention_bias", "no field"},
                               {"tie_word_embeddings", false}}));
  expect_fields("qwen3", with({{"model_type", "qwen3"},
                               {"head_dim", 16},
                               {"attention_bias", false},
                               {"intermediate_size", 256},
                               {"tie_word_embeddings", true}}));
  expect_fields("olmo2", with({{"model_type", "olmo2"}, {"rope_theta", 5e5}, {"rms_norm_eps", 1e-5}}));
  const std::string window = "sliding_attention", full = "full_attention";
  expect_fields("gemma2", with({{"architectures", {"Gemma2ForCausalLM"}},
                                {"model_type", "gemma2"},
                                {"head_dim", 16},
                                {"hidden_activation", "gelu_pytorch_tanh"},
                                {"query_pre_attn_scalar", 16},
                                {"sliding_window", 4},
                                {"attn_logit_softcapping", 2.0},
                                {"final_logit_softcapping", 3.0},
                                {"layer_types", {window, full, window}},
                                {"rope_theta", 10000.0}}));
  expect_fields("gemma3", with({{"architectures", {"Gemma3ForCausalLM"}},
                                {"model_type", "gemma3_text"},
                                {"rope_theta", 1e6},
                                {"rope_local_base_freq", 10000.0},
                                {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}},
                                {"final_logit_softcapping", "no field"},
                                {"layer_types", {window, window, window, window, window, full, window}},
                                {"tie_word_embeddings", true}}));
  expect_fields("phi3", with({{"architectures", {"Phi3ForCausalLM"}},
                              {"model_type", "phi3"},
                              {"partial_rotary_factor", 0.5},
                              {"original_max_position_embeddings", 131},
                              {"sliding_window", 5},
                              {"rope_scaling", nullptr}}));
  expect_fields("phi3_long", with({{"original_max_position_embeddings", 16},
                                   {"partial_rotary_factor", "no field"},
                                   {"sliding_window", nullptr},
                                   {"rope_scaling",
                                    {{"type", "longrope"},
                                     {"short_factor", {1.0, 1.0, 1.05, 1.25}},
                                     {"long_factor", {1.1, 1.5, 2.5, 8.0}}}}}));
  expect_fields("gptneox", {{"architectures", {"GPTNeoXForCausalLM"}},
                            {"model_type", "gpt_neox"},
                            {"layer_norm_eps", 1e-5},
                            {"hidden_act", "gelu"},
                            {"rotary_pct", 0.5},
                            {"rotary_emb_base", 10000.0},
                            {"use_parallel_residual", true},
                            {"attention_bias", true},
                            {"num_key_value_heads", "no field"},
                            {"rope_theta", "no field"}});
  expect_fields("gptneox_serial", {{"use_parallel_residual", false}});
}

TEST(GgufArchitectureTensors, HaveTheNamesOfTheirFiles) {
  const auto name_of = [](const char* architecture, const char* tensor) {
    const auto all = gguf_architectures();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const GgufArchitecture& one) { return one.name == architecture; });
    return found->tensor(tensor);
  };
  EXPECT_EQ(name_of("llama", "model.layers.11.post_attention_layernorm.weight"), "blk.11.ffn_norm.weight");
  EXPECT_EQ(name_of("llama", "model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(name_of("llama", "layers.0.self_attn.q_proj.bias"), "blk.0.attn_q.bias");
  EXPECT_EQ(name_of("qwen3", "model.layers.3.self_attn.k_norm.weight"), "blk.3.attn_k_norm.weight");
  EXPECT_EQ(name_of("gemma2", "model.layers.3.post_attention_layernorm.weight"),
            "blk.3.post_attention_norm.weight");
  EXPECT_EQ(name_of("gemma2", "model.layers.3.pre_feedforward_layernorm.weight"), "blk.3.ffn_norm.weight");
  EXPECT_EQ(name_of("olmo2", "model.layers.3.post_feedforward_layernorm.weight"),
            "blk.3.post_ffw_norm.weight");
  EXPECT_EQ(name_of("phi3", "model.layers.3.self_attn.qkv_proj.weight"), "blk.3.attn_qkv.weight");
  EXPECT_EQ(name_of("phi3", "model.layers.3.mlp.gate_up_proj.weight"), "blk.3.ffn_up.weight");
  EXPECT_EQ(name_of("gptneox", "gpt_neox.layers.3.attention.query_key_value.bias"), "blk.3.attn_qkv.bias");
  EXPECT_EQ(name_of("gptneox", "gpt_neox.final_layer_norm.bias"), "output_norm.bias");
  EXPECT_EQ(name_of("gptneox", "embed_out.weight"), "output.weight");
  EXPECT_EQ(name_of("llama", "score.weight"), "score.weight");  // GGUF has no name for it
}

// Gemma's gains have 1 added in the file; in Hugging Face's GPT-NeoX a head's queries, keys and values are together.
TEST(GgufArchitectureTensors, AreAsTheModelHasThem) {
  const auto floats_of = [](const char* golden, const char* tensor) {
    const GgufFile file = golden_file(golden);
    return std::pair{file.floats(*file.tensor(tensor)),
                     gguf_weights(file, gguf_architecture(file), gguf_heads(file)).floats(tensor)};
  };
  for (const char* norm : {"blk.1.attn_norm.weight", "blk.1.post_ffw_norm.weight", "output_norm.weight"}) {
    auto [in_file, found] = floats_of("gemma2", norm);
    for (float& gain : in_file) gain -= 1;
    EXPECT_EQ(found, in_file) << norm;
  }
  const auto [embedding, same] = floats_of("gemma2", "token_embd.weight");
  EXPECT_EQ(same, embedding);
  const auto [bias, by_head] = floats_of("gptneox", "blk.0.attn_qkv.bias");
  ASSERT_EQ(by_head.size(), 96u);  // 4 heads of 8
  for (size_t i = 0; i < by_head.size(); ++i) {
    const size_t head = i / 24, part = i / 8 % 3;
    EXPECT_EQ(by_head[i], bias[32 * part + 8 * head + i % 8]) << i;
  }
  const auto [weight, rows] = floats_of("gptneox", "blk.0.attn_qkv.weight");
  EXPECT_EQ(
      std::vector<float>(rows.begin() + 8 * 32, rows.begin() + 9 * 32),  // the first key of the first head
      std::vector<float>(weight.begin() + 32 * 32, weight.begin() + 33 * 32));
}

}  // namespace
}  // namespace mh
