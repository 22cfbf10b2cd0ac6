// Models that began with the weights of a folder, saved in its format (SaveOptions::begun_from).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/kept_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/folders/folder_case.h"
#include "tests/support/edit_weights.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

json config_kept_in(const fs::path& folder) {
  return json::parse(read_file(folder / "config.json"));
}

class KeptFolder : public testing::Test {
 protected:
  void copy(const std::string& golden) const {
    fs::remove_all(given);
    fs::copy(fs::path(goldens_folder()) / golden, given, fs::copy_options::recursive);
  }
  /// Adds a number to the first of every parameter.
  static void train(const ModelFolder& folder) {
    folder.translator().visit([&](const std::string&, Parameter& parameter) {
      parameter.value.data()[0] += 0.5f;
      parameter.changed();
    });
  }

  const test::ScratchFolder scratch;
  const fs::path given = scratch / "given", saved = scratch / "saved";
};

TEST_F(KeptFolder, IsAllThatSavingNeeds) {
  for (const char* golden :
       {"bart/plain", "bart/alone", "bart/untied_f16", "mbart/untied", "m2m_100/odd_bf16", "m2m_100/untied",
        "t5/flan_bf16", "t5/text", "mt5/untied_bf16", "umt5/plain", "marian/relu", "marian/silu_untied",
        "marian/swish_bf16_separate"}) {
    SCOPED_TRACE(golden);
    copy(golden);
    std::ofstream(given / "training.json") << "{}";
    std::ofstream(given / "notes.txt") << "beside it";
    const ModelFolder folder = load_model_folder(given);
    const std::string_view without[] = {"training.json"};
    const ModelFolder kept = kept_folder(folder, without);
    const json before = config_kept_in(given);
    fs::remove_all(given);
    train(folder);
    save_model_folder(saved, folder.translator(), {.begun_from = &kept});

    const ModelFolder again = load_model_folder(saved);
    EXPECT_EQ(again.remark(), folder.remark());
    EXPECT_EQ(again.model_type, folder.model_type);
    EXPECT_EQ(test::values_of(again.translator()), test::values_of(folder.translator()));
    json after = config_kept_in(saved);
    EXPECT_EQ(after[after.contains("torch_dtype") ? "torch_dtype" : "dtype"], "float32");
    for (const auto& [key, value] : before.items()) {
      if (key.ends_with("dtype")) continue;
      EXPECT_EQ(after[key], value) << key;
    }
    EXPECT_EQ(read_file(saved / "notes.txt"), "beside it");
    EXPECT_FALSE(fs::exists(saved / "training.json"));
  }
}

// Transformers 5 ties no tables when the output has its own, whatever share_encoder_decoder_embeddings says.
TEST_F(KeptFolder, TablesThatWereReadFromOneAreWrittenApart) {
  copy("marian/relu");
  test::edit_json(given / "config.json", [](json& config) { config["tie_word_embeddings"] = false; });
  test::edit_weights(given / "model.safetensors", [](std::vector<test::EditedTensor>& tensors) {
    for (const test::EditedTensor& tensor : tensors) {
      if (tensor.name != "model.shared.weight") continue;
      test::EditedTensor output = tensor;
      output.name = "lm_head.weight";
      tensors.push_back(std::move(output));
      break;
    }
  });
  const ModelFolder folder = load_model_folder(given);
  const ModelFolder kept = kept_folder(folder);
  folder.translator().visit([&](const std::string& name, Parameter& parameter) {
    if (name == "target_embedding") parameter.value.data()[0] += 3, parameter.changed();
  });
  save_model_folder(saved, folder.translator(), {.begun_from = &kept});
  EXPECT_EQ(test::values_of(load_model_folder(saved).translator()), test::values_of(folder.translator()));
  EXPECT_EQ(config_kept_in(saved)["share_encoder_decoder_embeddings"], false);
  const std::vector<std::string> names = SafetensorsFile::open(saved / "model.safetensors").names();
  for (const char* table : {"encoder.embed_tokens", "decoder.embed_tokens"})
    EXPECT_THAT(names, Contains(std::string("model.") + table + ".weight"));
  EXPECT_THAT(names, Contains("lm_head.weight"));
  EXPECT_THAT(names, Not(Contains("model.shared.weight")));
}

TEST_F(KeptFolder, TakesNoOtherTokenizer) {
  copy("bart/text");
  const ModelFolder folder = load_model_folder(given), kept = kept_folder(folder);
  EXPECT_THAT(
      [&] {
        save_model_folder(saved, folder.translator(), {.tokenizer = &*folder.tokenizer, .begun_from = &kept});
      },
      ThrowsMessage<UsageError>(HasSubstr("is saved with its own tokenizers; give none")));
}

}  // namespace
}  // namespace mh
