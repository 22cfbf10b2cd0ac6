// Adapters beside weights: folders that peft wrote, and what transformers computed when it loaded them.
// tests/oracles/adapter_goldens.py makes both.
#include "multihead/folders/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/folders/folder_source.h"
#include "multihead/folders/name_pattern.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_model.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/support/edit_weights.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char *kAdapterConfig = "adapter_config.json", *kAdapterWeights = "adapter_model.safetensors";

/// The states of the golden sequences; of an encoder its pooled vectors, too.
void expect_adapted(const ModelFolder& folder, const test::GoldenModel& golden) {
  if (folder.model_type != "bert") return test::expect_states_and_logits(folder.language_model(), golden);
  const auto& encoder = dynamic_cast<const EncoderModel&>(*folder.model);
  const Batch batch(golden.sequences);
  Tape tape;
  Context context{.tape = tape};
  const Var states = encoder.states(context, batch.view());
  golden.expect_near(states.value(), "states");
  golden.expect_near(encoder.pooled(context, states, batch.view()).value(), "pooled");
}

class Adapters : public testing::TestWithParam<const char*> {
 protected:
  test::GoldenModel golden{"adapters", GetParam()};
};

TEST_P(Adapters, ArePutOnAsTransformersPutsThem) {
  const ModelFolder folder = load_model_folder(golden.folder);
  EXPECT_EQ(folder.remark(), "");
  expect_adapted(folder, golden);
}

TEST_P(Adapters, AreReadRowByRowAsAllAtOnce) {
  const DirectoryFolder source(golden.folder);
  const TensorFiles files = source.tensors();
  for (const auto& [name, tensor] : files.tensors()) {
    if (!tensor.source) continue;
    const std::vector<float> all = files.floats(name);
    const auto cols = static_cast<size_t>(tensor.shape[1]);
    std::vector<float> row(cols);
    tensor.source->read_rows(1, 2, row.data());
    EXPECT_EQ(row, std::vector<float>(all.begin() + static_cast<ptrdiff_t>(cols),
                                      all.begin() + static_cast<ptrdiff_t>(2 * cols)))
        << name;
  }
}

TEST_P(Adapters, AreLeftBesideWeightsThatHaveThemAlready) {
  // What save_model_folder() writes has the adapter, and no file of it.
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "merged", load_model_folder(golden.folder));
  EXPECT_FALSE(fs::exists(scratch / "merged" / kAdapterConfig));
  expect_adapted(load_model_folder(scratch / "merged"), golden);

  for (const char* file : {kAdapterConfig, kAdapterWeights})
    fs::copy(golden.folder / file, scratch / "merged" / file);
  const ModelFolder again = load_model_folder(scratch / "merged");
  EXPECT_THAT(again.remark(), HasSubstr("have this adapter already; it was not put on again"));
  expect_adapted(again, golden);
}

INSTANTIATE_TEST_SUITE_P(Folders, Adapters, testing::Values("bert", "gpt2", "llama"));

class DamagedAdapter : public testing::Test {
 protected:
  /// Expects the error when adapter_config.json has this value.
  void with(const char* key, nlohmann::json value, const std::string& words) {
    const std::string good = read_file(damaged.folder / kAdapterConfig);
    test::edit_json(damaged.folder / kAdapterConfig, [&](auto& config) { config[key] = std::move(value); });
    damaged.expect_error(words);
    write_file_atomically(damaged.folder / kAdapterConfig, good);
  }
  const test::DamagedGolden damaged{"adapters", "llama"};
};

TEST_F(DamagedAdapter, OptionsThatAreNotDoneAreRefusedByName) {
  with("peft_type", "IA3", "peft_type is 'IA3'; only adapters of the kind LORA are read");
  with("use_dora", true, "use_dora is true, which is not supported; merge the adapter into the weights");
  with("bias", "lora_only", "bias is \"lora_only\"; merge the adapter");
  with("lora_bias", true, "lora_bias is true");
  with("layer_replication", {{0, 1}}, "layer_replication is [[0,1]]");
  with("init_lora_weights", "pissa_niter_4", "init_lora_weights is \"pissa_niter_4\"");
  with("trainable_token_indices", {3}, "trainable_token_indices is [3]");
  with("target_parameters", {"x"}, "target_parameters is [\"x\"]");
  with("use_qalora", true, "use_qalora is true");
  with("of_a_later_version", 0.5, "of_a_later_version is 0.5, which is not supported");
  with("target_modules", "(?=x).*", "target_modules: the pattern '(?=x).*' has something at character 3");
  for (const char* harmless : {"lora_dropout", "fan_in_fan_out", "inference_mode", "of_a_later_version"}) {
    test::edit_json(damaged.folder / kAdapterConfig, [&](auto& config) { config[harmless] = false; });
    EXPECT_NO_THROW(load_model_folder(damaged.folder)) << harmless;
  }
}

