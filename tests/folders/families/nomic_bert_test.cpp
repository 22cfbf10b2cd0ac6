// config.json of Nomic BERT in the spelling of nomic's own code, and weights as that code saved them. What transformers computes
// is in bert_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/models/encoder_model.h"
#include "tests/folders/families/golden_model.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

class NomicBert : public testing::Test {
 protected:
  test::GoldenModel golden{"nomic_bert", "masked"};
  json config = json::parse(read_file(golden.folder / "config.json"));

  std::unique_ptr<Model> model() const {
    return read_parameters(TensorFiles::open(DirectoryFolder(golden.folder)),
                           read_plan(config.dump(), "config.json"));
  }
  void expect_states(const Model& found, const char* what = "states") const {
    Tape tape;
    Context context{.tape = tape};
    Batch batch(golden.sequences);
    const auto types = golden.file.integers("types");
    batch.types.assign(types.begin(), types.end());
    golden.expect_near(dynamic_cast<const EncoderModel&>(found).states(context, batch.view()).value(), what);
  }
  /// Names `key` otherwise.
  void rename(const char* key, const char* before) {
    config[before] = config[key];
    config.erase(key);
  }
  /// As nomic's code writes it; but for n_inner, which is rounded up.
  void take_own_spelling() {
    rename("hidden_size", "n_embd");
    rename("num_attention_heads", "n_head");
    rename("num_hidden_layers", "n_layer");
    rename("max_position_embeddings", "n_positions");
    rename("layer_norm_eps", "layer_norm_epsilon");
    for (const char* key : {"head_dim", "hidden_act", "rope_parameters", "hidden_dropout_prob"})
      config.erase(key);
    config.update({{"activation_function", "swiglu"},
                   {"rotary_emb_base", 1000},
                   {"rotary_emb_fraction", 1.0},
                   {"rotary_emb_interleaved", false},
                   {"rotary_emb_scale_base", nullptr},
                   {"rotary_scaling_factor", nullptr},
                   {"qkv_proj_bias", false},
                   {"mlp_fc1_bias", false},
                   {"mlp_fc2_bias", false},
                   {"prenorm", false},
                   {"causal", false},
                   {"use_rms_norm", false},
                   {"parallel_block", false},
                   {"pad_vocab_size_multiple", 1}});
  }
  auto reads() const {
    return [text = config.dump()] { read_plan(text, "config.json"); };
  }
  int32_t longest() const { return model()->facts().max_positions; }
};

TEST_F(NomicBert, ItsOwnSpellingSaysTheSame) {
  take_own_spelling();
  EXPECT_THAT(read_plan(config.dump(), "config.json").remarks, testing::IsEmpty());
  expect_states(*model());
  EXPECT_EQ(longest(), 131);
}

// The published file has many keys twice.
TEST_F(NomicBert, BothSpellingsMustAgree) {
  const json both = config;
  take_own_spelling();
  config.update(both);
  config["n_positions"] = 211;  // what may be read, beside what the model was trained on
  expect_states(*model());
  EXPECT_EQ(longest(), 211);
  for (const auto& [key, value, named] :
       {std::tuple<const char*, json, const char*>{"n_embd", 24, "n_embd is 24, but hidden_size"},
        {"layer_norm_epsilon", 0.5, "layer_norm_eps and layer_norm_epsilon, which mean the same, differ"},
        {"activation_function", "geglu", "hidden_act and activation_function, which mean the same, differ"},
        {"rotary_emb_base", 10000, "rope_theta and rotary_emb_base, which mean the same, differ"},
        {"n_inner", 3072, "intermediate_size and n_inner in blocks of 256, which mean the same, differ"}}) {
    const json before = config;
    config[key] = value;
    EXPECT_THAT(reads(), ThrowsMessage<FormatError>(HasSubstr(named)));
    config = before;
  }
  config["intermediate_size"] = 512, config["n_inner"] = 257;
  reads()();
}

TEST_F(NomicBert, TheVocabularyIsWhole) {
  config["pad_vocab_size_multiple"] = 64;
  EXPECT_THAT([&] { model(); },
              ThrowsMessage<FormatError>(HasSubstr("word_embeddings.weight: expected [64,18]")));
}

