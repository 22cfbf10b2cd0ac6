// Folders of BERT, RoBERTa, XLM-RoBERTa, DistilBERT, ELECTRA, MPNet, DeBERTa, ModernBERT and Nomic BERT that transformers wrote, and what it computed with them in double
// precision on a padded batch. tests/oracles/bert_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/parameters.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/folders/families/golden_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Kind {
  const char* family;
  const char* name;
  bool pooler, words;
  const char* model_type = family;
};

class BertGoldens : public testing::TestWithParam<Kind> {
 protected:
  test::GoldenModel golden{GetParam().family, GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
  const EncoderModel& model = dynamic_cast<const EncoderModel&>(*folder.model);
  const Batch batch{golden.sequences};
  std::vector<int32_t> types() const {
    const auto found = golden.file.integers("types");
    return {found.begin(), found.end()};
  }
  Sequences with(std::span<const int32_t> types) const {
    Sequences tokens = batch.view();
    tokens.types = types;
    return tokens;
  }
};

TEST_P(BertGoldens, StatesPooledStatesAndWordsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, GetParam().model_type);
  Tape tape;
  Context context{.tape = tape};
  const std::vector<int32_t> given = types();
  const Var states = model.states(context, with(given));
  golden.expect_near(states.value(), "states");
  if (GetParam().pooler) {
    const Tensor pooled = copied(model.pooled(context, states, batch.view()).value());
    golden.expect_near(pooled.view(), "pooled");
  } else {
    EXPECT_THAT([&] { model.pooled(context, states, batch.view()); },
                ThrowsMessage<UsageError>(HasSubstr("no pooler")));
  }
  if (GetParam().words) {
    const Var before = model.word_states(context, states);
    Tensor logits(before.rows(), model.vocabulary().size());
    model.vocabulary().logits(before.value(), logits.view());
    golden.expect_near(logits.view(), "logits");
  } else {
    EXPECT_THAT([&] { model.vocabulary(); },
                ThrowsMessage<UsageError>(HasSubstr("no head for masked words")));
  }
}

TEST_P(BertGoldens, KindsOfTokenAreThoseThereAre) {
  Tape tape;
  Context context{.tape = tape};
  std::vector<int32_t> wrong = types();
  wrong.back() = 7;
  if (model.config().embedding.token_types == 0) {  // DistilBERT
    EXPECT_THAT([&] { model.states(context, with(wrong)); },
                ThrowsMessage<UsageError>("token type 7: this model has no token types"));
  } else {
    EXPECT_THAT([&] { model.states(context, with(wrong)); },
                ThrowsMessage<UsageError>(HasSubstr("token type 7 is outside")));
    wrong.pop_back();
    EXPECT_THAT([&] { model.states(context, with(wrong)); },
                ThrowsMessage<UsageError>(HasSubstr("give one each")));
  }
  // None given means kind 0.
  const std::vector<int32_t> zeros(batch.ids.size(), 0);
  const ConstMatrixView a = model.states(context, batch.view()).value(),
                        b = model.states(context, with(zeros)).value();
  for (int64_t i = 0; i < a.rows; ++i) EXPECT_EQ(a(i, 0), b(i, 0));
}

TEST_P(BertGoldens, ItPredictsNoNextToken) {
  EXPECT_THAT([&] { folder.language_model(); },
              ThrowsMessage<UsageError>(HasSubstr("model, which predicts no next token")));
  EXPECT_EQ(model.attentions().front().name, "encoder.0.self_attention");
}

// The longest sequence of RoBERTa leaves out the rows up to that of the padding token, whatever its number.
TEST(BertPositions, BeginBehindThePaddingId) {
  const ModelFolder folder = load_model_folder(test::GoldenModel("roberta", "encoder").folder);
  EXPECT_EQ(folder.model->facts().max_positions, 45 - 4);
  const auto& model = dynamic_cast<const EncoderModel&>(*folder.model);
  EXPECT_EQ(model.config().position_offset, 4);
  Tape tape;
  Context context{.tape = tape};
  const Batch long_one(std::vector<std::vector<int32_t>>{std::vector<int32_t>(42, 5)});
  EXPECT_THROW(model.states(context, long_one.view()), Error);
}