TEST_F(DamagedAdapter, TensorsThatDoNotFitItsConfigurationAreRefused) {
  with("r", 5, "the shapes of model.embed_tokens: expected lora_A [5,43] and lora_B [20,5]");
  with("r", 1e300, "the shapes of model.");
  with("r", 0, "the shapes of model.");
  with("target_modules", {"q_proj"}, "which is none of the modules that adapter_config.json names");
  with("exclude_modules", ".*1.*up_proj",
       "tensors of model.layers.1.mlp.up_proj, which is none of the modules");
  with("modules_to_save", nullptr, "lm_head.weight has other numbers than in");
  with("alpha_pattern", {{"(?=x)", 1}}, "alpha_pattern: the pattern '(?=x)' has something at character 3");
  with("alpha_pattern", {{"down_proj", 1}, {"layers.0.mlp.down_proj", 2}}, "alpha_pattern gives 1 and 2 to");
  const fs::path weights = damaged.folder / kAdapterWeights;
  const std::string good = read_file(weights);
  const auto edited = [&](const std::string& ending, const auto& change, const char* words) {
    test::edit_weights(weights, [&](std::vector<test::EditedTensor>& all) {
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name.ends_with(ending); });
      ASSERT_NE(found, all.end());
      change(all, *found);
    });
    damaged.expect_error(words);
    write_file_atomically(weights, good);
  };
  edited(
      "0.self_attn.q_proj.lora_A.weight",
      [](auto& all, auto& t) { all.erase(all.begin() + (&t - all.data())); },
      "there is no lora_A of model.layers.0.self_attn.q_proj");
  edited(
      "0.self_attn.q_proj.lora_A.weight",
      [](auto&, auto& t) { t.data[3] = std::numeric_limits<float>::quiet_NaN(); },
      "has numbers that are not finite");
  edited(
      "0.self_attn.q_proj.lora_A.weight",
      [](auto&, auto& t) { t.name = "base_model.model.a.q_proj.lora_A.weight"; }, "there is no lora_");
  edited(
      "lm_head.weight", [](auto&, auto& t) { t.name = "base_model.model.other.weight"; },
      "has no such tensor");
  edited(
      "1.self_attn.v_proj.lora_A.weight", [](auto&, auto& t) { t.name += "_x"; }, "is not known");
}

TEST_F(DamagedAdapter, FilesThatAreMissingAreNamed) {
  fs::remove(damaged.folder / kAdapterWeights);
  damaged.expect_error("adapter_model.safetensors, though there is an adapter_config.json");
  write_file_atomically(damaged.folder / "adapter_model.bin", "x");
  damaged.expect_error("adapter_model.bin is a pickle");
  fs::remove(damaged.folder / "model.safetensors");
  damaged.expect_error(
      "there is an adapter alone: put config.json and model.safetensors of its base model beside it");
}

TEST_F(DamagedAdapter, WeightsWithoutAConfigurationAreNamedInARemark) {
  fs::remove(damaged.folder / kAdapterConfig);
  EXPECT_THAT(load_model_folder(damaged.folder).remark(),
              HasSubstr("adapter_model.safetensors has no adapter_config.json beside it and was not used"));
}

TEST_F(DamagedAdapter, WeightsThatDoNotShowWhetherTheyHaveItAreRefused) {
  const auto times = [&](float factor) {
    test::edit_weights(damaged.folder / kAdapterWeights, [&](std::vector<test::EditedTensor>& all) {
      for (auto& tensor : all) {
        if (!tensor.name.ends_with("lora_B.weight") && !tensor.name.ends_with("lora_embedding_B")) continue;
        for (float& number : tensor.data) number *= factor;
      }
    });
  };
  times(1e-3f);  // one that is small beside the weights leaves no trace
  damaged.expect_error("the files do not show whether");
  times(0);  // one that is 0 does not matter
  EXPECT_NO_THROW(load_model_folder(damaged.folder));
}

TEST(AdapterOfATable, IsRefusedWhereTheTableIsTheOutputLayerToo) {
  const test::DamagedGolden damaged("adapters", "gpt2");
  test::edit_weights(damaged.folder / kAdapterWeights, [](std::vector<test::EditedTensor>& all) {
    all.push_back(
        {"base_model.model.transformer.wte.lora_embedding_A", {2, 41}, std::vector<float>(82, 0.1f)});
    all.push_back(
        {"base_model.model.transformer.wte.lora_embedding_B", {15, 2}, std::vector<float>(30, 0.1f)});
  });
  test::edit_json(damaged.folder / kAdapterConfig, [](auto& config) {
    config["target_modules"].push_back("wte");
    config["layers_to_transform"] = nullptr;
  });
  damaged.expect_error("transformer.wte is the output layer, too, which the adapter does not change");
}

TEST(NamePatterns, MatchAsThoseOfPython) {
  const auto matches = [](const char* pattern, const char* name) {
    return NamePattern(pattern).matches(name);
  };
  EXPECT_TRUE(matches("a.c", "abc"));
  EXPECT_FALSE(matches("a\\.c", "abc"));
  EXPECT_FALSE(matches("a.c", "abcd"));
  EXPECT_TRUE(matches(".*layers\\.[0-3]\\.(q|v)_proj", "model.layers.2.v_proj"));
  EXPECT_FALSE(matches(".*layers\\.[0-3]\\.(q|v)_proj", "model.layers.4.v_proj"));
  EXPECT_TRUE(matches("^(?:ab)+$", "ababab"));
  EXPECT_FALSE(matches("^(?:ab)+$", "aba"));
  EXPECT_TRUE(matches("a{2,3}b?", "aaa"));
  EXPECT_FALSE(matches("a{2,3}b?", "aaaa"));
  EXPECT_TRUE(matches("a{2,}", "aaaaa"));
  EXPECT_TRUE(matches("\\w+\\.\\d+", "h_1.12"));
  EXPECT_FALSE(matches("\\w+\\.\\d+", "h.x"));
  EXPECT_TRUE(matches("[^.]*", "abc"));
  EXPECT_FALSE(matches("[^.]*", "a.c"));
  EXPECT_TRUE(matches("[]a-]*", "]a-"));
  EXPECT_TRUE(matches("(a|)*?b", "aab"));
  EXPECT_TRUE(matches("((((a?){99}){99}){99}){99}", "aaaa"));  // quickly
  for (const char* wrong :
       {"(", ")", "a)", "[a", "*", "a{2", "a{3,2}", "\\1", "\\s", "(?=a)", "a**", "((((((a))))))", "\\"})
    EXPECT_THROW(NamePattern{wrong}, FormatError) << wrong;
}

}  // namespace
}  // namespace mh
