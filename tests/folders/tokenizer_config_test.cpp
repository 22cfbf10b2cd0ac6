// What the files beside a tokenizer.json say is obeyed as AutoTokenizer of transformers 5 does. The cases and their answers are
// made by tests/oracles/tokenizer_config_goldens.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::filesystem::path kSaid = std::filesystem::path(goldens_folder()) / "tokenizer_config";

json tokenizer_document(const std::string& name) {
  static std::map<std::string, json> read;
  const auto [at, is_new] = read.try_emplace(name);
  if (is_new) at->second = json::parse(read_file(kSaid / (name + ".json")));
  return at->second;
}

FolderTokenizers tokenizers_of(const json& tokenizer, const json& files, const json& config) {
  MemoryFolder::Files all = {{"tokenizer.json", tokenizer.dump()}, {"config.json", config.dump()}};
  for (const auto& [file, content] : files.items()) all[file] = content.dump();
  return read_folder_tokenizers(MemoryFolder(std::move(all), "memory"));
}

/// With one tokenizer_config.json.
FolderTokenizers tokenizers_with(const std::string& tokenizer, const std::string& model_type,
                                 const json& said, const json& config = json::object()) {
  json all = config;
  all["model_type"] = model_type;
  return tokenizers_of(tokenizer_document(tokenizer), {{"tokenizer_config.json", said}}, all);
}

TEST(TokenizerConfig, GivesTheTokensOfTransformers) {
  const json document = json::parse(read_file(kSaid / "cases.json"));
  std::map<std::string, json> answers;
  int cases = 0;
  ModelFolder folder = load_model_folder(kSaid.parent_path() / "bert" / "encoder");  // for a reader of texts
  for (const json& one : document["cases"]) {
    const std::string name = one["name"];
    if (!one.contains("as")) answers[name] = one;
    const json& expected = answers.at(one.value("as", name));
    SCOPED_TRACE(name);
    ++cases;
    json tokenizer = tokenizer_document(one["tokenizer"]);
    tokenizer.merge_patch(one["patch"]);
    const FolderTokenizers found =
        tokenizers_of(tokenizer, one["files"], {{"model_type", one["model_type"]}});
    ASSERT_TRUE(found.source);
    const Tokenizer& read = *found.source;
    for (size_t i = 0; i < document["lines"].size(); ++i) {
      const std::string line = document["lines"][i];
      EXPECT_EQ(json(read.encode_ids(line)), expected["ids"][i]) << line;
    }
    EXPECT_EQ(read.decode_known(expected["ids"][3].get<std::vector<int32_t>>()), expected["decoded"][0]);
    EXPECT_EQ(read.decode_known(expected["ids"][5].get<std::vector<int32_t>>(), false),
              expected["decoded"][1]);
    const std::string first = document["pair"][0], second = document["pair"][1];
    if (!read.joins_pairs()) continue;
    const TokenPair pair = read.joined(read.encode_ids(first, false), read.encode_ids(second, false));
    EXPECT_EQ(json(pair.ids), expected["pair"]);
    EXPECT_EQ(read.gives_types(), !expected["types"].is_null());
    if (read.gives_types()) {
      EXPECT_EQ(json(pair.types), expected["types"]);
    }
    folder.tokenizer = read;
    EXPECT_EQ(json(TextReader(folder, 17).read(document["long_pair"][0], document["long_pair"][1]).ids),
              expected["cut_pair"]);
    EXPECT_EQ(json(TextReader(folder, 7).read(document["long"].get<std::string>()).ids), expected["cut"]);
  }
  EXPECT_GT(cases, 600);
}

// As the classes of 4.57 and 5 save them with their defaults; tests/oracles/saved_tokenizers.py makes them.
TEST(TokenizerConfig, SaysNoWordAboutWhatTransformersSavesByDefault) {
  for (const std::string version : {"4.57.6", "5.24.0"}) {
    const json saved = json::parse(read_file(kSaid / ("saved_" + version + ".json")));
    EXPECT_EQ(saved.size(), 13u);
    for (const auto& [model_type, one] : saved.items()) {
      SCOPED_TRACE(version + " " + model_type);
      json files = one["files"];
      const json tokenizer = files["tokenizer.json"];
      files.erase("tokenizer.json");
      const FolderTokenizers found = tokenizers_of(tokenizer, files, {{"model_type", model_type}});
      EXPECT_THAT(found.remarks, IsEmpty());
      EXPECT_EQ(json(found.source->encode_ids(one["line"].get<std::string>())), one["ids"]);
      EXPECT_EQ(found.source->size(), one["size"]);
    }
  }
}