TEST(BertNames, PrefixesMayBeThereOrNot) {
  for (const auto& [family, name, prefix] : {std::tuple{"roberta", "masked", "roberta."},
                                             {"roberta", "encoder", "roberta."},
                                             {"distilbert", "masked", "distilbert."},
                                             {"distilbert", "encoder", "distilbert."},
                                             {"electra", "masked", "electra."},
                                             {"electra", "encoder", "electra."},
                                             {"mpnet", "encoder", "mpnet."},
                                             {"modernbert", "encoder", "model."},
                                             {"nomic_bert", "masked", "nomic_bert."},
                                             {"nomic_bert", "encoder", "nomic_bert."},
                                             {"bert", "pretraining", "bert."}}) {
    const test::GoldenModel golden(family, name);
    const SafetensorsFile file = SafetensorsFile::open(golden.folder / "model.safetensors");
    std::vector<std::vector<float>> numbers;
    for (const TensorEntry& entry : file.entries()) numbers.push_back(file.floats(entry.name));
    std::vector<NamedTensor> tensors;
    bool took = false, gave = false;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const TensorEntry& entry = file.entries()[i];
      const std::string_view there = entry.name;
      const bool has = there.starts_with(prefix),
                 head = there.starts_with("lm_head") || there.starts_with("vocab_") ||
                        there.starts_with("generator_") || there.starts_with("cls.");
      took = took || has, gave = gave || (!has && !head);
      tensors.push_back({.name = has ? std::string(there.substr(std::string_view(prefix).size()))
                                     : (head ? "" : prefix) + entry.name,
                         .shape = entry.shape,
                         .data = std::span<const float>(numbers[i])});
    }
    EXPECT_NE(took, gave) << family << " " << name;
    const TensorFiles files(SafetensorsFile::from_bytes(write_safetensors(tensors, {}), "other"), "other");
    const auto model =
        read_parameters(files, read_plan(read_file(golden.folder / "config.json"), "config.json"));
    Tape tape;
    Context context{.tape = tape};
    const auto types = golden.file.integers("types");
    Batch batch(golden.sequences);
    batch.types.assign(types.begin(), types.end());
    const auto& encoder = dynamic_cast<const EncoderModel&>(*model);
    golden.expect_near(encoder.states(context, batch.view()).value(), "states");
  }
}

TEST(BertNames, GammaAndBetaOfOldFilesAreRead) {
  const test::GoldenModel golden("bert", "encoder");
  const SafetensorsFile file = SafetensorsFile::open(golden.folder / "model.safetensors");
  std::vector<std::vector<float>> numbers;
  std::vector<NamedTensor> tensors;
  for (const TensorEntry& entry : file.entries()) numbers.push_back(file.floats(entry.name));
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::string name = "bert." + file.entries()[i].name;
    for (const auto& [now, once] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
      const std::string_view ending = now;
      if (name.ends_with(ending)) name = name.substr(0, name.size() - ending.size()) + once;
    }
    tensors.push_back(
        {.name = name, .shape = file.entries()[i].shape, .data = std::span<const float>(numbers[i])});
  }
  const TensorFiles files(SafetensorsFile::from_bytes(write_safetensors(tensors, {}), "old"), "old");
  const auto model =
      read_parameters(files, read_plan(read_file(golden.folder / "config.json"), "config.json"));
  Tape tape;
  Context context{.tape = tape};
  Batch batch(golden.sequences);
  const auto types = golden.file.integers("types");
  batch.types.assign(types.begin(), types.end());
  golden.expect_near(dynamic_cast<const EncoderModel&>(*model).states(context, batch.view()).value(),
                     "states");
}

