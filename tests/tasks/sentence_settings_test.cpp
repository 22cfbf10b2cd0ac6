// What the settings of sentence-transformers say about vectors and texts: truncate_dim, modality_config, include_prompt.
#include "tests/tasks/sentence_folder_case.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using SentenceSettings = test::SentenceFolder;

// The first numbers of the vectors, after the division by their length, which is not done again.
TEST_F(SentenceSettings, TruncateDimKeepsTheFirstNumbers) {
  const auto truncated = [&](const fs::path& folder, const json& value) {
    edit(folder / "config_sentence_transformers.json", [&](json& config) { config["truncate_dim"] = value; });
    return load_sentence_model(folder);
  };
  const fs::path modes = copy_of("modes"), dense = copy_of("dense"), unit = copy_of("dense");
  EXPECT_EQ(truncated(modes, 31).dimension, 31);
  expect_near(vectors_of(modes), "modes", 6 * 14);
  EXPECT_EQ(truncated(dense, 9).dimension, 9);
  expect_near(vectors_of(dense), "dense", 9);
  EXPECT_EQ(truncated(dense, 1).dimension, 1);
  expect_near(vectors_of(dense), "dense", 9);
  EXPECT_EQ(truncated(dense, nullptr).dimension, 9);

  edit(unit / "modules.json", [](json& modules) { modules.erase(4); });  // ends with Normalize
  const Tensor whole = vectors_of(unit);
  ASSERT_EQ(whole.cols(), 11);
  truncated(unit, 5);
  const Tensor cut = vectors_of(unit);
  ASSERT_EQ(cut.cols(), 5);
  double length = 0;
  for (int64_t i = 0; i < cut.rows(); ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(cut(i, j), whole(i, j));
  }
  for (int64_t j = 0; j < 5; ++j) length += static_cast<double>(cut(0, j)) * static_cast<double>(cut(0, j));
  EXPECT_LT(length, 0.9);
}

// sentence-transformers 6 puts every text into the chat template of such a model; "text" alone is the bare text.
TEST_F(SentenceSettings, TextsAsChatMessagesAreRefused) {
  const fs::path folder = copy_of("dense");
  const json forward{{"method", "forward"}, {"method_output_name", "last_hidden_state"}};
  const auto modalities = [&](const json& value) {
    edit(folder / "sentence_bert_config.json", [&](json& config) { config["modality_config"] = value; });
  };
  modalities({{"text", forward}, {"message", forward}});
  expect_refused(folder,
                 "sentence_bert_config.json: modality_config.message: sentence-transformers puts every text "
                 "into the chat template of the model");
  modalities(json::array());
  expect_refused(folder, "modality_config: expected an object");
  for (const json& value : {json{{"text", forward}}, json{{"text", forward}, {"message", nullptr}}, json()}) {
    modalities(value);
    expect_near(vectors_of(folder), "dense", 9);
  }
}

TEST_F(SentenceSettings, APromptMayBeLeftOutOfThePooling) {
  const fs::path folder = copy_of("modes");
  const auto with = [&](const char* prompt, const json& name) {
    edit(folder / "config_sentence_transformers.json", [&](json& config) {
      config["prompts"]["query"] = prompt;
      config["default_prompt_name"] = name;
    });
    return load_sentence_model(folder);
  };
  edit(folder / "1_Pooling/config.json", [](json& config) { config["include_prompt"] = false; });
  EXPECT_EQ(with("The cat ", "query").unpooled, 3);  // [CLS] the cat
  expect_near(vectors_of(folder), "modes behind a prompt", 6 * 14);
  EXPECT_EQ(with("the cat sees small birds and two dogs run in the garden", "query").unpooled, 12)
      << "one less than the model reads";
  for (const char* prompt : {"", "The cat "}) {
    EXPECT_EQ(with(prompt, *prompt == 0 ? json("query") : json()).unpooled, 0);
    expect_near(vectors_of(folder), "modes", 6 * 14);
  }
}