TEST(TokenizerConfig, OtherKeysAreNamedOnce) {
  const json names = {{"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}};
  const auto remarks = [&](const json& said) {
    json all = names;
    all.update(said);
    return tokenizers_with("word_piece", "bert", all).remarks;
  };
  EXPECT_THAT(remarks({{"x_y", 3}}),
              ElementsAre("memory, tokenizer_config.json: x_y is not known here and was not used"));
  EXPECT_THAT(
      remarks({{"x_y", 3}, {"max_len", 5}, {"nothing", nullptr}}),
      ElementsAre("memory, tokenizer_config.json: max_len and x_y are not known here and were not used"));
  EXPECT_THAT(remarks({{"name_or_path", "x"}, {"padding_side", "left"}, {"never_split", json::array()}}),
              IsEmpty());
  EXPECT_THAT(tokenizers_of(tokenizer_document("word_piece"), {{"special_tokens_map.json", {{"tokens", 1}}}},
                            {{"model_type", "bert"}})
                  .remarks,
              ElementsAre(HasSubstr("special_tokens_map.json: tokens is not known here")));
}

TEST(TokenizerConfig, SaysWhatIsNotUsed) {
  // Steps of the file that the class replaces.
  EXPECT_THAT(
      tokenizers_with("unigram", "xlm-roberta", {{"bos_token", "<s>"}}).remarks,
      ElementsAre(AllOf(HasSubstr("memory, tokenizer.json: normalizer is not used: XLMRobertaTokenizer"),
                        HasSubstr("PreTrainedTokenizerFast"))));
  EXPECT_THAT(tokenizers_with("word_piece_cased", "bert", json::object()).remarks,
              ElementsAre(HasSubstr("normalizer is not used: BertTokenizer")));
  // What is asked for in so many words is no news.
  EXPECT_THAT(tokenizers_with("word_piece", "bert", {{"do_lower_case", false}}).remarks, IsEmpty());
  EXPECT_THAT(tokenizers_with("word_piece_cased", "bert", {{"do_lower_case", false}}).remarks, IsEmpty());
  EXPECT_THAT(tokenizers_with("byte_level", "roberta", {{"add_prefix_space", true}}).remarks, IsEmpty());
  EXPECT_THAT(tokenizers_with("digits", "llama", {{"tokenizer_class", "GPT2Tokenizer"}}).remarks, IsEmpty())
      << "merges keep digits apart as the step does";
  // Arguments that the class does not take, and that contradict the file.
  EXPECT_THAT(tokenizers_with("word_piece", "bert",
                              {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", false}})
                  .remarks,
              ElementsAre(HasSubstr("do_lower_case (false) is not obeyed")));
  EXPECT_THAT(tokenizers_with("word_piece", "bert",
                              {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", true}})
                  .remarks,
              IsEmpty());
  EXPECT_THAT(
      tokenizers_with(
          "llama", "llama",
          {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_bos_token", false}, {"add_eos_token", true}})
          .remarks,
      ElementsAre(HasSubstr("add_bos_token (false), add_eos_token (true) are not obeyed")));
  EXPECT_THAT(
      tokenizers_with(
          "llama", "llama",
          {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_bos_token", true}, {"add_eos_token", false}})
          .remarks,
      IsEmpty());
  // Classes.
  EXPECT_THAT(tokenizers_with("word_piece", "bert", {{"tokenizer_class", "ReformerTokenizer"}}).remarks,
              ElementsAre(HasSubstr("tokenizer_class ReformerTokenizer is not known here")));
  EXPECT_THAT(
      tokenizers_with("byte_level", "bert", json::object()).remarks,
      ElementsAre(HasSubstr("BertTokenizer, which transformers 5 opens it with, is for models of another")));
}

TEST(TokenizerConfig, TokensWithoutARowInTheModelAreNotLookedFor) {
  const json said = {{"additional_special_tokens", {"<ent>", "<b>"}}};
  const std::string line = "the <ent> dog <b>";
  const auto with_rows = [&](int rows) {
    return tokenizers_with("word_piece", "bert", said, {{"vocab_size", rows}});
  };
  const int32_t size = Tokenizer::from_json(read_file(kSaid / "word_piece.json"), "file").size();
  const auto both = with_rows(size + 2), one = with_rows(size + 1), none = with_rows(size);
  EXPECT_EQ(both.source->size(), size + 2);
  EXPECT_THAT(both.remarks, IsEmpty());
  EXPECT_EQ(one.source->size(), size + 1);
  EXPECT_EQ(one.source->id_of("<ent>"), size);
  EXPECT_THAT(one.remarks,
              ElementsAre("memory, tokenizer_config.json: the model, of " + std::to_string(size + 1) +
                          " tokens, has none for '<b>', which is not looked for in texts"));
  EXPECT_EQ(none.source->size(), size);
  EXPECT_THAT(none.remarks, ElementsAre(HasSubstr("none for '<ent>', '<b>', which are not looked for")));
  EXPECT_EQ(none.source->encode_ids(line),
            Tokenizer::from_json(read_file(kSaid / "word_piece.json"), "file").encode_ids(line));
}

/// Gemma 3's token for an image is the 262,145th beside a model of 262,144.
TEST(TokenizerConfig, AnAddedTokenOfTheFileWithoutARowIsLeftOut) {
  json tokenizer = tokenizer_document("gemma");
  json& vocabulary = tokenizer["model"]["vocab"];
  for (int32_t id = static_cast<int32_t>(vocabulary.size()); id < 1000; ++id)
    vocabulary["<unused" + std::to_string(id) + ">"] = id;
  const Tokenizer without = Tokenizer::from_json(tokenizer.dump(), "without");
  tokenizer["added_tokens"].push_back({{"id", 1000}, {"content", "<image>"}, {"special", true}});
  const auto with_rows = [&](int rows) {
    return tokenizers_of(tokenizer, json::object(), {{"model_type", "gemma3_text"}, {"vocab_size", rows}});
  };
  EXPECT_THAT(with_rows(1001).remarks, IsEmpty());
  EXPECT_EQ(with_rows(1001).source->id_of("<image>"), 1000);
  const auto fewer = with_rows(1000);
  EXPECT_EQ(fewer.source->size(), 1000);
  EXPECT_THAT(fewer.remarks, ElementsAre("memory, tokenizer.json: the model, of 1000 tokens, has none for "
                                         "'<image>', which is not looked for in texts"));
  EXPECT_EQ(fewer.source->encode_ids("an <image> b"), without.encode_ids("an <image> b"));
  EXPECT_EQ(with_rows(900).source->size(), 1001) << "of another model";
}

TEST(TokenizerConfig, TokensOfFilesThatDoNotCountAreNamed) {
  const json decoder = {{"added_tokens_decoder", {{"199", {{"content", "<b>"}, {"special", true}}}}}};
  const auto found =
      tokenizers_of(tokenizer_document("word_piece"),
                    {{"tokenizer_config.json", decoder},
                     {"special_tokens_map.json", {{"additional_special_tokens", {"<ent>", "<b>"}}}},
                     {"added_tokens.json", {{"<b>", 199}, {"<z>", 200}}}},
                    {{"model_type", "bert"}});
  EXPECT_THAT(
      found.remarks,
      ElementsAre("memory, special_tokens_map.json: '<ent>' is not used, since tokenizer_config.json has "
                  "added_tokens_decoder, which lists all added tokens",
                  HasSubstr("added_tokens.json: '<z>' is not used")));
}

// target_tokenizer.json is read as it is written: transformers has no such file, and opens it alone.
TEST(TokenizerConfig, IsOfTheSourceWhereTheTargetHasATokenizerOfItsOwn) {
  const json document = tokenizer_document("word_piece");
  const auto remarks = [&](const json& said) {
    json all = said;
    all.emplace("tokenizer_class", "PreTrainedTokenizerFast");
    return tokenizers_of(document, {{"tokenizer_config.json", all}, {"target_tokenizer.json", document}},
                         {{"model_type", "marian"}})
        .remarks;
  };
  EXPECT_THAT(remarks({{"truncation_side", "right"}, {"clean_up_tokenization_spaces", false}}), IsEmpty());
  EXPECT_THAT(
      remarks({{"truncation_side", "left"}}),
      ElementsAre("memory, target_tokenizer.json is read as it is written: truncation_side of the files "
                  "beside it is not used"));
  EXPECT_THAT(remarks({{"clean_up_tokenization_spaces", true},
                       {"split_special_tokens", true},
                       {"additional_special_tokens", json::array({"<ent>"})}}),
              testing::Contains(HasSubstr("written: clean_up_tokenization_spaces, split_special_tokens, "
                                          "'<ent>' of the files beside it are not used")));
  EXPECT_THAT(
      remarks({{"tokenizer_class", "BertTokenizer"}}),
      testing::Contains(HasSubstr("target_tokenizer.json is read as it is written: tokenizer_class")));
}

TEST(TokenizerConfig, NamesTheTokensOfAChatTemplate) {
  EXPECT_EQ(read_named_tokens(R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
                                  "pad_token": null, "unk_token": {"id": 3}, "tokens": "x"})",
                              "said"),
            (std::map<std::string, std::string>{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  EXPECT_THROW(read_named_tokens("[]", "said"), FormatError);
}

TEST(TokenizerConfig, RefusesWhatIsNoSetting) {
  const auto refused = [](const json& said, const std::string& words) {
    try {
      tokenizers_with("word_piece", "bert", said);
      ADD_FAILURE() << said;
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("memory, tokenizer_config.json: "), HasSubstr(words)));
    }
  };
  refused({{"do_lower_case", "yes"}}, "do_lower_case: expected true or false");
  refused({{"truncation_side", "top"}}, "truncation_side: expected one of left, right, got 'top'");
  refused({{"added_tokens_decoder", {{"-3", {{"content", "<b>"}}}}}}, "expected ids from 0 on, got '-3'");
  refused({{"added_tokens_decoder", {{"3", "<b>"}}}},
          "added_tokens_decoder.3: expected a token as an object");
  refused({{"additional_special_tokens", {"<b>", ""}}},
          "additional_special_tokens[1]: expected a token's text");
  refused({{"cls_token", 3}}, "cls_token: expected a token's text");
  refused({{"model_input_names", "input_ids"}}, "model_input_names: expected an array");
}

}  // namespace
}  // namespace mh
