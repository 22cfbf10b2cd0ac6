// Folders that the classes of nine families of decoders wrote, and what transformers computed with them in double precision.
// tests/oracles/decoder_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/model_ledger.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

struct DecoderName {
  const char *family, *name;
};

class DecoderGoldens : public testing::TestWithParam<DecoderName> {
 protected:
  test::GoldenModel golden{GetParam().family, GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
};

// One batch of sequences of 1, 2 and 127 tokens and of the model's longest.
TEST_P(DecoderGoldens, StatesAndLogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, GetParam().family);
  EXPECT_EQ(static_cast<int32_t>(golden.sequences.back().size()), folder.model->facts().max_positions);
  test::expect_states_and_logits(folder.language_model(), golden);
}

TEST_P(DecoderGoldens, ReadingInPartsAgainstTheCacheGivesTheSameStates) {
  test::expect_same_in_parts(folder.language_model(), golden, {1, 2, 5, 126}, 4e-5);
}

TEST_P(DecoderGoldens, HeadsAreSeenAndMuted) {
  test::expect_heads_seen_and_muted(folder.language_model(), golden);
}

// Second norms, norms that sublayers share, biases of the output.
TEST_P(DecoderGoldens, TheLedgerCountsItsParameters) {
  const auto& model = dynamic_cast<const CausalModel&>(*folder.model);
  EXPECT_EQ(model_ledger(model.config(), 5).total().parameters, model.parameter_count());
}

// Parts of fused tensors go back to where they were, and gains lose their 1.
TEST_P(DecoderGoldens, WhatIsSavedIsReadAgainAndHasTheSameTensors) {
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "saved", folder);
  const ModelFolder again = load_model_folder(scratch / "saved");
  test::expect_states_and_logits(again.language_model(), golden);
  const SafetensorsFile before = SafetensorsFile::open(golden.folder / "model.safetensors"),
                        after = SafetensorsFile::open(scratch / "saved" / "model.safetensors");
  ASSERT_EQ(before.names(), after.names());
  for (const std::string& name : before.names()) {
    EXPECT_EQ(before.shape(name), after.shape(name)) << name;
    const std::vector<float> numbers = before.floats(name), saved = after.floats(name);
    // 1 + w and back again: up to half a unit in the last place of 1 + w.
    const float within = name.find("norm") != std::string::npos ? 2.4e-7f : 0;
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(saved[i], numbers[i], within) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Folders, DecoderGoldens,
    testing::Values(DecoderName{"gemma2", "capped"}, DecoderName{"gemma2", "scores_capped_bf16"},
                    DecoderName{"gemma2", "logits_capped"}, DecoderName{"gemma3_text", "plain"},
                    DecoderName{"gemma3_text", "pattern_bf16"}, DecoderName{"gpt_neo", "windows"},
                    DecoderName{"gpt_neo", "wide_f16"}, DecoderName{"gpt_neox", "parallel"},
                    DecoderName{"gpt_neox", "sequential_bf16"}, DecoderName{"olmo2", "plain"},
                    DecoderName{"olmo2", "grouped_yarn_bf16"}, DecoderName{"opt", "before"},
                    DecoderName{"opt", "after_bf16"}, DecoderName{"phi", "plain"},
                    DecoderName{"phi", "grouped_bf16"}, DecoderName{"phi3", "grouped"},
                    DecoderName{"phi3", "longrope_bf16"}, DecoderName{"smollm3", "some_turn"},
                    DecoderName{"smollm3", "windows_bf16"}),
    [](const auto& of) { return std::string(of.param.family) + "_" + of.param.name; });