TEST(BertHeads, ThatAreNotDoneHereAreNamed) {
  EXPECT_THAT(load_model_folder(test::GoldenModel("distilbert", "answers").folder).remark(),
              HasSubstr("qa_outputs.bias, qa_outputs.weight are not read; "));
  EXPECT_EQ(load_model_folder(test::GoldenModel("bert", "pretraining").folder).remark(), "");
}

// Errors speak of the file's own fields.
TEST(BertConfigurations, WhatCannotBeIsNamedAsInTheFile) {
  const std::string good = read_file(test::GoldenModel("bert", "encoder").folder / "config.json");
  const auto with = [&](const char* key, int64_t value) {
    auto document = nlohmann::json::parse(good);
    document[key] = value;
    return [text = document.dump()] { read_plan(text, "config.json"); };
  };
  const auto vocabulary = nlohmann::json::parse(good)["vocab_size"].get<int64_t>();
  EXPECT_THAT(
      with("num_attention_heads", 17),
      ThrowsMessage<FormatError>(HasSubstr("num_attention_heads is 17; expected a divisor of hidden_size")));
  EXPECT_THAT(with("pad_token_id", vocabulary), ThrowsMessage<FormatError>(HasSubstr("pad_token_id is ")));
  EXPECT_THAT(with("vocab_size", -1),
              ThrowsMessage<FormatError>(HasSubstr("vocab_size: expected an integer from 2")));
  EXPECT_THAT(with("pad_token_id", int64_t{1} << 31),
              ThrowsMessage<FormatError>(HasSubstr("pad_token_id: expected an integer from -1 to 16777215")));
}

TEST(BertConfigurations, OfItsRelativesToo) {
  const auto refuses = [](const char* family, const char* key, const nlohmann::json& value,
                          const char* part) {
    const auto folder = test::GoldenModel(family, "encoder").folder;
    auto document = nlohmann::json::parse(read_file(folder / "config.json"));
    document[key] = value;
    EXPECT_THAT([&] { read_plan(document.dump(), "config.json"); },
                ThrowsMessage<FormatError>(HasSubstr(std::string("config.json: ") + part)))
        << key;
  };
  refuses("roberta", "pad_token_id", 43, "pad_token_id is 43; expected 0 ... 42");
  refuses("roberta", "max_position_embeddings", 4, "max_position_embeddings is 4; expected more than");
  refuses("roberta", "num_attention_heads", 4,
          "num_attention_heads is 4; expected a divisor of hidden_size 21");
  refuses("roberta", "position_embedding_type", "relative_key",
          "position_embedding_type is \"relative_key\"");
  refuses("roberta", "is_decoder", true, "is_decoder is true");
  refuses("distilbert", "n_heads", 3, "n_heads is 3; expected a divisor of dim 20");
  refuses("distilbert", "n_layers", 1 << 30, "n_layers: expected an integer from 1 to 1024");
  refuses("distilbert", "activation", "mish", "activation: expected");
  refuses("distilbert", "dim", 20.5, "dim: expected an integer");
  refuses("electra", "num_attention_heads", 3,
          "num_attention_heads is 3; expected a divisor of hidden_size 20");
  refuses("electra", "embedding_size", 0, "embedding_size: expected an integer from 1");
  refuses("mpnet", "relative_attention_num_buckets", 16, "relative_attention_num_buckets is 16; expected 32");
  refuses("mpnet", "max_position_embeddings", 2,
          "max_position_embeddings is 2; expected more than the 2 rows");
  refuses("modernbert", "decoder_bias", false, "decoder_bias is false; expected a bias");
  refuses("modernbert", "layer_types", {"full_attention"},
          "layer_types has 1 entries; expected one for each layer, num_hidden_layers is 2");
  refuses("modernbert", "layer_types", {"full_attention", "chunked_attention"},
          "layer_types names \"chunked_attention\"; expected \"full_attention\" or \"sliding_attention\"");
  refuses("modernbert", "local_attention", 0, "local_attention: expected an integer from 2");
  refuses("modernbert", "rope_parameters", {{"full_attention", {{"rope_type", "proportional"}}}},
          "rope_parameters.full_attention.rope_type: expected one of");
}

