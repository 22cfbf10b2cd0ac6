// Folders that GPT2LMHeadModel and GPT2Model wrote, and what transformers computed with them in double precision.
// tests/oracles/gpt2_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/models/encoder_decoder.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/families/damaged_golden.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Gpt2Goldens : public testing::TestWithParam<const char*> {
 protected:
  test::GoldenModel golden{"gpt2", GetParam()};
  ModelFolder folder = load_model_folder(golden.folder);
};

TEST_P(Gpt2Goldens, StatesAndLogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, "gpt2");
  test::expect_states_and_logits(folder.language_model(), golden);
}

TEST_P(Gpt2Goldens, ReadingInPartsAgainstTheCacheGivesTheSameStates) {
  test::expect_same_in_parts(folder.language_model(), golden, {1, 2, 5, 26}, 2e-4);
}

TEST_P(Gpt2Goldens, WeightsStayInTheFile) {
  int in_file = 0, all = 0;
  folder.model->visit([&](const std::string&, Parameter& parameter) {
    ++all;
    in_file += parameter.value.is_own() ? 0 : 1;
  });
  EXPECT_EQ(in_file, all);
  // Inference asks for rows of the small ones only: gains, biases and positions.
  const Batch batch(golden.sequences);
  Tape tape;
  Context context{.tape = tape};
  folder.language_model().states(context, {}, batch.view());
  folder.model->visit([&](const std::string& name, Parameter& parameter) {
    if (name == "embedding" || name.find(".w_") != std::string::npos) {
      EXPECT_FALSE(parameter.value.is_own()) << name;
    }
  });
}

TEST_P(Gpt2Goldens, HeadsAreSeenAndMuted) {
  test::expect_heads_seen_and_muted(folder.language_model(), golden);
}

INSTANTIATE_TEST_SUITE_P(Folders, Gpt2Goldens, testing::Values("tied", "untied_shards_bf16", "no_prefix"));

TEST(DamagedGpt2, ConfigurationsThatDoNotFitAreRefused) {
  const test::DamagedGolden damaged("gpt2", "tied");
  damaged.with("n_embd", 24, "shape of transformer.wte.weight: expected [61,24], got [61,21]");
  damaged.with("n_layer", 4,
               "missing: transformer.h.3.attn.c_attn.weight, transformer.h.3.attn.c_attn.bias, "
               "transformer.h.3.attn.c_proj");
  damaged.with("n_layer", 2, "not used: transformer.h.2.");
  damaged.with("n_head", 4, "n_head is 4; expected a divisor of n_embd 21");
  damaged.with("n_embd", "wide", "n_embd: expected an integer");
  damaged.with("vocab_size", -1, "vocab_size: expected an integer from 2 to 16777216, got -1");
  damaged.with("bos_token_id", 1 << 30, "bos_token_id: expected an integer from -1 to 16777215");
  damaged.with("n_positions", 1 << 30, "n_positions: expected an integer");
  damaged.with("n_inner", 1 << 20, "describes a model of at least");
  damaged.with("activation_function", "step", "activation_function: expected");
  damaged.with("add_cross_attention", true, "add_cross_attention is true");
  damaged.with("model_type", "gpt3", "model_type is \"gpt3\", expected one of");
  damaged.with("model_type", "gpt3", "; did you mean gpt2?");
  damaged.with("model_type", "qwen3_moe", "; did you mean qwen3?");
  damaged.with("model_type", "reformer", "an encoder of XLMRobertaModel)");
  damaged.restore();
  EXPECT_NO_THROW(load_model_folder(damaged.folder));
}

TEST(DamagedGpt2, AnIndexOfShardsIsHeldAgainstTheFiles) {
  const test::DamagedGolden damaged("gpt2", "untied_shards_bf16");
  const fs::path index = damaged.folder / "model.safetensors.index.json";
  const std::string good = read_file(index);
  const auto with = [&](const std::function<void(nlohmann::json&)>& change, const char* words) {
    write_file_atomically(index, good);
    test::edit_json(index, change);
    damaged.expect_error(words);
  };
  with([](auto& j) { j["weight_map"]["lm_head.weight"] = "../other.safetensors"; },
       "expected the name of a file beside it");
  with([](auto& j) { j["weight_map"]["lm_head.weight"] = 3; }, "expected the name of a file beside it");
  with([](auto& j) { j["weight_map"].erase("lm_head.weight"); }, "is not listed");
  with([](auto& j) { j["weight_map"]["lm_head.bias"] = j["weight_map"]["lm_head.weight"]; },
       "lm_head.bias is not in");
  with([](auto& j) { j.erase("weight_map"); }, "expected an object \"weight_map\"");
  write_file_atomically(index, good);
  fs::remove(damaged.folder / "model-00002-of-00003.safetensors");
  damaged.expect_error("model-00002-of-00003.safetensors");
}

TEST(DamagedGpt2, ItDoesNotTranslate) {
  const test::DamagedGolden damaged("gpt2", "tied");
  const ModelFolder folder = load_model_folder(damaged.folder);
  try {
    folder.translator();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds a gpt2 model, which does not translate"));
  }
}

}  // namespace
}  // namespace mh
