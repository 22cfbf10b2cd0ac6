// Folders of T5 that are like no other family's: what config.json may say in several ways, tables that are tied or not, files of older
// versions, and our own format of such models. What is computed is compared in translators_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/folders/families/translator_golden.h"
#include "tests/models/small_batch.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using test::DamagedGolden;
using test::TranslatorGolden;
using testing::HasSubstr;

ModelFolder read_golden(const std::string& family, const std::string& name) {
  return load_model_folder(TranslatorGolden(family, name).folder);
}

std::vector<float> logits_for(const ModelFolder& folder, const TranslatorGolden& golden) {
  return test::logits_of(folder.translator(), golden.source, golden.target_in);
}

void expect_logits_of_t5(const ModelFolder& folder, const TranslatorGolden& golden) {
  const std::vector<float> found = logits_for(folder, golden);
  test::expect_near_golden({found.data(), 1, std::ssize(found)}, golden.file.floats("logits"), "logits");
}

/// Changes the tensors of a folder.
void edit_tensors(const std::filesystem::path& folder,
                  const std::function<void(std::map<std::string, std::vector<float>>& numbers,
                                           std::map<std::string, std::vector<int64_t>>& shapes)>& change) {
  const std::filesystem::path path = folder / "model.safetensors";
  std::map<std::string, std::vector<float>> numbers;
  std::map<std::string, std::vector<int64_t>> shapes;
  const SafetensorsFile before = SafetensorsFile::open(path);
  for (const std::string& name : before.names()) {
    numbers[name] = before.floats(name);
    shapes[name] = before.shape(name);
  }
  change(numbers, shapes);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, all] : numbers)
    tensors.push_back({.name = name, .shape = shapes.at(name), .data = std::span<const float>(all)});
  write_file_atomically(path, write_safetensors(tensors));
}

TEST(T5Folder, TheShapeSaysWhatTheFamiliesAre) {
  const auto of = [](const char* family, const char* name) {
    return shape_of(read_golden(family, name).translator().config());
  };
  const TranslatorShape plain = of("t5", "plain"), flan = of("t5", "flan_bf16"), mt5 = of("mt5", "plain"),
                        umt5 = of("umt5", "unscaled");
  for (const TranslatorShape& shape : {plain, flan, mt5, umt5}) {
    EXPECT_EQ(shape.positions, Positions::kT5);
    EXPECT_EQ(shape.norm, NormPlacement::kPre);
    EXPECT_EQ(shape.norm_kind, NormKind::kRms);
    EXPECT_FALSE(shape.output_bias || shape.feed_forward_bias || shape.scale_embedding);
    EXPECT_TRUE(shape.share_embeddings);
  }
  EXPECT_EQ(plain.activation, Activation::kRelu);
  EXPECT_FALSE(plain.gated || plain.own_output);
  EXPECT_TRUE(plain.scale_states && plain.one_bias);
  EXPECT_EQ(plain.max_positions, 512);
  EXPECT_EQ(flan.activation, Activation::kGeluTanh);
  EXPECT_TRUE(flan.gated && flan.own_output && flan.one_bias);
  EXPECT_FALSE(flan.scale_states);
  EXPECT_EQ(flan.max_positions, 53);
  EXPECT_TRUE(mt5.gated && mt5.one_bias);
  EXPECT_FALSE(mt5.scale_states || mt5.own_output);
  EXPECT_FALSE(umt5.one_bias || umt5.scale_states);
  EXPECT_EQ(umt5.buckets, (T5Buckets{.count = 11, .farthest = 13}));
}