// As transformers before 5 wrote it: the base, and which part turns, beside "rope_scaling".
TEST(DecoderFolders, OlderConfigurationsSayTheSame) {
  struct Case {
    DecoderName model;
    std::function<void(json&, json)> change;  // gets rope_parameters
  };
  const auto beside = [](json& config, json rope) {
    config["rope_theta"] = rope["rope_theta"];
    if (rope.contains("partial_rotary_factor"))
      config["partial_rotary_factor"] = rope["partial_rotary_factor"];
    rope.erase("rope_theta"), rope.erase("partial_rotary_factor");
    if (rope["rope_type"] != "default") config["rope_scaling"] = rope;
  };
  const auto of_neox = [](json& config, json rope) {
    config["rotary_emb_base"] = rope["rope_theta"];
    config["rotary_pct"] = rope["partial_rotary_factor"];
    if (rope["rope_type"] != "default")
      config["rope_scaling"] = {{"type", "linear"}, {"factor", rope["factor"]}};
  };
  const auto of_gemma = [](json& config, const json& rope) {
    config["rope_theta"] = rope["full_attention"]["rope_theta"];
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"];
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  };
  const auto su = [&](json& config, json rope) {
    rope.erase("original_max_position_embeddings");
    rope["rope_type"] = "su";
    beside(config, rope);
  };
  for (const Case& older :
       {Case{{"phi", "plain"}, beside}, Case{{"phi", "grouped_bf16"}, beside},
        Case{{"phi3", "grouped"}, beside}, Case{{"phi3", "longrope_bf16"}, su},
        Case{{"gpt_neox", "parallel"}, of_neox}, Case{{"gpt_neox", "sequential_bf16"}, of_neox},
        Case{{"gemma3_text", "plain"}, of_gemma}, Case{{"olmo2", "plain"}, beside}}) {
    SCOPED_TRACE(std::string(older.model.family) + " " + older.model.name);
    const test::GoldenModel golden(older.model.family, older.model.name);
    const test::DamagedGolden folder(older.model.family, older.model.name);
    folder.with([&](json& config) {
      const json rope = config["rope_parameters"];
      config.erase("rope_parameters");
      older.change(config, rope);
    });
    test::expect_states_and_logits(load_model_folder(folder.folder).language_model(), golden);
  }
}

// "yarn" was a name of it.
TEST(Phi3Folder, HasNoOtherTypeThanLongrope) {
  const test::GoldenModel golden("phi3", "longrope_bf16");
  const test::DamagedGolden folder("phi3", "longrope_bf16");
  folder.with([](json& config) { config["rope_parameters"]["rope_type"] = "yarn"; });
  test::expect_states_and_logits(load_model_folder(folder.folder).language_model(), golden);
  for (const char* type : {"linear", "dynamic", "llama3"}) {
    folder.with([&](json& config) { config["rope_parameters"]["rope_type"] = type; });
    folder.expect_error("rope_type is \"" + std::string(type) + "\"; expected \"default\" or \"longrope\"");
  }
}

TEST(GptNeoFolder, LayersAreLocalAsEitherFieldSays) {
  const test::GoldenModel golden("gpt_neo", "windows");
  const test::DamagedGolden folder("gpt_neo", "windows");
  for (const char* missing : {"attention_layers", "attention_types"}) {
    folder.with([&](json& config) { config[missing] = nullptr; });
    test::expect_states_and_logits(load_model_folder(folder.folder).language_model(), golden);
  }
  folder.with("attention_layers", {"local", "global", "local"},
              "attention_layers and attention_types differ");
  folder.with("attention_layers", {"local", "global"},
              "attention_layers: 2 types; expected one for each layer, num_layers is 3");
  folder.with("attention_layers", "local", "attention_layers: expected a list of \"global\" and \"local\"");
  folder.with("attention_layers", {"local", "global", "wide"},
              "attention_layers: expected \"global\" or \"local\", got \"wide\"");
  const auto types = [&](json value, const char* words) {
    folder.with([&](json& config) {
      config.erase("attention_layers");
      config["attention_types"] = std::move(value);
    });
    folder.expect_error(words);
  };
  const auto repeated = [](json names, json times) {
    json item = json::array(), list = json::array();
    item.push_back(std::move(names)), item.push_back(std::move(times));
    list.push_back(std::move(item));
    return list;
  };
  types("local", "attention_types: expected lists of types and how often they repeat");
  types(json::array({"global", "local"}), "attention_types: expected lists of types");
  types(repeated({"global", "local"}, -1), "attention_types: expected lists of types");
  types(repeated({"global", "local"}, 2.5), "attention_types: expected lists of types");
  types(repeated({"global", "near"}, 1), "attention_types: expected \"global\" or \"local\", got \"near\"");
  types(repeated({"global", "local"}, 2),
        "attention_types: 4 types; expected one for each layer, num_layers is 3");
  types(repeated({"global", "local"}, uint64_t{1} << 63), "attention_types: more than 1024 layers");
  types(repeated(json::array(), 1 << 30), "attention_types: more than 1024 layers");
}