// Longer ones would turn otherwise.
TEST_F(NomicBert, ReadsTextsAsLongAsThoseOfTheTrainingWhereLongerOnesAreScaled) {
  config["n_positions"] = 8192;
  EXPECT_EQ(longest(), 8192);
  config["rotary_scaling_factor"] = 2;
  EXPECT_EQ(longest(), 2048);
  config["max_trained_positions"] = 47;
  EXPECT_EQ(longest(), 47);
}

TEST_F(NomicBert, RefusesWhatItsLayersDoNotDo) {
  for (const auto& [key, value, why] :
       {std::tuple<const char*, json, const char*>{"prenorm", true, "expected norms after the sublayers"},
        {"qkv_proj_bias", true, "expected layers without biases"},
        {"moe_every_n_layers", 2, "models with experts are not read"},
        {"rotary_emb_fraction", 0.5, "expected 1: all numbers of a head turn"},
        {"rotary_emb_scale_base", 512, "expected rotary positions without a scale"},
        {"activation_function", "glu", "activation_function: expected one of \"swiglu\", \"geglu\""}}) {
    const json before = config;
    config[key] = value;
    EXPECT_THAT(reads(), ThrowsMessage<FormatError>(HasSubstr(why)));
    config = before;
  }
}

// NomicBertForPreTraining of nomic's code: "bert." before the encoder, and no biases in the head for masked words.
TEST_F(NomicBert, WeightsOfItsOwnCodeAreRead) {
  const SafetensorsFile file = SafetensorsFile::open(golden.folder / "model.safetensors");
  std::vector<std::vector<float>> numbers;
  for (const TensorEntry& entry : file.entries()) numbers.push_back(file.floats(entry.name));
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const TensorEntry& entry = file.entries()[i];
    if (entry.name == "cls.predictions.bias" || entry.name == "cls.predictions.transform.dense.bias")
      continue;
    const bool inside = entry.name.starts_with("nomic_");
    tensors.push_back({.name = inside ? entry.name.substr(std::string("nomic_").size()) : entry.name,
                       .shape = entry.shape,
                       .data = std::span<const float>(numbers[i])});
    if (entry.name.ends_with("word_embeddings.weight"))
      tensors.push_back({.name = "cls.predictions.decoder.weight",
                         .shape = entry.shape,
                         .data = std::span<const float>(numbers[i])});
  }
  const std::vector<float> frequencies = {1, 0.1f, 0.01f};
  tensors.push_back({.name = "bert.encoder.layers.1.attn.rotary_emb.inv_freq",
                     .shape = {3},
                     .data = std::span<const float>(frequencies)});
  const TensorFiles files(SafetensorsFile::from_bytes(write_safetensors(tensors, {}), "own"), "own");
  const auto found = read_parameters(files, read_plan(config.dump(), "config.json"));
  expect_states(*found);
  EXPECT_TRUE(found->predicts());
  std::as_const(*found).visit(ConstParameterVisitor([](const std::string& name, const Parameter& parameter) {
    if (name != "masked_words.b" && name != "masked_words.output_bias") return;
    for (int64_t i = 0; i < parameter.value.size(); ++i) EXPECT_EQ(parameter.value.data()[i], 0) << name;
  }));
}

// Its class knows the size of a head.
TEST_F(NomicBert, EqualLayersStayInItsFormat) {
  const test::ScratchFolder scratch;
  ModelFolder folder = load_model_folder(golden.folder);
  folder.model = without_heads(*folder.model, {"encoder.*.0"});
  save_model_folder(scratch / "pruned", folder);
  const json saved = json::parse(read_file(std::filesystem::path(scratch / "pruned") / "config.json"));
  EXPECT_EQ(saved["num_attention_heads"], 2);
  EXPECT_EQ(saved["head_dim"], 6);
  EXPECT_FALSE(saved.contains("multihead_heads"));
  EXPECT_EQ(load_model_folder(scratch / "pruned").model->attentions().front().heads, 2);
}

}  // namespace
}  // namespace mh
