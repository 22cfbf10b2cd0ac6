// Folders that LlamaForCausalLM, LlamaModel, MistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM wrote, and what
// transformers computed with them in double precision. tests/oracles/llama_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct GoldenName {
  const char *family, *name;
};

class LlamaGoldens : public testing::TestWithParam<GoldenName> {
 protected:
  test::GoldenModel golden{GetParam().family, GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
};

// One batch of sequences of 1, 2 and 127 tokens and of the model's longest.
TEST_P(LlamaGoldens, StatesAndLogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, GetParam().family);
  EXPECT_EQ(static_cast<int32_t>(golden.sequences.back().size()), folder.model->facts().max_positions);
  test::expect_states_and_logits(folder.language_model(), golden);
}

TEST_P(LlamaGoldens, ReadingInPartsAgainstTheCacheGivesTheSameStates) {
  test::expect_same_in_parts(folder.language_model(), golden, {1, 2, 5, 126}, 4e-5);
}

TEST_P(LlamaGoldens, HeadsAreSeenAndMuted) {
  test::expect_heads_seen_and_muted(folder.language_model(), golden);
}

INSTANTIATE_TEST_SUITE_P(
    Folders, LlamaGoldens,
    testing::Values(GoldenName{"llama", "tied_grouped"}, GoldenName{"llama", "untied_biased_linear_bf16"},
                    GoldenName{"llama", "llama3_one_key_f16"}, GoldenName{"mistral", "window"},
                    GoldenName{"mistral", "no_window_bf16"}, GoldenName{"qwen2", "tied"},
                    GoldenName{"qwen2", "window_bf16"}, GoldenName{"qwen2", "some_windows"},
                    GoldenName{"qwen3", "tied"}, GoldenName{"qwen3", "biased_bf16"}),
    [](const auto& of) { return std::string(of.param.family) + "_" + of.param.name; });

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
  damaged.with("pad_token_id", 37, "pad_token_id is 37; expected 0 ... 36");
  damaged.with("eos_token_id", json::array(), "eos_token_id: expected an integer");
  damaged.with("max_position_embeddings", 1 << 30, "max_position_embeddings: expected an integer");
  damaged.with("intermediate_size", 1 << 20, "describes a model of at least");
  damaged.with("quantization_config", json({{"quant_method", "gptq"}}), "quantization_config");
  damaged.restore();
  EXPECT_NO_THROW(load_model_folder(damaged.folder));
}

// A window counts for all layers of Mistral's, and for none where it is null.
TEST(MistralFolder, WindowsAreThoseOfItsConfiguration) {
  const test::DamagedGolden folder("mistral", "window");
  const auto window = [&] {
    const auto model = load_model_folder(folder.folder).model;
    return model->attention("decoder.1.self_attention").config().mask.window;
  };
  EXPECT_EQ(window(), 17);
  folder.with([](json& config) { config["sliding_window"] = nullptr; });
  EXPECT_EQ(window(), 0);
  folder.with([](json& config) { config.erase("sliding_window"); });  // MistralConfig's default
  EXPECT_EQ(window(), 4096);
  folder.with("sliding_window", 0, "sliding_window: expected an integer from 1");
}

TEST(Qwen2Folder, LayersHaveWindowsAsItsConfigurationSays) {
  const test::DamagedGolden folder("qwen2", "some_windows");
  const auto windows = [&] {
    const auto model = load_model_folder(folder.folder).model;
    std::vector<int32_t> found;
    for (const auto& named : model->attentions())
      found.push_back(model->attention(named.name).config().mask.window);
    return found;
  };
  EXPECT_EQ(windows(), (std::vector{0, 11, 11}));
  const auto mask = load_model_folder(folder.folder).model->mask("decoder.1.self_attention");
  EXPECT_EQ(mask.visible(40, 50, 50).begin, 30);
  folder.with([](json& config) {
    config["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention"};
  });
  EXPECT_EQ(windows(), (std::vector{11, 0, 11}));
  for (const int64_t first : {2, 3}) {  // as transformers before 5 wrote it
    folder.with([&](json& config) {
      config.erase("layer_types");
      config["max_window_layers"] = first;
    });
    EXPECT_EQ(windows(), (std::vector<int32_t>{0, 0, first == 2 ? 11 : 0}));
  }
  folder.with([](json& config) {
    config.erase("layer_types");
    config["use_sliding_window"] = false;
  });
  EXPECT_EQ(windows(), (std::vector{0, 0, 0}));
  folder.with("use_sliding_window", false,
              "layer_types names \"sliding_attention\"");  // transformers fails there, too
  folder.with("layer_types", {"full_attention"},
              "layer_types has 1 entries; expected one for each layer, num_hidden_layers is 3");
}