TEST_F(SentenceSettings, TheSideOfTruncationSaysWhichEndALongTextLoses) {
  const fs::path folder = copy_of("dense");
  edit(folder / "tokenizer_config.json", [](json& config) { config["truncation_side"] = "left"; });
  std::string cats = "cat";
  for (int i = 1; i < 27; ++i) cats += " cat";  // with [CLS] and [SEP] the 29 tokens that it reads
  std::vector<std::string> remarks;
  const Tensor rows = embed_text(load_sentence_model(folder), {"dogs run " + cats, cats},
                                 {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  for (int64_t j = 0; j < rows.cols(); ++j) EXPECT_EQ(rows(0, j), rows(1, j));
  EXPECT_THAT(remarks, testing::ElementsAre(testing::HasSubstr("at its start; text 1 has 31 tokens")));
}

class SentenceKeys : public test::SentenceFolder {
 protected:
  /// What loading says when a file has this member more; "" when it says nothing.
  std::string said(const std::string& name, const json& member) {
    const fs::path folder = copy_of("dense");
    edit(folder / name, [&](json& config) { (config.is_array() ? config[1] : config).merge_patch(member); });
    try {
      const SentenceModel model = load_sentence_model(folder);
      return model.remarks.empty() ? "" : model.remarks.back();
    } catch (const Error& error) {
      return std::string("refused: ") + error.what();
    }
  }
  std::string said_of_transformer(const json& member) { return said("sentence_bert_config.json", member); }
};

TEST_F(SentenceKeys, WhatTransformersIsGivenIsRefusedByNameOrChangesNothing) {
  const auto refused = [](const char* key) {
    return testing::AllOf(testing::StartsWith("refused: "), testing::HasSubstr(std::string(key) + " is "),
                          testing::HasSubstr("this is not supported"));
  };
  EXPECT_THAT(said_of_transformer({{"transformer_task", "fill-mask"}}), refused("transformer_task"));
  EXPECT_THAT(said_of_transformer({{"module_output_name", "sentence_embedding"}}),
              refused("module_output_name"));
  EXPECT_THAT(
      said_of_transformer({{"modality_config", {{"text", {{"method_output_name", "pooler_output"}}}}}}),
      refused("modality_config.text.method_output_name"));
  EXPECT_THAT(said_of_transformer({{"modality_config", {{"text", {{"method", "get_text_features"}}}}}}),
              refused("modality_config.text.method"));
  EXPECT_THAT(said_of_transformer({{"processing_kwargs", {{"text", {{"add_special_tokens", false}}}}}}),
              refused("processing_kwargs.text.add_special_tokens"));
  EXPECT_THAT(said_of_transformer({{"processing_kwargs", {{"text", {{"truncation", false}}}}}}),
              refused("processing_kwargs.text.truncation"));
  EXPECT_THAT(said_of_transformer({{"processing_kwargs", {{"common", {{"max_length", 5}}}}}}),
              refused("processing_kwargs.common.max_length"));
  EXPECT_THAT(said_of_transformer({{"tokenizer_name_or_path", "other"}}), refused("tokenizer_name_or_path"));
  for (const std::string part : {"processor_kwargs", "tokenizer_args"}) {
    EXPECT_THAT(said_of_transformer({{part, {{"do_lower_case", false}}}}),
                refused((part + ".do_lower_case").c_str()));
    EXPECT_THAT(said_of_transformer({{part, {{"truncation_side", "left"}}}}),
                refused((part + ".truncation_side").c_str()));
    EXPECT_EQ(said_of_transformer({{part, {{"use_fast", true}, {"truncation_side", "right"}}}}), "");
  }
  for (const std::string part : {"config_kwargs", "config_args"}) {
    EXPECT_THAT(said_of_transformer({{part, {{"num_hidden_layers", 1}}}}),
                refused((part + ".num_hidden_layers").c_str()));
    EXPECT_EQ(said_of_transformer({{part, json::object()}}), "");
  }
  for (const std::string part : {"model_kwargs", "model_args"}) {
    EXPECT_THAT(said_of_transformer({{part, {{"subfolder", "x"}}}}), refused((part + ".subfolder").c_str()));
    EXPECT_THAT(said_of_transformer({{part, {{"torch_dtype", "float16"}}}}),
                testing::HasSubstr(".torch_dtype is not known"));
    EXPECT_EQ(said_of_transformer({{part, {{"attn_implementation", "eager"}, {"torch_dtype", "float32"}}}}),
              "");
  }
  EXPECT_EQ(said_of_transformer(
                {{"processing_kwargs", {{"text", {{"padding", "max_length"}}}, {"image", {{"size", 3}}}}},
                 {"modality_config", {{"image", {{"method", "get_image_features"}}}}},
                 {"unpad_inputs", true},
                 {"query_length", nullptr}}),
            "");
}

TEST_F(SentenceKeys, KeysThatAreNotKnownAreNamedInARemark) {
  EXPECT_THAT(
      said_of_transformer({{"query_length", 7}}),
      testing::HasSubstr("sentence_bert_config.json: query_length is not known here and was not used"));
  EXPECT_THAT(said("1_Pooling/config.json", {{"pooling_mode_median", true}}),
              testing::HasSubstr("1_Pooling/config.json: pooling_mode_median is not known here"));
  EXPECT_THAT(said("2_Dense/config.json", {{"dropout", 0.5}}),
              testing::HasSubstr("config.json: dropout is not known"));
  EXPECT_THAT(said("3_Normalize/config.json", {{"p", 1}}), testing::HasSubstr("config.json: p is not known"));
  EXPECT_THAT(said("modules.json", {{"trust", 1}}), testing::HasSubstr("modules.json: trust is not known"));
  EXPECT_EQ(said("modules.json", {{"kwargs", {"task"}}}), "");
  const char* const settings = "config_sentence_transformers.json";
  EXPECT_THAT(said(settings, {{"postprocess", 1}}), testing::HasSubstr("postprocess is not known here"));
  EXPECT_THAT(said(settings, {{"model_type", "SparseEncoder"}}),
              testing::HasSubstr("model_type is \"SparseEncoder\"; expected a SentenceTransformer"));
  EXPECT_EQ(said(settings, {{"requirements", {"sentence-transformers"}}}), "");
}

// Their numbers are those of max_seq_length, which sentence_folder_test.cpp compares with sentence-transformers.
TEST_F(SentenceKeys, EachLengthIsObeyedInItsOrder) {
  const auto longest = [&](const json& settings) {
    const fs::path folder = copy_of("dense");
    edit(folder / "sentence_bert_config.json", [&](json& config) { config.merge_patch(settings); });
    return load_sentence_model(folder).longest;
  };
  const json of_text{{"processing_kwargs", {{"text", {{"max_length", 5}}}}}};
  json all = of_text;
  all["processor_kwargs"] = {{"model_max_length", 6}};
  all["tokenizer_args"] = {{"model_max_length", 7}};
  all["max_seq_length"] = 8;
  EXPECT_EQ(longest(all), 5);
  all.erase("processing_kwargs");
  EXPECT_EQ(longest(all), 6);
  all.erase("processor_kwargs");
  EXPECT_EQ(longest(all), 7);
  all.erase("tokenizer_args");
  EXPECT_EQ(longest(all), 8);
  EXPECT_EQ(longest(of_text), 5);
  EXPECT_EQ(longest(json::object()), 29);
}

TEST_F(SentenceKeys, SimilarityAndPromptsAreRead) {
  const fs::path folder = copy_of("dense");
  const auto with = [&](const json& settings) {
    edit(folder / "config_sentence_transformers.json", [&](json& config) { config.merge_patch(settings); });
    return load_sentence_model(folder);
  };
  EXPECT_EQ(load_sentence_model(folder).similarity, Similarity::kCosine);
  for (const auto& [name, similarity] : kSimilarityNames)
    EXPECT_EQ(with({{"similarity_fn_name", name}}).similarity, similarity) << name;
  EXPECT_EQ(with({{"similarity_fn_name", nullptr}}).similarity, Similarity::kCosine);
  const auto prompts = [&](const json& settings) {
    const SentenceModel model = with(settings);
    std::string all = model.prompt + "|";
    for (const SentencePrompt& prompt : model.prompts) all += prompt.name + "=" + prompt.text + ";";
    return all;
  };
  EXPECT_EQ(prompts({{"prompts", {{"query", "query: "}, {"document", ""}}}}), "|document=;query=query: ;");
  EXPECT_EQ(prompts({{"prompts", {{"document", "passage: "}}}, {"default_prompt_name", "query"}}),
            "query: |document=passage: ;query=query: ;");
  edit(folder / "config_sentence_transformers.json",
       [](json& config) { config["prompts"]["query"] = nullptr; });
  EXPECT_EQ(prompts(json::object()), "|document=passage: ;query=;");
  EXPECT_THROW(with({{"similarity_fn_name", "maxsim"}}), FormatError);
  expect_refused(folder,
                 "similarity_fn_name: expected one of cosine, dot, euclidean, manhattan, got 'maxsim'");
}

}  // namespace
}  // namespace mh
