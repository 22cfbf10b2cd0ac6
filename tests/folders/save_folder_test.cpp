// Every family is written as it is read: the same parameters, tokenizers and names, in one file or in shards.
#include "multihead/folders/save_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

const fs::path kGoldens = goldens_folder();

std::map<std::string, Tensor> parameters_of(const Model& model) {
  std::map<std::string, Tensor> all;
  model.visit(ConstParameterVisitor(
      [&](const std::string& name, const Parameter& parameter) { all[name] = parameter.value.tensor(); }));
  return all;
}

/// The largest difference, as a share of the number.
double largest_difference(const Model& a, const Model& b) {
  const auto of_a = parameters_of(a), of_b = parameters_of(b);
  EXPECT_EQ(of_a.size(), of_b.size());
  double most = 0;
  for (const auto& [name, numbers] : of_a) {
    const Tensor& others = of_b.at(name);
    EXPECT_EQ(numbers.size(), others.size()) << name;
    for (int64_t i = 0; i < numbers.size(); ++i) {
      const double one = numbers.data()[i], other = others.data()[i];
      if (one != other) most = std::max(most, std::abs(one - other) / std::abs(one));
    }
  }
  return most;
}

class SavedFamily : public testing::TestWithParam<const char*> {
 protected:
  fs::path path = kGoldens / GetParam();
  ModelFolder folder = load_model_folder(path);
  test::ScratchFolder scratch;
};

TEST_P(SavedFamily, IsTheSameFolder) {
  save_model_folder(scratch / "saved", folder);
  const ModelFolder again = load_model_folder(scratch / "saved");
  EXPECT_EQ(again.model_type, folder.model_type);
  EXPECT_EQ(largest_difference(*folder.model, *again.model), 0);
  EXPECT_EQ(again.tokenizer.has_value(), folder.tokenizer.has_value());
  EXPECT_EQ(again.not_read, folder.not_read);
  json before = json::parse(folder.source->read("config.json")),
       after = json::parse(again.source->read("config.json"));
  for (const char* type : {"dtype", "torch_dtype"}) {
    EXPECT_TRUE(!after.contains(type) || after[type] == "float32");
    before.erase(type), after.erase(type);
  }
  EXPECT_EQ(before, after);
}

