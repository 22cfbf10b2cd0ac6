// Folders of sentence-transformers, obeyed and refused. tests/oracles/sentence_goldens.py makes the goldens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/io/lines.h"
#include "multihead/io/safetensors.h"
#include "multihead/tasks/embed_text.h"
#include "tests/tasks/sentence_folder_case.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::SentenceFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(SentenceFolder, VectorsAreThoseOfSentenceTransformers) {
  expect_near(vectors_of(test::kSentenceFolders / "modes"), "modes", 6 * 14);
  expect_near(vectors_of(test::kSentenceFolders / "dense"), "dense", 9);
  expect_near(vectors_of(test::kSentenceFolders / "plain"), "plain", 14);
  expect_near(vectors_of(test::kSentenceFolders / "electra"), "electra", 14);  // embeddings of 9 numbers
  expect_near(vectors_of(test::kSentenceFolders / "nomic"), "nomic", 12);
}

TEST_F(SentenceFolder, EachModeAloneUnderItsNewAndItsOldName) {
  const std::vector<std::pair<std::string, std::string>> modes{
      {"cls", "pooling_mode_cls_token"},
      {"max", "pooling_mode_max_tokens"},
      {"mean", "pooling_mode_mean_tokens"},
      {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
      {"weightedmean", "pooling_mode_weightedmean_tokens"},
      {"lasttoken", "pooling_mode_lasttoken"}};
  for (size_t i = 0; i < modes.size(); ++i) {
    const fs::path now = copy_of("modes"), once = copy_of("modes");
    write_file_atomically(now / "1_Pooling/config.json",
                          json{{"embedding_dimension", 14}, {"pooling_mode", modes[i].first}}.dump());
    json flags{{"word_embedding_dimension", 14}};
    for (const auto& [name, flag] : modes) flags[flag] = flag == modes[i].second;
    write_file_atomically(once / "1_Pooling/config.json", flags.dump());
    for (const fs::path& folder : {now, once})
      expect_near(vectors_of(folder), "modes", 6 * 14, static_cast<int64_t>(i) * 14);
  }
  // None of the flags means the mean, as in sentence-transformers.
  const fs::path none = copy_of("modes");
  write_file_atomically(none / "1_Pooling/config.json", R"({"word_embedding_dimension": 14})");
  EXPECT_THAT(load_sentence_model(none).poolings, ElementsAre(Pooling::kMean));
}

// As versions before 6 write it: other paths of classes, the limit and the lower case in sentence_bert_config.json,
// no folder for Normalize.
TEST_F(SentenceFolder, OlderVersionsSayTheSameInOtherPlaces) {
  const fs::path folder = copy_of("modes");
  edit(folder / "modules.json", [](json& modules) {
    modules[0]["type"] = "sentence_transformers.models.Transformer";
    modules[1]["type"] = "sentence_transformers.models.Pooling";
  });
  edit(folder / "tokenizer_config.json", [](json& config) { config["model_max_length"] = 7; });
  edit(folder / "tokenizer.json", [](json& tokenizer) {
    tokenizer["normalizer"] = nullptr;
    tokenizer["truncation"] = {
        {"max_length", 5}, {"strategy", "LongestFirst"}, {"stride", 0}, {"direction", "Right"}};
  });
  fs::rename(folder / "sentence_bert_config.json", folder / "sentence_roberta_config.json");
  write_file_atomically(folder / "sentence_roberta_config.json",
                        R"({"max_seq_length": 13, "do_lower_case": true})");
  expect_near(vectors_of(folder), "modes", 6 * 14);
  edit(folder / "modules.json", [](json& modules) {
    modules.push_back(
        {{"idx", 2}, {"path", "2_Normalize"}, {"type", "sentence_transformers.models.Normalize"}});
  });
  const Tensor rows = vectors_of(folder);
  for (int64_t i = 0; i < rows.rows(); ++i) EXPECT_NEAR(cosine(rows.view(), i, i), 1, 1e-6);
  double length = 0;
  for (int64_t j = 0; j < rows.cols(); ++j)
    length += static_cast<double>(rows(3, j)) * static_cast<double>(rows(3, j));
  EXPECT_NEAR(length, 1, 1e-6);
}

TEST_F(SentenceFolder, TheTransformerMayHaveAFolderOfItsOwn) {
  const fs::path folder = scratch / "outer";
  fs::create_directories(folder);
  fs::copy(test::kSentenceFolders / "modes", folder / "0_Transformer", fs::copy_options::recursive);
  for (const char* name : {"modules.json", "1_Pooling"})
    fs::rename(folder / "0_Transformer" / name, folder / name);
  edit(folder / "modules.json", [](json& modules) { modules[0]["path"] = "0_Transformer"; });
  expect_near(vectors_of(folder), "modes", 6 * 14);
}

TEST_F(SentenceFolder, LimitsAreTheSmallestOfThoseThatCount) {
  const fs::path folder = copy_of("plain");
  const auto limited = [&](const json& value) {
    edit(folder / "tokenizer_config.json", [&](json& config) { config["model_max_length"] = value; });
    return load_sentence_model(folder).longest;
  };
  EXPECT_EQ(load_sentence_model(folder).longest, 17);
  EXPECT_EQ(limited(1e30), 31);  // what transformers writes where there is no limit
  EXPECT_EQ(limited(1000), 31);
  EXPECT_EQ(limited(5), 5);
  EXPECT_EQ(limited(nullptr), 31);
  write_file_atomically(folder / "tokenizer_config.json",
                        R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_EQ(load_sentence_model(folder).longest, 31);
  write_file_atomically(folder / "sentence_bert_config.json", R"({"max_seq_length": 512})");
  const SentenceModel model = load_sentence_model(folder);
  EXPECT_EQ(model.longest, 31);
  EXPECT_THAT(model.remarks, ElementsAre(HasSubstr("max_seq_length is 512; the model reads 31 tokens"),
                                         HasSubstr("a vector is the mean of the states")));
}

TEST_F(SentenceFolder, APromptComesBeforeEveryText) {
  const fs::path folder = copy_of("dense");
  edit(folder / "config_sentence_transformers.json", [](json& config) {
    config["prompts"] = {{"query", "the cat "}};
    config["default_prompt_name"] = "query";
  });
  const SentenceModel with = load_sentence_model(folder),
                      without = load_sentence_model(test::kSentenceFolders / "dense");
  const Tensor a = embed_text(with, {"sees birds"}), b = embed_text(without, {"the cat sees birds"});
  for (int64_t j = 0; j < a.cols(); ++j) EXPECT_EQ(a(0, j), b(0, j));
}

TEST_F(SentenceFolder, DropoutChangesNothing) {
  const fs::path folder = copy_of("modes");
  edit(folder / "modules.json", [](json& modules) {
    modules.push_back({{"idx", 2}, {"path", "2_Dropout"}, {"type", "sentence_transformers.models.Dropout"}});
  });
  expect_near(vectors_of(folder), "modes", 6 * 14);
}

// What is wrong is one line that names the file and the place.
TEST_F(SentenceFolder, HostileFoldersAreRefused) {
  struct Case {
    const char* file;
    const char* part;
    std::function<void(json&)> change;
  };
  const auto type = [](size_t module, const char* name) {
    return [=](json& modules) { modules[module]["type"] = name; };
  };
  const auto path = [](size_t module, const char* name) {
    return [=](json& modules) { modules[module]["path"] = name; };
  };
  const auto set = [](const char* key, const json& value) {
    return [=](json& config) { config[key] = value; };
  };
  const std::vector<Case> cases{
      {"modules.json", "modules.json: expected an array", [](json& modules) { modules = json::object(); }},
      {"modules.json", "expected a Transformer and then a Pooling",
       [](json& modules) { modules = json::array(); }},
      {"modules.json", "expected a Transformer and then a Pooling", [](json& modules) { modules.erase(1); }},
      {"modules.json", "expected a Transformer and then a Pooling", [](json& modules) { modules.erase(0); }},
      {"modules.json", "[4]: a second Pooling", [](json& modules) { modules[4] = modules[1]; }},
      {"modules.json",
       "[2]: the module 'sentence_transformers.models.CNN' is not supported; only Transformer,",
       type(2, "sentence_transformers.models.CNN")},
      {"modules.json",  // in full: what it is stands at its end
       "'sentence_transformers.sentence_transformer.modules.weighted_layer_pooling.WeightedLayerPooling' is "
       "not",
       type(
           2,
           "sentence_transformers.sentence_transformer.modules.weighted_layer_pooling.WeightedLayerPooling")},
      {"modules.json", "[2]: the module 'os.path.Dense' is not supported", type(2, "os.path.Dense")},
      {"modules.json", "[1]: the module 'my_Pooling' is not supported", type(1, "my_Pooling")},
      {"modules.json", "[0].type: expected a string", [](json& modules) { modules[0]["type"] = 7; }},
      {"modules.json", "[0]: expected an object", [](json& modules) { modules[0] = "Transformer"; }},
      {"modules.json", "[0]: expected a member \"type\"", [](json& modules) { modules[0].erase("type"); }},
      {"modules.json", "[1].path: expected a string",
       [](json& modules) { modules[1]["path"] = json::array(); }},
      {"modules.json", "[1]: expected a folder in this one, got '../1_Pooling'", path(1, "../1_Pooling")},
      {"modules.json", "expected a folder in this one", path(1, "1_Pooling/../../elsewhere")},
      {"modules.json", "expected a folder in this one, got '/etc'", path(1, "/etc")},
      {"modules.json", "expected a folder in this one, got '/'", path(0, "/")},
      {"modules.json", "9_Nowhere/config.json", path(1, "9_Nowhere")},
      {"modules.json", "no model folder", path(0, "0_Nowhere")},
      {"1_Pooling/config.json",
       "embedding_dimension: expected 14, the numbers of a state of the model, got 768",
       set("embedding_dimension", 768)},
      {"1_Pooling/config.json", "embedding_dimension: expected a whole number",
       set("embedding_dimension", 1e300)},
      {"1_Pooling/config.json", "embedding_dimension: expected a whole number",
       set("embedding_dimension", -14)},
      {"1_Pooling/config.json", "embedding_dimension: expected a whole number",
       set("embedding_dimension", "14")},
      {"1_Pooling/config.json", "pooling_mode: expected one of cls, max, mean,",
       set("pooling_mode", "attention")},
      {"1_Pooling/config.json", "pooling_mode: expected a string", set("pooling_mode", 3)},
      {"1_Pooling/config.json", "pooling_mode[1]: expected a string", set("pooling_mode", {"mean", 3})},
      {"1_Pooling/config.json", "pooling_mode: expected 1 to 6 modes, got 0",
       set("pooling_mode", json::array())},
      {"1_Pooling/config.json", "pooling_mode: expected 1 to 6 modes, got 5000",
       set("pooling_mode", json(5000, "mean"))},
      {"1_Pooling/config.json", "include_prompt: expected true or false", set("include_prompt", "no")},
      {"1_Pooling/config.json", "expected an object", [](json& config) { config = json::array(); }},
      {"2_Dense/config.json", "in_features is 15, but the vectors before it have 14 numbers",
       set("in_features", 15)},
      {"2_Dense/config.json", "out_features: expected an integer from 1 to 1048576",
       set("out_features", int64_t{1} << 40)},
      {"2_Dense/config.json", "linear.weight has another shape", set("out_features", 1 << 20)},
      {"2_Dense/config.json", "out_features", [](json& config) { config.erase("out_features"); }},
      {"2_Dense/config.json", "'torch.nn.modules.activation.a_long_name_before.LogSigmoid' is not supported",
       set("activation_function", "torch.nn.modules.activation.a_long_name_before.LogSigmoid")},
      {"2_Dense/config.json", "activation_function 'os.Tanh' is not supported",
       set("activation_function", "os.Tanh")},
      {"2_Dense/config.json", "use_residual is not supported", set("use_residual", true)},
      {"2_Dense/config.json", "expected a layer of the sentence_embedding",
       set("module_input_name", "token_embeddings")},
      {"4_Dense/config.json", "no tensor linear.bias", set("bias", true)},
      {"4_Dense/config.json", "in_features is 14, but the vectors before it have 11", set("in_features", 14)},
      {"3_Normalize/config.json", "expected to normalise the sentence_embedding",
       set("module_input_name", "token_embeddings")},
      {"sentence_bert_config.json", "max_seq_length: expected at least 1 token", set("max_seq_length", 0)},
      {"sentence_bert_config.json", "max_seq_length: expected a whole number", set("max_seq_length", -256)},
      {"sentence_bert_config.json", "max_seq_length: expected a whole number", set("max_seq_length", 1e300)},
      {"sentence_bert_config.json", "max_seq_length: expected a whole number", set("max_seq_length", "256")},
      {"sentence_bert_config.json", "at most 2 tokens have no room beside 2 special tokens",
       set("max_seq_length", 2)},
      {"sentence_bert_config.json", "do_lower_case: expected true or false", set("do_lower_case", 1)},
      {"sentence_bert_config.json", "transformer_task is \"fill-mask\"; this is not supported",
       set("transformer_task", "fill-mask")},
      {"tokenizer_config.json", "model_max_length: expected a number of at least 1",
       set("model_max_length", 0)},
      {"tokenizer_config.json", "model_max_length: expected a number of at least 1",
       set("model_max_length", "many")},
      {"config_sentence_transformers.json", "there is no prompt 'passage'",
       set("default_prompt_name", "passage")},
      {"config_sentence_transformers.json", "default_prompt_name: expected a string",
       set("default_prompt_name", 1)},
      {"config_sentence_transformers.json", "prompts: expected an object of names and texts",
       set("prompts", {"query"})},
      {"config_sentence_transformers.json", "prompts: expected a text for 'query'",
       set("prompts", {{"query", 3}})},
      {"config_sentence_transformers.json", "truncate_dim: expected 1 to 9, the numbers of a vector, got 0",
       set("truncate_dim", 0)},
      {"config_sentence_transformers.json", "truncate_dim: expected 1 to 9, the numbers of a vector, got 10",
       set("truncate_dim", 10)},
      {"config_sentence_transformers.json", "truncate_dim: expected a whole number", set("truncate_dim", -3)},
      {"config_sentence_transformers.json", "truncate_dim: expected a whole number",
       set("truncate_dim", 2.5)},
      {"config_sentence_transformers.json", "truncate_dim: expected a whole number",
       set("truncate_dim", "5")},
      {"config_sentence_transformers.json", "truncate_dim: expected a whole number",
       set("truncate_dim", 1e300)},
  };
  for (const Case& tested : cases) {
    const fs::path folder = copy_of("dense");
    edit(folder / tested.file, tested.change);
    SCOPED_TRACE(tested.file);
    expect_refused(folder, tested.part);
  }
}

TEST_F(SentenceFolder, DamagedAndMissingFilesAreRefused) {
  for (const char* file :
       {"modules.json", "1_Pooling/config.json", "2_Dense/config.json", "3_Normalize/config.json",
        "2_Dense/model.safetensors", "sentence_bert_config.json", "tokenizer.json",
        "config_sentence_transformers.json"}) {
    for (const std::string& bytes : {std::string(), std::string("\xff\0{", 3), std::string(100'000, '['),
                                     std::string("{\"a\": 1, \"a\": 2}")}) {
      const fs::path folder = copy_of("dense");
      write_file_atomically(folder / file, bytes);
      expect_refused(folder, file);
    }
  }
  for (const char* file :
       {"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "tokenizer.json"}) {
    const fs::path folder = copy_of("dense");
    fs::remove(folder / file);
    expect_refused(folder, fs::path(file).filename().string());
  }
  const fs::path pickled = copy_of("dense");
  fs::rename(pickled / "2_Dense/model.safetensors", pickled / "2_Dense/pytorch_model.bin");
  expect_refused(pickled, "its weights are a pickle");
  const fs::path other = copy_of("dense");
  edit(other / "tokenizer.json", [](json& tokenizer) { tokenizer["model"]["vocab"]["whales"] = 22; });
  expect_refused(other, "it has 23 tokens, the model 22");
  edit(other / "tokenizer.json", [](json& tokenizer) {
    tokenizer["model"]["vocab"] = {{"[PAD]", 0}, {"[UNK]", 1}, {"two", 2}};
    tokenizer["added_tokens"] = json::array();
    tokenizer["post_processor"] = nullptr;
  });
  expect_refused(other,
                 "tokenizer.json does not match the model: it has 3 tokens, the model 22; it has no opening "
                 "token '[CLS]'; it has no closing token '[SEP]'; put the tokenizer there");
}

}  // namespace
}  // namespace mh