// LlamaModel and LlamaForSequenceClassification of an untied model have no output layer.
TEST(BareLlama, GivesStatesAndPredictsNothing) {
  const test::GoldenModel golden("mistral", "window");
  const SafetensorsFile file = SafetensorsFile::open(golden.folder / "model.safetensors");
  std::vector<std::vector<float>> numbers;
  for (const TensorEntry& entry : file.entries()) numbers.push_back(file.floats(entry.name));
  const std::vector<float> scores(72);
  for (const bool classifier : {false, true}) {
    std::vector<NamedTensor> tensors;
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::string name = file.entries()[i].name;
      if (name == "lm_head.weight") continue;
      if (!classifier) name = name.substr(std::string_view("model.").size());
      tensors.push_back(
          {.name = name, .shape = file.entries()[i].shape, .data = std::span<const float>(numbers[i])});
    }
    if (classifier) tensors.push_back({.name = "score.weight", .shape = {3, 24}, .data = scores});
    MemoryFolder::Files files = {{"config.json", read_file(golden.folder / "config.json")},
                                 {"model.safetensors", write_safetensors(tensors, {})}};
    const ModelFolder folder = load_model_folder(std::make_shared<const MemoryFolder>(files, "bare"));
    const Batch batch(golden.sequences);
    Tape tape;
    Context context{.tape = tape};
    golden.expect_near(folder.model->read(context, batch.view(), {}).value(), "states");
    EXPECT_EQ(folder.not_read,
              classifier ? std::vector<std::string>{"score.weight"} : std::vector<std::string>());
    EXPECT_FALSE(folder.model->predicts());
    EXPECT_EQ(folder.model->facts().vocabulary, 0);
    EXPECT_EQ(folder.model->facts().vocabulary_read(), 37);
    for (const SiteShape& site : folder.model->sites()) EXPECT_NE(site.name, "decoder.logits");
    EXPECT_THAT([&] { folder.language_model(); },
                ThrowsMessage<UsageError>(HasSubstr("a mistral model, which predicts no next token")));
    EXPECT_THAT([&] { folder.causal_model(); },
                ThrowsMessage<UsageError>(HasSubstr("a mistral model, which reads a text")));
    EXPECT_THAT([&] { folder.model->logits(context, {}, batch.view()); },
                ThrowsMessage<UsageError>(HasSubstr("no output layer")));
    const test::ScratchFolder scratch;
    save_model_folder(scratch / "saved", folder);
    const ModelFolder again = load_model_folder(scratch / "saved");
    golden.expect_near(again.model->read(context, batch.view(), {}).value(), "states");
    EXPECT_EQ(again.not_read, folder.not_read);
  }
}

// Whatever other fields say: Qwen2's projections have fixed biases, and Qwen3's norms are parameters.
TEST(DamagedQwen, TensorsThatAreMissingAreNamed) {
  const test::DamagedGolden qwen2("qwen2", "tied"), qwen3("qwen3", "tied");
  qwen2.with([](json& config) { config["attention_bias"] = false, config["mlp_bias"] = true; });
  EXPECT_NO_THROW(load_model_folder(qwen2.folder));
  qwen2.with("model_type", "llama", "not used: model.layers.0.self_attn.k_proj.bias");
  qwen2.with("model_type", "qwen3", "missing: model.layers.0.self_attn.q_norm.weight");
  qwen3.with("attention_bias", true, "missing: model.layers.0.self_attn.q_proj.bias");
  qwen3.with("model_type", "llama", "not used: model.layers.0.self_attn.k_norm.weight");
}

TEST(DamagedLlama, PositionsThatAreNotSupportedAreNamed) {
  const test::DamagedGolden damaged("llama", "llama3_one_key_f16");
  const auto rope = [&](const char* key, json value, const char* words) {
    damaged.with([&](json& config) { config["rope_parameters"][key] = std::move(value); });
    damaged.expect_error(words);
  };
  rope("rope_type", "proportional",
       "rope_type: expected one of \"default\", \"linear\", \"llama3\", \"yarn\", \"dynamic\", \"longrope\"");
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
