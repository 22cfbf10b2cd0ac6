// Folders that GPT2LMHeadModel and GPT2Model wrote, and what transformers computed with them in double precision.
// tests/oracles/gpt2_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/batch/batch.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_folder.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/stack_cache.h"
#include "tests/models/families/golden_model.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFolder = fs::path(MULTIHEAD_TEST_DATA) / "gpt2";

class Gpt2Goldens : public testing::TestWithParam<const char*> {
 protected:
  test::GoldenModel golden{"gpt2", GetParam()};
  ModelFolder folder = load_model_folder(kFolder / GetParam());
};

TEST_P(Gpt2Goldens, StatesAndLogitsAreThoseOfTransformers) {
  const LanguageModel& model = folder.language_model();
  EXPECT_EQ(folder.model_type, "gpt2");
  const Batch batch(golden.sequences);
  Tape tape;
  Context context{.tape = tape};
  const Var states = model.states(context, {}, batch.view());
  golden.expect_near(states.value(), "states");
  Tensor logits(states.rows(), model.facts().vocabulary);
  model.vocabulary().logits(states.value(), logits.view());
  golden.expect_near(logits.view(), "logits");
}

TEST_P(Gpt2Goldens, ReadingInPartsAgainstTheCacheGivesTheSameStates) {
  const LanguageModel& model = folder.language_model();
  const std::vector<float> expected = golden.file.floats("states");
  const auto width = static_cast<size_t>(expected.size()) / Batch(golden.sequences).ids.size();
  for (const int32_t prompt : {1, 2, 5, 26}) {
    // The two longest sequences: a prompt each, of unequal lengths, then a token at a time.
    StackCache cache;
    Tape tape;
    Context context{.tape = tape};
    model.start(context, {}, cache);
    std::vector<int32_t> read(2, 0);
    size_t begin[2] = {3 * width, (3 + golden.sequences[2].size()) * width};
    for (int step = 0; read[0] < 27 && read[1] < 37; ++step) {
      std::vector<int32_t> ids;
      Ragged rows;
      for (size_t s = 0; s < 2; ++s) {
        const auto& tokens = golden.sequences[2 + s];
        const int32_t count = step == 0 ? prompt - static_cast<int32_t>(prompt > 1 ? s : 0) : 1;
        ids.insert(ids.end(), tokens.begin() + read[s], tokens.begin() + read[s] + count);
        rows.add(count);
      }
      tape.clear();
      const MatrixView states = model.extend(context, ids, {.rows = &rows}, cache).value();
      for (size_t s = 0; s < 2; ++s) {
        for (int32_t i = 0; i < rows.length(static_cast<int32_t>(s)); ++i) {
          const float* found = states.row(rows.begin(static_cast<int32_t>(s)) + i);
          const float* wanted = expected.data() + begin[s] + static_cast<size_t>(read[s] + i) * width;
          for (size_t c = 0; c < width; ++c)
            ASSERT_NEAR(found[c], wanted[c], 2e-4) << prompt << " " << read[s];
        }
        read[s] += rows.length(static_cast<int32_t>(s));
      }
    }
  }
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
  const LanguageModel& model = folder.language_model();
  EXPECT_EQ(model.attentions().at(1).name, "decoder.1.self_attention");
  const Batch batch(golden.sequences);
  const auto states = [&](const Interventions* interventions) {
    Tape tape;
    Context context{.tape = tape, .interventions = interventions};
    const MatrixView found = model.states(context, {}, batch.view()).value();
    return std::vector<float>(found.data, found.data + found.size());
  };
  Interventions mute;
  mute.mute("decoder.1.self_attention.0");
  model.check(mute);
  EXPECT_NE(states(&mute), states(nullptr));
  Interventions none;
  none.mute("decoder.9.self_attention.0");
  EXPECT_THROW(model.check(none), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Folders, Gpt2Goldens, testing::Values("tied", "untied_shards_bf16", "no_prefix"));

/// A copy of a golden folder with one key of a JSON file changed.
class DamagedGpt2 : public testing::Test {
 protected:
  fs::path copy(const char* name) {
    fs::copy(kFolder / name, scratch.path() / name, fs::copy_options::recursive);
    return scratch.path() / name;
  }
  static void edit(const fs::path& file, const std::function<void(nlohmann::json&)>& change) {
    auto document = nlohmann::json::parse(read_file(file));
    change(document);
    write_file_atomically(file, document.dump());
  }
  static void expect_error(const fs::path& folder, const char* words) {
    try {
      load_model_folder(folder);
      ADD_FAILURE() << "expected: " << words;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  test::ScratchFolder scratch;
};

TEST_F(DamagedGpt2, ConfigurationsThatDoNotFitAreRefused) {
  const fs::path folder = copy("tied"), config = folder / "config.json";
  const std::string good = read_file(config);
  const auto with = [&](const char* key, nlohmann::json value, const char* words) {
    write_file_atomically(config, good);
    edit(config, [&](nlohmann::json& j) { j[key] = std::move(value); });
    expect_error(folder, words);
  };
  with("n_embd", 24, "shape of transformer.wte.weight: expected [61,24], got [61,21]");
  with("n_layer", 4,
       "missing: transformer.h.3.attn.c_attn.weight, transformer.h.3.attn.c_attn.bias, "
       "transformer.h.3.attn.c_proj");
  with("n_layer", 2, "not used: transformer.h.2.");
  with("n_head", 4, "heads is 4, which does not divide d_model 21");
  with("n_embd", "wide", "n_embd: expected an integer");
  with("n_positions", 1 << 30, "n_positions: expected an integer");
  with("n_inner", 1 << 20, "describes a model of at least");
  with("activation_function", "step", "activation_function: expected");
  with("add_cross_attention", true, "add_cross_attention is true");
  with("model_type", "gpt3", "model_type is \"gpt3\", expected one of");
  write_file_atomically(config, good);
  EXPECT_NO_THROW(load_model_folder(folder));
}

TEST_F(DamagedGpt2, AnIndexOfShardsIsHeldAgainstTheFiles) {
  const fs::path folder = copy("untied_shards_bf16"), index = folder / "model.safetensors.index.json";
  const std::string good = read_file(index);
  const auto with = [&](const std::function<void(nlohmann::json&)>& change, const char* words) {
    write_file_atomically(index, good);
    edit(index, change);
    expect_error(folder, words);
  };
  with([](auto& j) { j["weight_map"]["lm_head.weight"] = "../other.safetensors"; },
       "expected the name of a file beside it");
  with([](auto& j) { j["weight_map"]["lm_head.weight"] = 3; }, "expected the name of a file beside it");
  with([](auto& j) { j["weight_map"].erase("lm_head.weight"); }, "is not listed");
  with([](auto& j) { j["weight_map"]["lm_head.bias"] = j["weight_map"]["lm_head.weight"]; },
       "lm_head.bias is not in");
  with([](auto& j) { j.erase("weight_map"); }, "expected an object \"weight_map\"");
  write_file_atomically(index, good);
  fs::remove(folder / "model-00002-of-00003.safetensors");
  expect_error(folder, "model-00002-of-00003.safetensors");
}

TEST_F(DamagedGpt2, ItDoesNotTranslate) {
  const ModelFolder folder = load_model_folder(kFolder / "tied");
  try {
    folder.translator();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds a gpt2 model, which does not translate"));
  }
}

}  // namespace
}  // namespace mh