TEST(DamagedGemma, ConfigurationsThatDoNotFitAreRefused) {
  for (const DecoderName of : {DecoderName{"gemma2", "capped"}, DecoderName{"gemma3_text", "plain"}}) {
    const test::DamagedGolden damaged(of.family, of.name);
    damaged.with("layer_types", {"full_attention"}, "layer_types has 1 entries; expected one for each layer");
    damaged.with("sliding_window", nullptr,
                 "layer_types names \"sliding_attention\", but there is no sliding_window");
    damaged.with("query_pre_attn_scalar", 0, "query_pre_attn_scalar: expected a number from");
    damaged.with("attention_bias", true, "missing: model.layers.0.self_attn.q_proj.bias");
    damaged.with("head_dim", 8,
                 "shape of model.layers.0.self_attn.q_proj.weight: expected [48,24], got [60,24]");
    damaged.with("num_key_value_heads", 4,
                 "num_key_value_heads is 4; expected a divisor of num_attention_heads 6");
    damaged.with("hidden_activation", "step", "hidden_activation: expected one of");
    damaged.with("final_logit_softcapping", -1, "final_logit_softcapping: expected a number from");
  }
  const test::DamagedGolden gemma2("gemma2", "capped"), gemma3("gemma3_text", "plain");
  gemma2.with("attn_logit_softcapping", 0, "attn_logit_softcapping: expected a number from");
  gemma3.with("model_type", "gemma2",
              "rope_parameters.full_attention is an object; expected the same positions in all layers");
  gemma3.with("sliding_window_pattern", 0, "sliding_window_pattern: expected an integer from 1");
  gemma3.with("rope_scaling", {{"rope_type", "linear"}, {"factor", 8}},
              "rope_parameters and rope_scaling differ");
  gemma3.with(
      [](json& config) { config["rope_parameters"]["full_attention"]["partial_rotary_factor"] = 0.5; });
  gemma3.expect_error("partial_rotary_factor is 0.5; expected 1");
  gemma3.with(
      [](json& config) { config["rope_parameters"]["full_attention"]["rope_type"] = "proportional"; });
  gemma3.expect_error("rope_parameters.full_attention.rope_type: expected one of");
}

// Positions of each kind of layers may end the texts.
TEST(Gemma3Folder, ItsLongestTextsAreThoseOfAllLayers) {
  const test::DamagedGolden folder("gemma3_text", "plain");
  folder.with([](json& config) {
    config["rope_parameters"]["full_attention"] = {{"rope_type", "longrope"},
                                                   {"short_factor", {1, 1, 1, 1, 1}},
                                                   {"long_factor", {2, 2, 2, 2, 2}},
                                                   {"original_max_position_embeddings", 50}};
  });
  const ModelFolder model = load_model_folder(folder.folder);
  EXPECT_EQ(model.model->facts().max_positions, 50);
  EXPECT_THAT(model.remark(), HasSubstr("texts of more than 50 tokens"));
}