// Its config.json of transformers 5 says that all are tied, and scale_decoder_outputs what tie_word_embeddings did before.
TEST(T5Folder, UntiedModelsDoNotScaleWhatTheOutputReads) {
  const DamagedGolden folder("t5", "plain");
  const TranslatorGolden golden("t5", "plain");
  std::vector<float> scaled = logits_for(load_model_folder(folder.folder), golden);
  const auto expect_unscaled = [&] {
    const std::vector<float> found = logits_for(load_model_folder(folder.folder), golden);
    ASSERT_EQ(found.size(), scaled.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], scaled[i] * std::sqrt(22.0f), 1e-5f * (1 + std::abs(found[i]))) << i;
  };
  folder.with([](json& config) { config["scale_decoder_outputs"] = false; });
  expect_unscaled();
  folder.with([](json& config) {
    config.erase("scale_decoder_outputs");
    config["tie_word_embeddings"] = false;
  });
  expect_unscaled();
  folder.with([](json& config) {
    config.erase("scale_decoder_outputs");
    config.erase("tie_word_embeddings");
  });
  expect_logits_of_t5(load_model_folder(folder.folder), golden);
}

TEST(T5Folder, AnActivationOfItsOwnCountsBeforeTheNameOfBoth) {
  const DamagedGolden folder("t5", "plain");
  const auto activation_with = [&](const char* both, json own) {
    folder.with([&](json& config) {
      config["feed_forward_proj"] = both;
      config["dense_act_fn"] = own;
    });
    return shape_of(load_model_folder(folder.folder).translator().config()).activation;
  };
  EXPECT_EQ(activation_with("gelu", nullptr), Activation::kGelu);
  EXPECT_EQ(activation_with("gelu_new", nullptr), Activation::kGeluTanh);
  EXPECT_EQ(activation_with("gelu", "silu"), Activation::kSwish);
  EXPECT_EQ(activation_with("no_such", "relu"), Activation::kRelu);
}

// The table under all of its names, and a bias of cross-attention, which no class reads.
TEST(T5Folder, FilesOfOlderVersionsAreRead) {
  const DamagedGolden folder("t5", "plain");
  edit_tensors(folder.folder, [](auto& numbers, auto& shapes) {
    for (const char* name :
         {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}) {
      numbers[name] = numbers["shared.weight"];
      shapes[name] = shapes["shared.weight"];
    }
    const std::string bias = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
    numbers[bias] = {1, 2, 3};
    shapes[bias] = {3, 1};
  });
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_EQ(found.remark(), "");
  EXPECT_FALSE(shape_of(found.translator().config()).own_output);
  expect_logits_of_t5(found, TranslatorGolden("t5", "plain"));
  // Without the name that comes first.
  edit_tensors(folder.folder, [](auto& numbers, auto&) {
    numbers.erase("shared.weight");
    numbers.erase("encoder.embed_tokens.weight");
  });
  expect_logits_of_t5(load_model_folder(folder.folder), TranslatorGolden("t5", "plain"));
}

TEST(T5Folder, TablesOfTheirOwnForEachSideAreRefused) {
  const DamagedGolden folder("umt5", "plain");
  edit_tensors(folder.folder, [](auto& numbers, auto& shapes) {
    numbers["decoder.embed_tokens.weight"] = numbers["shared.weight"];
    numbers["decoder.embed_tokens.weight"][5] += 1;
    shapes["decoder.embed_tokens.weight"] = shapes["shared.weight"];
  });
  folder.expect_error(
      "decoder.embed_tokens.weight is not shared.weight; expected one table of embeddings for both sides");
}

TEST(T5Folder, AHeadForClassesIsLeftWhereItIsAndNamed) {
  const DamagedGolden folder("t5", "plain");
  edit_tensors(folder.folder, [](auto& numbers, auto& shapes) {
    const auto bare = numbers;
    for (const auto& [name, all] : bare) {
      numbers["transformer." + name] = all;
      shapes["transformer." + name] = shapes[name];
      numbers.erase(name);
    }
    numbers["classification_head.dense.weight"] = {3};
    shapes["classification_head.dense.weight"] = {1, 1};
  });
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_THAT(found.not_read, testing::ElementsAre("classification_head.dense.weight"));
  expect_logits_of_t5(found, TranslatorGolden("t5", "plain"));
}

