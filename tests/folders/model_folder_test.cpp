// Saving and loading: what is written is read back, whole, and in the form transformers expects.
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/folders/generation_keys.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/folders/folder_case.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using namespace test;

nlohmann::json json_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(read_file(file));
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  return names;
}

struct FolderCase {
  const char* name;
  NormPlacement norm;
  bool share;
  HeadGeometry geometry = {};
  Positions positions = Positions::kSinusoidal;
};

class ModelFolders : public testing::TestWithParam<FolderCase> {};

TEST_P(ModelFolders, ReadBackWhatWasSaved) {
  const ScratchFolder scratch;
  const Tokenizer source = small_tokenizer(53), target = small_tokenizer(47);
  TranslatorShape shape = folder_shape(source.size());
  shape.norm = GetParam().norm;
  shape.share_embeddings = GetParam().share;
  shape.geometry = GetParam().geometry;
  shape.positions = GetParam().positions;
  if (!shape.share_embeddings) shape.target_vocabulary_size = target.size();
  EncoderDecoder model(shape.config());
  model.initialise(5);
  model.visit([](const std::string& name, Parameter& p) {  // biases and gains, too, must arrive
    Random random(std::hash<std::string>()(name));
    for (int64_t i = 0; i < p.value.size(); ++i)
      p.value.data()[i] += static_cast<float>(0.1 * random.normal());
  });
  save_model_folder(scratch / "model", model,
                    {.tokenizer = &source, .target_tokenizer = shape.share_embeddings ? nullptr : &target});

  ModelFolder folder = load_model_folder(scratch / "model");
  EXPECT_EQ(values_of(folder.translator()), values_of(model));
  const bool marian = GetParam().norm == NormPlacement::kPost && shape.geometry == HeadGeometry() &&
                      shape.positions == Positions::kSinusoidal;
  EXPECT_EQ(folder.model_type, marian ? "marian" : "multihead");
  EXPECT_EQ(shape_of(folder.translator().config()).geometry, shape.geometry);
  EXPECT_EQ(shape_of(folder.translator().config()).positions, shape.positions);
  const TranslatorShape c = shape_of(folder.translator().config());
  EXPECT_EQ(c.vocabulary_size, shape.vocabulary_size);
  EXPECT_EQ(c.target_vocabulary(), shape.target_vocabulary());
  EXPECT_EQ(c.activation, shape.activation);
  EXPECT_EQ(c.norm, shape.norm);
  EXPECT_EQ(c.scale_embedding, shape.scale_embedding);
  EXPECT_EQ(c.share_embeddings, shape.share_embeddings);
  EXPECT_EQ(c.max_positions, shape.max_positions);
  EXPECT_EQ(c.dropout.residual, 0.25f);
  EXPECT_EQ(c.dropout.weights, 0.125f);
  EXPECT_EQ(c.dropout.activation, 0.0625f);
  EXPECT_THAT((std::vector{c.pad_id, c.eos_id, c.decoder_start_id}), ElementsAre(kPadId, kEndId, kPadId));
  EXPECT_THAT(folder.generation.suppressed, ElementsAre(kPadId));
  EXPECT_EQ(folder.source_tokens().to_json(), source.to_json());
  EXPECT_EQ(folder.target_tokens().to_json(), shape.share_embeddings ? source.to_json() : target.to_json());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ModelFolders,
    testing::Values(
        FolderCase{"marian", NormPlacement::kPost, true},
        FolderCase{"marian_separate", NormPlacement::kPost, false},
        FolderCase{"pre_norm", NormPlacement::kPre, true},
        FolderCase{"pre_norm_separate", NormPlacement::kPre, false},
        FolderCase{"multi_query", NormPlacement::kPost, true, {.key_heads = 1}},
        FolderCase{"learned", NormPlacement::kPost, true, {}, Positions::kLearned},
        FolderCase{"rotary", NormPlacement::kPost, true, {.d_key = 4}, Positions::kRotary},
        FolderCase{"t5", NormPlacement::kPost, false, {}, Positions::kT5},
        FolderCase{"shaw", NormPlacement::kPre, true, {}, Positions::kShaw},
        FolderCase{"normalised", NormPlacement::kPost, true, {.query_key_norm = QueryKeyNorm::kL2}},
        FolderCase{
            "differential", NormPlacement::kPost, true, {.d_key = 2, .weights = HeadWeights::kDifferential}},
        FolderCase{"talking", NormPlacement::kPost, true, {.weights = HeadWeights::kTalking}},
        FolderCase{"slices",
                   NormPlacement::kPost,
                   true,
                   {.d_key = 2, .input = HeadInput::slices(), .biases = Biases::kNone, .scale = 0.3f}}),
    [](const auto& tested) { return tested.param.name; });