TEST(DamagedDecoders, PositionsThatDoNotFitAreRefused) {
  const test::DamagedGolden phi3("phi3", "longrope_bf16"), neox("gpt_neox", "parallel"),
      olmo2("olmo2", "plain"), yarn("olmo2", "grouped_yarn_bf16"), smollm3("smollm3", "some_turn");
  const auto rope = [](const test::DamagedGolden& damaged, const char* key, json value, const char* words) {
    damaged.with([&](json& config) { config["rope_parameters"][key] = std::move(value); });
    damaged.expect_error(words);
  };
  rope(phi3, "short_factor", {1, 2},
       "short_factor has 2 numbers; expected 3, one for each pair of a head's 6 numbers that turn");
  rope(phi3, "long_factor", {1, 2, 3, 4}, "long_factor has 4 numbers; expected 3");
  rope(phi3, "long_factor", nullptr, "rope_type \"longrope\" needs long_factor");
  rope(phi3, "short_factor", {1, 0, 1}, "short_factor has a number that is not above 0");
  rope(phi3, "original_max_position_embeddings", 64,
       "original_max_position_embeddings is 139, and 64 inside of rope_parameters");
  rope(phi3, "partial_rotary_factor", 0.5,
       "partial_rotary_factor is 0.5, so that 5 of a head's 10 numbers turn");
  rope(neox, "partial_rotary_factor", 0.3,
       "partial_rotary_factor is 0.3, so that 3 of a head's 10 numbers turn");
  neox.with([](json& config) { config.erase("rope_parameters"), config["rotary_pct"] = 0.3; });
  neox.expect_error("so that 3 of a head's 10 numbers turn");
  rope(olmo2, "partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5; expected 1");
  rope(yarn, "factor", nullptr, "rope_type \"yarn\" needs factor");
  rope(yarn, "beta_slow", 5, "beta_slow is 5; expected less than beta_fast, 4");
  smollm3.with("no_rope_layers", {1, 0}, "no_rope_layers has 2 numbers; expected one for each layer");
  smollm3.with("no_rope_layers", {"a"}, "no_rope_layers");
  smollm3.with("no_rope_layer_interval", 0, "no_rope_layer_interval: expected an integer from 1");
  smollm3.with("layer_types", {"full_attention", "sliding_attention", "full_attention"},
               "layer_types names \"sliding_attention\", but there is no sliding_window");
}

TEST(DamagedDecoders, ConfigurationsAndTensorsThatDoNotFitAreRefused) {
  const test::DamagedGolden neox("gpt_neox", "parallel"), opt("opt", "before"), phi("phi", "plain"),
      phi3("phi3", "grouped"), olmo2("olmo2", "plain"), neo("gpt_neo", "windows");
  neox.with("num_attention_heads", 4, "num_attention_heads is 4; expected a divisor of hidden_size 30");
  neox.with("attention_bias", false, "not used: gpt_neox.layers.0.attention.dense.bias");
  neox.with("num_hidden_layers", 3, "missing: gpt_neox.layers.2.");
  neox.with("hidden_size", 60, "shape of gpt_neox.embed_in.weight: expected [37,60], got [37,30]");
  opt.with("word_embed_proj_dim", 7, "word_embed_proj_dim differs from hidden_size");
  opt.with("layer_norm_elementwise_affine", false, "layer_norm_elementwise_affine is false");
  opt.with("enable_bias", false, "not used: model.decoder.layers.0.");
  opt.with("do_layer_norm_before", false, "not used: model.decoder.final_layer_norm.bias");
  opt.with("max_position_embeddings", 132,
           "shape of model.decoder.embed_positions.weight: expected [134,21], got [133,21]");
  opt.with("num_attention_heads", 2, "num_attention_heads is 2; expected a divisor of hidden_size 21");
  phi.with("qk_layernorm", true, "qk_layernorm is true");
  phi.with("num_key_value_heads", 2, "num_key_value_heads is 2; expected a divisor of num_attention_heads 3");
  phi.with("head_dim", 4, "shape of model.layers.0.self_attn.q_proj.weight: expected [12,24], got [24,24]");
  phi3.with("num_key_value_heads", 3,
            "shape of model.layers.0.self_attn.qkv_proj.weight: expected [48,24], got [40,24]");
  phi3.with("intermediate_size", 30,
            "shape of model.layers.0.mlp.gate_up_proj.weight: expected [60,24], got [58,24]");
  olmo2.with("num_attention_heads", 5, "num_attention_heads is 5; expected a divisor of hidden_size 24");
  olmo2.with("model_type", "llama", "not used: model.layers.0.");
  neo.with("num_heads", 2, "num_heads is 2; expected a divisor of hidden_size 21");
  neo.with("num_attention_heads", 7, "num_attention_heads");
}

}  // namespace
}  // namespace mh