// As `multihead train` saves a model that it began with.
TEST(T5Folder, OurOwnFormatHoldsSuchModels) {
  for (const auto& [family, name] : {std::pair{"t5", "plain"}, std::pair{"t5", "flan_bf16"},
                                     std::pair{"t5", "buckets"}, std::pair{"umt5", "unscaled"}}) {
    SCOPED_TRACE(std::string(family) + "/" + name);
    const test::ScratchFolder scratch;
    const ModelFolder folder = read_golden(family, name);
    save_model_folder(scratch / "own", folder.translator());
    const ModelFolder again = load_model_folder(scratch / "own");
    EXPECT_EQ(again.model_type, "multihead");
    EXPECT_EQ(again.remark(), "");
    const TranslatorGolden golden(family, name);
    EXPECT_EQ(logits_for(again, golden), logits_for(folder, golden));
  }
}

TEST(T5Folder, OtherHeadsAreSavedInItsOwnFieldsOrInOurs) {
  const test::ScratchFolder scratch;
  ModelFolder folder = read_golden("t5", "plain");
  HeadsOfAttentions fewer;
  for (const Model::Attention& named : folder.model->attentions()) {
    HeadGeometry& heads = fewer[named.name] = folder.model->attention(named.name).geometry();
    heads.heads = heads.key_heads = heads.value_heads = 2;
  }
  folder.model = folder.model->with_heads(fewer);
  save_model_folder(scratch / "two", folder);
  EXPECT_EQ(json::parse(read_file(scratch / "two" / "config.json"))["num_heads"], 2);
  EXPECT_EQ(load_model_folder(scratch / "two").model->attention("decoder.2.cross_attention").heads(), 2);

  ModelFolder other = read_golden("t5", "plain");
  HeadGeometry one = fewer.at("decoder.1.cross_attention");
  one.heads = one.key_heads = one.value_heads = 1;
  other.model = other.model->with_heads({{"decoder.1.cross_attention", one}});
  EXPECT_THROW(save_model_folder(scratch / "refused", other), UsageError);
  save_model_folder(scratch / "own", other, {.own_format = OwnFormat::kAllowed});
  EXPECT_EQ(load_model_folder(scratch / "own").model->attention("decoder.1.cross_attention").heads(), 1);

  // One table has a row for each head of all layers.
  one.heads = one.key_heads = one.value_heads = 1;
  EXPECT_THAT(
      [&] {
        read_golden("t5", "plain").model->with_heads({{"decoder.1.self_attention", one}});
      },
      testing::ThrowsMessage<UsageError>(HasSubstr("one bias for all layers needs equally many")));
  EXPECT_NO_THROW(read_golden("umt5", "plain").model->with_heads({{"decoder.1.self_attention", one}}));
}

/// The loss of a model, and the gradients of its tables of positions when the tape records.
double loss_of(const EncoderDecoder& model, const TranslatorGolden& golden, Tape& tape) {
  Context context{.tape = tape};
  VocabularyScratch scratch;
  const Loss loss = model.loss(context, golden.source.view(), golden.target_in.view(), golden.target_out.ids,
                               {.scale = 0.1f}, scratch);
  if (tape.recording()) tape.backward();
  return 0.1 * loss.negative_log_likelihood;
}