// As transformers before 5 wrote it, and as the folders of answerdotai are.
TEST(ModernBertFolder, OlderConfigurationsSayTheSame) {
  const test::GoldenModel golden("modernbert", "masked");
  const TensorFiles files = TensorFiles::open(DirectoryFolder(golden.folder));
  auto config = nlohmann::json::parse(read_file(golden.folder / "config.json"));
  config.erase("layer_types"), config.erase("rope_parameters");
  const auto states = [&] {
    const auto model = read_parameters(files, read_plan(config.dump(), "config.json"));
    Tape tape;
    Context context{.tape = tape};
    return copied(
        dynamic_cast<const EncoderModel&>(*model).states(context, Batch(golden.sequences).view()).value());
  };
  golden.expect_near(states().view(), "states");
  config["global_attn_every_n_layers"] = 3, config["global_rope_theta"] = 160000.0;
  config["local_rope_theta"] = 10000.0;
  golden.expect_near(states().view(), "states");
  const Tensor expected = states();
  for (const auto& [key, value] : {std::pair{"local_rope_theta", 20000},
                                   {"global_rope_theta", 1000},
                                   {"global_attn_every_n_layers", 2},
                                   {"local_attention", 8}}) {
    const auto before = std::exchange(config[key], value);
    const Tensor other = states();
    EXPECT_NE(other.view()(other.rows() - 1, 0), expected.view()(expected.rows() - 1, 0)) << key;
    config[key] = before;
  }
}

// The head would predict with the embeddings instead.
TEST(BertConfigurations, AnOutputOfItsOwnIsRefused) {
  const test::GoldenModel golden("distilbert", "masked");
  auto document = nlohmann::json::parse(read_file(golden.folder / "config.json"));
  document["tie_word_embeddings"] = false;
  EXPECT_THAT(
      [&] {
        read_parameters(TensorFiles::open(DirectoryFolder(golden.folder)),
                        read_plan(document.dump(), "config.json"));
      },
      ThrowsMessage<FormatError>(HasSubstr("config.json: tie_word_embeddings is false")));
}

INSTANTIATE_TEST_SUITE_P(
    Folders, BertGoldens,
    testing::Values(
        Kind{"bert", "pretraining", true, true}, Kind{"bert", "masked", false, true},
        Kind{"bert", "encoder", true, false}, Kind{"roberta", "masked", false, true},
        Kind{"roberta", "encoder", true, false}, Kind{"roberta", "xlm", false, true, "xlm-roberta"},
        Kind{"roberta", "camembert", false, true, "camembert"}, Kind{"bert", "classifier", true, false},
        Kind{"distilbert", "answers", false, false}, Kind{"distilbert", "masked", false, true},
        Kind{"distilbert", "encoder", false, false}, Kind{"electra", "masked", false, true},
        Kind{"electra", "encoder", false, false}, Kind{"mpnet", "masked", false, true},
        Kind{"mpnet", "encoder", true, false}, Kind{"deberta_v2", "masked", false, true, "deberta-v2"},
        Kind{"deberta_v2", "separate", false, false, "deberta-v2"},
        Kind{"deberta_v2", "content", false, false, "deberta-v2"},
        Kind{"deberta_v2", "position", false, false, "deberta-v2"},
        Kind{"deberta_v2", "infilling", false, true, "deberta-v2"}, Kind{"modernbert", "masked", false, true},
        Kind{"modernbert", "encoder", false, false}, Kind{"modernbert", "classifier", false, false},
        Kind{"nomic_bert", "masked", false, true}, Kind{"nomic_bert", "encoder", false, false}),
    [](const auto& tested) { return std::string(tested.param.family) + "_" + tested.param.name; });

}  // namespace
}  // namespace mh