class SavedFolder : public testing::Test {
 protected:
  SavedFolder()
      : tokenizer(small_tokenizer()),
        model(folder_shape(tokenizer.size()).config()),
        folder(scratch / "model") {
    model.initialise(3);
    save_model_folder(folder, model, {.tokenizer = &tokenizer});
  }

  const ScratchFolder scratch;
  const Tokenizer tokenizer;
  EncoderDecoder model;
  const std::filesystem::path folder;
};

TEST_F(SavedFolder, HoldsTheFilesOfAHuggingFaceFolder) {
  EXPECT_THAT(files_in(folder), UnorderedElementsAre("config.json", "model.safetensors", "tokenizer.json",
                                                     "tokenizer_config.json", "generation_config.json"));
  EXPECT_THAT(files_in(folder.parent_path()), ElementsAre("model"));  // nothing beside it

  const auto config = json_of(folder / "config.json");
  EXPECT_EQ(config["model_type"], "marian");
  EXPECT_EQ(config["architectures"], nlohmann::json({"MarianMTModel"}));
  EXPECT_EQ(config["encoder_attention_heads"], 3);
  EXPECT_EQ(config["decoder_attention_heads"], 5);
  EXPECT_EQ(config["encoder_ffn_dim"], 19);
  EXPECT_EQ(config["decoder_ffn_dim"], 23);
  EXPECT_EQ(config["activation_function"], "swish");
  EXPECT_EQ(config["decoder_vocab_size"], tokenizer.size());
  EXPECT_EQ(config["forced_eos_token_id"], kEndId);
  EXPECT_EQ(config["tie_word_embeddings"], true);

  const auto generation = json_of(folder / "generation_config.json");
  EXPECT_EQ(generation["bad_words_ids"], nlohmann::json::parse("[[2]]"));
  EXPECT_EQ(generation["decoder_start_token_id"], kPadId);
  EXPECT_EQ(generation["max_length"], 29);
  EXPECT_EQ(generation["num_beams"], 5);
  EXPECT_EQ(generation["early_stopping"], true);  // with which transformers searches as we do
  EXPECT_EQ(generation_remark(generation.dump(), "generation_config.json", model.facts()), "");

  const auto tokens = json_of(folder / "tokenizer_config.json");
  EXPECT_EQ(tokens["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_EQ(tokens["eos_token"], "</s>");
  EXPECT_EQ(tokens["pad_token"], "<pad>");
  EXPECT_EQ(tokens["unk_token"], "<unk>");
  EXPECT_EQ(tokens["model_max_length"], 29);

  EXPECT_EQ(SafetensorsFile::open(folder / "model.safetensors").metadata().at("format"), "pt");
}

TEST_F(SavedFolder, ProjectionsLieAsMarianHasThem) {
  const auto file = SafetensorsFile::open(folder / "model.safetensors");
  const auto marian = file.floats("model.decoder.layers.1.fc1.weight");  // [out, in]
  EXPECT_THAT(file.shape("model.decoder.layers.1.fc1.weight"), ElementsAre(23, 15));
  model.visit([&](const std::string& name, Parameter& p) {
    if (name == "decoder.1.feed_forward.w_1") {
      EXPECT_EQ(p.value(2, 17), marian[17 * 15 + 2]);
    }
  });
  EXPECT_THAT(file.shape("final_logits_bias"), ElementsAre(1, tokenizer.size()));
  EXPECT_THAT(file.shape("model.encoder.layers.0.self_attn.q_proj.bias"), ElementsAre(15));
}

TEST_F(SavedFolder, TheSameModelGivesTheSameBytes) {
  save_model_folder(scratch / "again", model, {.tokenizer = &tokenizer});
  for (const std::string& name : files_in(folder)) {
    EXPECT_EQ(read_file(folder / name), read_file(scratch / "again" / name)) << name;
  }
}

TEST_F(SavedFolder, SavingAgainReplacesItWhole) {
  EncoderDecoder other(folder_shape(tokenizer.size()).config());
  other.initialise(4);
  save_model_folder(folder, other, {.extra_files = {{"notes.txt", "without a tokenizer"}}});
  EXPECT_THAT(files_in(folder), UnorderedElementsAre("config.json", "model.safetensors",
                                                     "generation_config.json", "notes.txt"));
  const ModelFolder loaded = load_model_folder(folder);
  EXPECT_EQ(values_of(loaded.translator()), values_of(other));
  EXPECT_FALSE(loaded.tokenizer.has_value());
  EXPECT_THROW(loaded.source_tokens(), FileError);
  EXPECT_THAT(files_in(folder.parent_path()), ElementsAre("model"));
}

TEST_F(SavedFolder, NeverReplacesWhatIsNoModel) {
  std::filesystem::create_directory(scratch / "thesis");
  write_file_atomically(scratch / "thesis" / "chapter1.txt", "years of work");
  write_file_atomically(scratch / "file", "a file");
  EXPECT_THROW(save_model_folder(scratch / "thesis", model), FileError);
  EXPECT_THROW(save_model_folder(scratch / "file", model), FileError);
  EXPECT_EQ(read_file(scratch / "thesis" / "chapter1.txt"), "years of work");
  EXPECT_EQ(read_file(scratch / "file"), "a file");
  std::filesystem::create_directory(folder / "more");  // a model folder somebody works in
  EXPECT_THROW(save_model_folder(folder, model), FileError);
  std::filesystem::create_directory(scratch / "empty");
  save_model_folder(scratch / "empty", model);
  EXPECT_NO_THROW(load_model_folder(scratch / "empty"));
}

TEST_F(SavedFolder, FoldersThatCannotBeMadeAreFileErrors) {
  EXPECT_THROW(save_model_folder("/proc/no/such/model", model), FileError);
  EXPECT_THROW(save_model_folder(folder / "config.json" / "model", model), FileError);
}

TEST_F(SavedFolder, AFullDiskLeavesTheOldFolder) {
  const auto before = values_of(model);
  const pid_t child = ::fork();
  if (child == 0) {  // a file may have 10 kB here: the weights do not fit
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      model.initialise(99);
      save_model_folder(folder, model, {.tokenizer = &tokenizer});
    } catch (const FileError&) {
      ::_exit(17);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
  EXPECT_EQ(values_of(load_model_folder(folder).translator()), before);
  EXPECT_THAT(files_in(folder.parent_path()), ElementsAre("model"));
}

TEST_F(SavedFolder, AStoppedWriterLeavesTheOldFolder) {
  const auto before = values_of(model);
  model.initialise(99);
  int looks = 0;
  {
    const StopScope scope([&] { return ++looks > 3; });
    EXPECT_THROW(save_model_folder(folder, model, {.tokenizer = &tokenizer}), Interrupted);
  }
  EXPECT_EQ(values_of(load_model_folder(folder).translator()), before);
  EXPECT_THAT(files_in(folder.parent_path()), ElementsAre("model"));
}

TEST_F(SavedFolder, TokenizersThatDoNotMatchAreNotSaved) {
  const Tokenizer smaller = small_tokenizer(47);
  try {
    save_model_folder(scratch / "other", model, {.tokenizer = &smaller});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("it has 47 tokens, the model 53"));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "other"));
}

}  // namespace
}  // namespace mh