TEST_P(SavedFamily, MayBeShardsOfRoundedNumbers) {
  save_model_folder(scratch / "saved", folder, {.type = NumberType::kBFloat16, .largest_file = 3000});
  EXPECT_TRUE(fs::exists(fs::path(scratch / "saved") / "model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(fs::path(scratch / "saved") / "model.safetensors"));
  const ModelFolder again = load_model_folder(scratch / "saved");
  EXPECT_LE(largest_difference(*folder.model, *again.model), 0x1p-8);
  EXPECT_THAT(again.source->read("config.json"), HasSubstr("\"bfloat16\""));
}

TEST_P(SavedFamily, IsReadFromMemory) {
  MemoryFolder::Files files;
  for (const auto& entry : fs::directory_iterator(path))
    files[entry.path().filename().string()] = read_file(entry.path());
  const ModelFolder again = load_model_folder(std::make_shared<const MemoryFolder>(files, "memory"));
  EXPECT_EQ(largest_difference(*folder.model, *again.model), 0);
  files.erase("config.json");
  EXPECT_THAT([&] { load_model_folder(std::make_shared<const MemoryFolder>(files, "memory")); },
              ThrowsMessage<FileError>(HasSubstr("memory has no config.json")));
}

INSTANTIATE_TEST_SUITE_P(
    Families, SavedFamily,
    testing::Values("bert/encoder", "bert/masked", "bert/classifier", "distilbert/masked", "roberta/masked",
                    "gpt2/tied", "gpt2/no_prefix", "gpt2/untied_shards_bf16", "llama/tied_grouped",
                    "llama/llama3_one_key_f16", "llama/untied_biased_linear_bf16", "mistral/window",
                    "qwen2/some_windows", "qwen3/tied", "roberta/camembert", "electra/masked", "mpnet/masked",
                    "modernbert/masked", "modernbert/encoder", "modernbert/classifier", "nomic_bert/masked",
                    "nomic_bert/encoder", "deberta_v2/masked", "deberta_v2/separate", "labels/llama_pairs",
                    "labels/gpt2_words", "labels/bart_pairs", "labels/t5_tokens"));

// Runs only when MULTIHEAD_PYTHON names a Python with torch and transformers (`make oracles`).
class SlowSavedOracle : public SavedFamily {};

TEST_P(SlowSavedOracle, TransformersOpensItWithEqualOutputs) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch and transformers";
  save_model_folder(scratch / "saved", folder);
  const std::string command = fmt::format("{} {}/tests/oracles/saved_check.py {} {}", python, source_folder(),
                                          path.string(), (scratch / "saved").string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

INSTANTIATE_TEST_SUITE_P(Families, SlowSavedOracle,
                         testing::Values("bert/masked", "distilbert/masked", "roberta/xlm", "gpt2/tied",
                                         "llama/tied_grouped", "mistral/window", "qwen2/some_windows",
                                         "qwen3/tied", "mpnet/masked", "modernbert/masked", "electra/masked",
                                         "nomic_bert/masked", "labels/llama_pairs", "labels/gpt2_words"));

// Of heads that a format cannot hold: refused before anything is written, or in our own format.
TEST(SavedHeads, OwnFormatHoldsWhatTheFamilyCannot) {
  const test::ScratchFolder scratch;
  for (const char* name : {"bert/masked", "gpt2/tied"}) {
    ModelFolder folder = load_model_folder(kGoldens / name);
    const std::unique_ptr<Model> before = std::exchange(folder.model, nullptr);
    const std::string head = before->attentions().front().name + ".1";
    folder.model = without_heads(*before, {head});
    const std::string out = scratch / fmt::format("{}-pruned", folder.model_type);
    EXPECT_THAT([&] { save_model_folder(out, folder); },
                ThrowsMessage<UsageError>(HasSubstr("cannot hold these heads")));
    EXPECT_FALSE(fs::exists(out));
    save_model_folder(out, folder, {.own_format = OwnFormat::kAllowed});
    const ModelFolder again = load_model_folder(out);
    SiteValues muted;
    muted.mute(head);
    const ModelFacts facts = before->facts();
    const auto sentences = random_sentences(facts, facts.vocabulary_read(), 3, 5);
    const ModelDifference found = compare_models(*before, *again.model, sentences, {}, &muted);
    EXPECT_LT(found.states.largest, 1e-4 * found.states.magnitude);
    EXPECT_GT(compare_models(*before, *again.model, sentences).states.largest, 1e-3 * found.states.magnitude);
    // And once more, from what was saved.
    save_model_folder(out + "2", again);
    EXPECT_EQ(largest_difference(*again.model, *load_model_folder(out + "2").model), 0);
  }
}

// Queries, keys and values that are one tensor in the file, and no longer equally wide.
TEST(SavedHeads, AFusedTensorMayHoldFewerKeys) {
  const test::ScratchFolder scratch;
  for (const char* name : {"gpt2/tied", "modernbert/masked"}) {
    ModelFolder folder = load_model_folder(kGoldens / name);
    folder.model = convert_model(*folder.model,
                                 [](const std::string&, const LayerWeights& w) { return to_grouped(w, 1); });
    const std::string out = scratch / fmt::format("{}-grouped", folder.model_type);
    EXPECT_THAT([&] { save_model_folder(out, folder); },
                ThrowsMessage<UsageError>(HasSubstr("it gives each head its own keys and values")));
    save_model_folder(out, folder, {.own_format = OwnFormat::kAllowed});
    EXPECT_EQ(largest_difference(*folder.model, *load_model_folder(out).model), 0);
  }
}

// Merged heads have no keys of their own, so that a third of the fused tensor is not there.
TEST(SavedHeads, AFusedTensorMayLackKeys) {
  const test::ScratchFolder scratch;
  for (const char* name : {"gpt2/tied", "bert/masked"}) {
    for (const bool merged : {true, false}) {
      ModelFolder folder = load_model_folder(kGoldens / name);
      folder.model = convert_model(*folder.model, [&](const std::string&, const LayerWeights& w) {
        return merged ? to_merged(w) : to_collaborative(w, w.geometry.heads * w.geometry.d_key - 1);
      });
      const std::string out = scratch / fmt::format("{}-{}", folder.model_type, merged);
      save_model_folder(out, folder, {.own_format = OwnFormat::kAllowed});
      EXPECT_EQ(largest_difference(*folder.model, *load_model_folder(out).model), 0) << name << merged;
    }
  }
}

TEST(SavedHeads, LlamaHoldsOneNumberForAllLayers) {
  const test::ScratchFolder scratch;
  ModelFolder folder = load_model_folder(kGoldens / "llama" / "tied_grouped");
  const HeadGeometry heads = folder.model->attention("decoder.0.self_attention").geometry();
  ASSERT_GT(heads.key_heads, 1);
  folder.model = convert_model(*folder.model,
                               [](const std::string&, const LayerWeights& w) { return to_grouped(w, 1); });
  save_model_folder(scratch / "one-key", folder);
  const ModelFolder again = load_model_folder(scratch / "one-key");
  EXPECT_EQ(again.model->attention("decoder.1.self_attention").geometry().key_heads, 1);
  EXPECT_EQ(largest_difference(*folder.model, *again.model), 0);
}

TEST(SavedFamilies, NameWhatCannotBe) {
  const test::ScratchFolder scratch;
  fs::copy(kGoldens / "gpt2" / "tied", scratch / "model");
  ModelFolder folder = load_model_folder(scratch / "model");
  EXPECT_THAT([&] { save_model_folder(scratch / "model", folder); },
              ThrowsMessage<UsageError>(HasSubstr("is the folder that the model was read from")));
  fs::create_directory(scratch / "letters");
  write_file_atomically(fs::path(scratch / "letters") / "letter.txt", "dear");
  EXPECT_THAT([&] { save_model_folder(scratch / "letters", folder); },
              ThrowsMessage<FileError>(HasSubstr("holds something else")));
  EXPECT_THROW(save_model_folder("/proc/no/such/model", folder), FileError);
  folder.model->visit([](const std::string& name, Parameter& parameter) {
    if (name == "embedding") parameter.value(0, 0) = 3.4e38f;
  });
  EXPECT_THAT([&] { save_model_folder(scratch / "rounded", folder, {.type = NumberType::kBFloat16}); },
              ThrowsMessage<Error>(HasSubstr("not finite in bfloat16")));
  EXPECT_FALSE(fs::exists(scratch / "rounded"));
  folder.source.reset();
  EXPECT_THAT([&] { save_model_folder(scratch / "none", folder); },
              ThrowsMessage<UsageError>(HasSubstr("was not read from a folder")));
}

TEST(DirectoryFolder, KnowsWhenItChanged) {
  const test::ScratchFolder scratch;
  fs::copy(kGoldens / "gpt2" / "tied", scratch / "model");
  const DirectoryFolder source(scratch / "model");
  source.read("config.json");
  EXPECT_EQ(source.changed(), "");
  write_file_atomically(fs::path(scratch / "model") / "config.json", "{}");
  EXPECT_EQ(source.changed(), "config.json");
}

}  // namespace
}  // namespace mh
