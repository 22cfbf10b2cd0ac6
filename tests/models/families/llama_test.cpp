// Folders that LlamaForCausalLM and LlamaModel wrote, and what transformers computed with them in double
// precision. tests/oracles/llama_goldens.py makes both.
#include <gtest/gtest.h>

#include "multihead/models/causal_model.h"
#include "tests/models/families/causal_goldens.h"
#include "tests/models/families/damaged_golden.h"

namespace mh {
namespace {

using nlohmann::json;

class LlamaGoldens : public testing::TestWithParam<const char*> {
 protected:
  test::GoldenModel golden{"llama", GetParam()};
  ModelFolder folder = load_model_folder(golden.folder);
};

// One batch of sequences of 1, 2 and 127 tokens and of the model's longest.
TEST_P(LlamaGoldens, StatesAndLogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, "llama");
  EXPECT_EQ(static_cast<int32_t>(golden.sequences.back().size()), folder.model->facts().max_positions);
  test::expect_states_and_logits(folder.language_model(), golden);
}

TEST_P(LlamaGoldens, ReadingInPartsAgainstTheCacheGivesTheSameStates) {
  test::expect_same_in_parts(folder.language_model(), golden, {1, 2, 5, 126}, 2e-5);
}

TEST_P(LlamaGoldens, HeadsAreSeenAndMuted) {
  test::expect_heads_seen_and_muted(folder.language_model(), golden);
}

INSTANTIATE_TEST_SUITE_P(Folders, LlamaGoldens,
                         testing::Values("tied_grouped", "untied_biased_linear_bf16", "llama3_one_key_f16"));

// As transformers before 5 wrote it, and as Meta's folders are.
TEST(LlamaFolder, OlderConfigurationsSayTheSame) {
  for (const char* name : {"tied_grouped", "untied_biased_linear_bf16", "llama3_one_key_f16"}) {
    const test::GoldenModel golden("llama", name);
    const test::DamagedGolden older("llama", name);
    for (const char* type_key : {"type", "rope_type"}) {
      older.with([&](json& config) {
        json rope = config["rope_parameters"];
        config.erase("rope_parameters");
        config["rope_theta"] = rope["rope_theta"];
        rope.erase("rope_theta");
        rope[type_key] = rope["rope_type"];
        if (std::string(type_key) == "type") rope.erase("rope_type");
        config["rope_scaling"] = rope[type_key] == "default" ? json() : rope;
        config["torch_dtype"] = config["dtype"];
        config.erase("dtype");
        config["eos_token_id"] = {1, 3, 2};
        if (config["num_key_value_heads"] == config["num_attention_heads"]) {
          config.erase("num_key_value_heads");
          config.erase("head_dim");
        }
      });
      const ModelFolder folder = load_model_folder(older.folder);
      EXPECT_EQ(folder.model->facts().eos_id, 1);
      test::expect_states_and_logits(folder.language_model(), golden);
    }
  }
}

// Llama 3.2 has 131,072 positions of 2,048 numbers: rotary positions need no table of them.
TEST(LlamaFolder, ManyPositionsTakeNoMemory) {
  const test::DamagedGolden long_text("llama", "tied_grouped");
  long_text.with([](json& config) { config["max_position_embeddings"] = 1 << 20; });
  EXPECT_EQ(load_model_folder(long_text.folder).model->facts().max_positions, 1 << 20);
}

TEST(DamagedLlama, ConfigurationsThatDoNotFitAreRefused) {
  const test::DamagedGolden damaged("llama", "tied_grouped");
  damaged.with("hidden_size", 25, "shape of model.embed_tokens.weight: expected [37,25], got [37,24]");
  damaged.with("num_hidden_layers", 3, "missing: model.layers.2.self_attn.q_proj.weight");
  damaged.with("num_hidden_layers", 1, "not used: model.layers.1.");
  damaged.with("num_attention_heads", 5,
               "num_key_value_heads is 3; expected a divisor of num_attention_heads 5");
  damaged.with("head_dim", 5, "rotary");
  damaged.with("head_dim", 8,
               "shape of model.layers.0.self_attn.q_proj.weight: expected [48,24], got [60,24]");
  damaged.with("head_dim", 1 << 20, "head_dim: expected an integer from 1 to 1024");
  damaged.with("attention_bias", true, "missing: model.layers.0.self_attn.q_proj.bias");
  damaged.with("mlp_bias", true, "missing: model.layers.0.mlp.gate_proj.bias");
  damaged.with("tie_word_embeddings", false, "missing: lm_head.weight");
  damaged.with("hidden_act", "step", "hidden_act: expected one of");
  damaged.with("vocab_size", 0, "vocab_size: expected an integer from 2");
  damaged.with("eos_token_id", json::array({37}), "eos_token_id is 37; expected 0 ... 36");
  damaged.with("eos_token_id", json::array(), "eos_token_id: expected an integer");
  damaged.with("max_position_embeddings", 1 << 30, "max_position_embeddings: expected an integer");
  damaged.with("intermediate_size", 1 << 20, "describes a model of at least");
  damaged.with("quantization_config", json::object(), "quantization_config");
  damaged.restore();
  EXPECT_NO_THROW(load_model_folder(damaged.folder));
}

TEST(DamagedLlama, PositionsThatAreNotSupportedAreNamed) {
  const test::DamagedGolden damaged("llama", "llama3_one_key_f16");
  const auto rope = [&](const char* key, json value, const char* words) {
    damaged.with([&](json& config) { config["rope_parameters"][key] = std::move(value); });
    damaged.expect_error(words);
  };
  rope("rope_type", "yarn", "rope_type: expected one of \"default\", \"linear\", \"llama3\", got \"yarn\"");
  rope("factor", nullptr, "rope_type \"llama3\" needs factor");
  rope("original_max_position_embeddings", nullptr,
       "rope_type \"llama3\" needs original_max_position_embeddings");
  rope("low_freq_factor", 5.0, "low_freq_factor is 5; expected less than high_freq_factor, 4");
  rope("factor", 0, "factor: expected a number from 0.001 to 1000000, got 0");
  rope("partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5; expected 1");
  rope("rope_theta", -1, "rope_theta: expected a number from");
  damaged.with("rope_scaling", {{"rope_type", "linear"}, {"factor", 2}},
               "rope_parameters and rope_scaling differ");
}

}  // namespace
}  // namespace mh