// By differences: along each table's gradient the loss rises by the gradient's squared length.
TEST(T5Folder, TablesOfPositionsHaveGradients) {
  for (const auto& [family, name, expected] :
       {std::tuple{"t5", "buckets", 2}, std::tuple{"umt5", "plain", 5}}) {
    SCOPED_TRACE(family);
    const TranslatorGolden golden(family, name);
    const ModelFolder folder = load_model_folder(golden.folder);
    EncoderDecoder& model = folder.translator();
    Tape tape(Tape::Mode::kRecord);
    loss_of(model, golden, tape);
    int tables = 0;
    model.visit([&](const std::string& parameter, Parameter& table) {
      if (!parameter.ends_with("distance_bias")) return;
      ++tables;
      const std::vector<float> start(table.value.data(), table.value.data() + table.value.size());
      const std::vector<float> gradient = test::copy_of(table.gradient_sum());
      double square = 0;
      for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
      ASSERT_GT(square, 0) << parameter;
      const double step = 0.02 / std::sqrt(square);
      const auto at = [&](double steps) {
        for (size_t i = 0; i < gradient.size(); ++i)
          table.value.data()[i] = start[i] + static_cast<float>(steps * static_cast<double>(gradient[i]));
        table.changed();
        Tape plain;
        return loss_of(model, golden, plain);
      };
      const double rise = (at(step) - at(-step)) / (2 * step);
      at(0);
      EXPECT_NEAR(rise, square, 0.01 * square) << parameter;
    });
    EXPECT_EQ(tables, expected);
  }
}

TEST(DamagedT5, ConfigurationsThatDoNotFitAreRefused) {
  for (const char* family : {"t5", "mt5", "umt5"}) {
    const DamagedGolden damaged(family, "plain");
    damaged.with("is_decoder", true, "is_decoder is true; expected an encoder-decoder");
    damaged.with("is_encoder_decoder", false, "is_encoder_decoder is false; expected an encoder-decoder");
    damaged.with("d_model", 0, "d_model: expected an integer from 1");
    damaged.with("d_model", 23, "shape of shared.weight: expected [47,23], got [47,22]");
    damaged.with("d_kv", 6,
                 "shape of encoder.block.0.layer.0.SelfAttention.q.weight: expected [18,22], got [15,22]");
    damaged.with("d_kv", 1025, "d_kv: expected an integer from 1 to 1024");
    damaged.with("num_decoder_layers", 4, "missing: decoder.block.3.");
    damaged.with("num_layers", 1, "not used: encoder.block.1.");
    damaged.with("num_layers", 1 << 20, "num_layers: expected an integer from 1 to 1024");
    damaged.with("d_ff", 30, "expected [30,22], got [31,22]");
    damaged.with("relative_attention_num_buckets", 31, "expected [31,3], got [32,3]");
    damaged.with("relative_attention_num_buckets", 3,
                 "relative_attention_num_buckets: expected an integer from 4");
    damaged.with("relative_attention_max_distance", 16,
                 "relative_attention_max_distance is 16; expected more than half of "
                 "relative_attention_num_buckets, 32");
    damaged.with("feed_forward_proj", 3, "feed_forward_proj: expected a text");
    damaged.with("dense_act_fn", "step", "dense_act_fn: expected one of");
    damaged.with("layer_norm_epsilon", 0, "the norm's epsilon is 0; expected a number above 0");
    damaged.with("pad_token_id", 47, "pad_token_id is 47; expected 0 ... 46");
    damaged.with("eos_token_id", -1, "eos_token_id");
    damaged.with("decoder_start_token_id", 47, "decoder_start_token_id is 47; expected 0 ... 46");
    damaged.with("n_positions", 0, "n_positions: expected an integer from 1");
    damaged.with("dropout_rate", 1.5, "dropout");
    damaged.with("head_dim", 3, "head_dim is 3, but d_kv, which means the same, is 5");
  }
  const DamagedGolden plain("t5", "plain");
  plain.with([](json& config) {
    config["feed_forward_proj"] = "gated-step";
    config.erase("dense_act_fn");
  });
  plain.expect_error("feed_forward_proj is \"gated-step\"; expected one of relu, gelu, gelu_new");
  plain.with("is_gated_act", true, "missing: encoder.block.0.layer.1.DenseReluDense.wi_0.weight");
  plain.with("model_type", "umt5",
             "missing: encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight");
  DamagedGolden("umt5", "plain")
      .with("model_type", "t5",
            "not used: decoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight");
}

}  // namespace
}  // namespace mh
