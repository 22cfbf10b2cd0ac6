// Folders that are damaged, of another architecture, or put together from two models: a one-line error each.
#include <sys/stat.h>

#include "multihead/folders/checkpoint_names.h"
#include "tests/folders/hostile_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using namespace test;

constexpr const char* kFiles[] = {"config.json", "model.safetensors", "tokenizer.json",
                                  "tokenizer_config.json", "generation_config.json"};

TEST_F(HostileFolder, EveryFileMustBeThere) {
  for (const char* name : kFiles) {
    save_again();
    fs::remove(folder / name);
    expect_error(name, name);
    EXPECT_THAT(message(), AllOf(HasSubstr(folder.string()), HasSubstr("copy the whole folder again")))
        << name;
  }
}

TEST_F(HostileFolder, NoFileMayBeCutShort) {
  for (const char* name : kFiles) {
    save_again();
    const std::string whole = read_file(folder / name);
    for (const size_t length :
         {size_t{0}, size_t{1}, size_t{7}, whole.size() / 3, whole.size() / 2, whole.size() - 3}) {
      write_file_atomically(folder / name, std::string_view(whole).substr(0, length));
      expect_error(name, std::string(name) + " cut to " + std::to_string(length));
    }
  }
}

TEST_F(HostileFolder, NoFileMayHoldSomethingElse) {
  const std::string deep(100'000, '[');
  for (const char* name : kFiles) {
    save_again();
    for (const std::string& bytes :
         {std::string("[]"), std::string("null"), std::string("\"text\""), deep,
          std::string("\xff\xfe binary \0 bytes", 18), std::string("{\"a\": 1, \"a\": 2}")}) {
      write_file_atomically(folder / name, bytes);
      expect_error(name, std::string(name) + " holding " + bytes.substr(0, 10));
    }
  }
}

TEST_F(HostileFolder, FoldersThatAreNoModel) {
  const auto expect_message = [](const fs::path& path, std::string_view part) {
    expect_one_line_error([&] { load_model_folder(path); }, part, path.string());
  };
  expect_message(scratch / "nowhere", "there is no such folder");
  expect_message(folder / "config.json", "it is a file");
  fs::create_directory(scratch / "empty");
  expect_message(scratch / "empty", "has no config.json");
  for (const char* name : kFiles) {  // a folder where a file should be
    save_again();
    fs::remove(folder / name);
    fs::create_directory(folder / name);
    expect_error(name, name);
    fs::remove_all(folder);
  }
}

TEST_F(HostileFolder, OtherArchitectures) {
  for (const char* type : {"albert", "longt5", "gpt3", "blenderbot", ""}) {
    edit_json(folder / "config.json", [&](json& config) { config["model_type"] = type; });
    expect_error("\"marian\" (an encoder-decoder of MarianMTModel), \"mbart\"", type);
  }
  edit_json(folder / "config.json", [](json& config) { config["model_type"] = 7; });
  expect_error("\"marian\" (an encoder-decoder of MarianMTModel), \"mbart\"", "a number");
  edit_json(folder / "config.json", [](json& config) { config.erase("model_type"); });
  expect_error("no \"model_type\"", "none");
}

TEST_F(HostileFolder, SizesThatCannotBe) {
  struct Case {
    const char* key;
    json value;
    const char* part;
  };
  const std::vector<Case> cases{
      {"d_model", 0, "d_model"},
      {"d_model", -15, "d_model"},
      {"d_model", 15.5, "d_model"},
      {"d_model", "15", "d_model"},
      {"d_model", nullptr, "d_model"},
      {"d_model", 16, "encoder_attention_heads is 3; expected a divisor of d_model 16"},
      {"d_model", 18446744073709551615ull, "d_model"},
      {"vocab_size", 2'000'000'000, "vocab_size: expected an integer from 2 to 16777216"},
      {"vocab_size", 0, "vocab_size"},
      {"vocab_size", -1, "config.json: vocab_size: expected an integer from 2 to 16777216, got -1"},
      {"encoder_layers", 1'000'000'000, "encoder_layers"},
      {"decoder_layers", -1, "decoder_layers"},
      {"encoder_layers", 0, "encoder_layers"},
      {"encoder_attention_heads", 4, "encoder_attention_heads is 4"},
      {"decoder_attention_heads", 0, "decoder_attention_heads"},
      {"encoder_ffn_dim", 4294967297, "encoder_ffn_dim: expected an integer from 1 to 1048576"},
      {"decoder_ffn_dim", -3, "decoder_ffn_dim: expected an integer from 1 to 1048576"},
      {"max_position_embeddings", 0, "max_position_embeddings"},
      {"max_position_embeddings", 1 << 16, ""},  // nothing in the file contradicts it
      {"pad_token_id", 53, "pad_token_id is 53; expected 0 ... 52"},
      {"pad_token_id", -1, "pad_token_id"},
      {"eos_token_id", 1000, "eos_token_id is 1000"},
      {"eos_token_id", json::array({0, 1}), "eos_token_id"},
      {"decoder_start_token_id", 53, "decoder_start_token_id is 53"},
      {"decoder_vocab_size", 5, "decoder_vocab_size is 5; shared embeddings need that of the source, 53"},
      {"head_geometry", {{"scores", "banana"}}, "it needs model_type \"multihead\""},
      {"own_heads", json::array(), "own_heads is []; it needs model_type"},
      {"norm", "pre", "it needs model_type"},
      {"norm", "post", ""},
      {"positions", "rotary", "it needs model_type"},
      {"dropout", 1.5, "dropout"},
      {"dropout", -0.1, "dropout"},
      {"activation_function", "mish", "gelu"},
      {"activation_function", 3, "activation_function"},
      {"share_encoder_decoder_embeddings", "yes", "share_encoder_decoder_embeddings"},
      {"multihead_files", json::array({"../../secret"}), "secret"},
  };
  for (const Case& tested : cases) {
    save_again();
    edit_json(folder / "config.json", [&](json& config) { config[tested.key] = tested.value; });
    if (*tested.part == '\0') {
      EXPECT_NO_THROW(load_model_folder(folder));
    } else {
      expect_error(tested.part, std::string(tested.key) + " = " + tested.value.dump());
    }
  }
  for (const char* key : {"d_model", "vocab_size", "encoder_layers", "decoder_ffn_dim", "pad_token_id"}) {
    save_again();
    edit_json(folder / "config.json", [&](json& config) { config.erase(key); });
    expect_error(key, std::string(key) + " missing");
  }
}

TEST_F(HostileFolder, TokenizersOfAnotherModel) {
  write_file_atomically(folder / "tokenizer.json", small_tokenizer(47).to_json());
  expect_error("it has 47 tokens, the model 53", "a smaller tokenizer");
  save_again();
  edit_json(folder / "tokenizer_config.json", [](json& tokens) { tokens["eos_token"] = "<unk>"; });
  expect_error("its end token \"<unk>\" has id 1, the model's has 0", "another end token");
  edit_json(folder / "tokenizer_config.json", [](json& tokens) {
    tokens["eos_token"] = {{"content", "<eos>"}};
  });
  expect_error("it has no end token \"<eos>\"", "no end token");
  edit_json(folder / "tokenizer_config.json", [](json& tokens) { tokens["eos_token"] = 0; });
  expect_error("eos_token", "a number");
  save_again();
  edit_json(folder / "config.json", [](json& config) { config["pad_token_id"] = 1; });
  expect_error("its pad token \"<pad>\" has id 2, the model's has 1", "another pad token");
}

TEST_F(HostileFolder, SuppressedTokensMustExist) {
  for (const json& wrong :
       {json::parse("[[53]]"), json::parse("[[-1]]"), json::parse("[2]"), json::parse("7"),
        json::parse("[[1.5]]"), json::parse("[[\"2\"]]"), json::parse("[[1e300]]")}) {
    edit_json(folder / "generation_config.json",
              [&](json& generation) { generation["bad_words_ids"] = wrong; });
    expect_error("bad_words_ids", wrong.dump());
  }
  edit_json(folder / "generation_config.json", [&](json& generation) {
    generation["bad_words_ids"] = json::parse("[[5], [3, 4], [2], [5]]");
    generation["suppress_tokens"] = json::parse("[7]");
  });
  EXPECT_THAT(load_model_folder(folder).generation.suppressed, testing::ElementsAre(2, 5, 7));
}

TEST_F(HostileFolder, SomethingMustBeLeftToSay) {
  edit_json(folder / "generation_config.json", [&](json& generation) {
    json all = json::array();
    for (int id = 3; id < 53; ++id) all.push_back(id);
    all.push_back(1);
    generation["suppress_tokens"] = all;
  });
  expect_error("generation_config.json: bad_words_ids and suppress_tokens forbid every word", "all words");
  edit_json(folder / "generation_config.json",
            [](json& generation) { generation["suppress_tokens"].erase(0); });
  EXPECT_NO_THROW(load_model_folder(folder));
}

TEST_F(HostileFolder, AnUnknownTokenThatIsNamedMustBeThere) {
  edit_json(folder / "tokenizer_config.json", [](json& tokens) { tokens["unk_token"] = "<what>"; });
  expect_error("it has no unknown token '<what>'", "an unknown unknown");
  edit_json(folder / "tokenizer_config.json", [](json& tokens) { tokens.erase("unk_token"); });
  EXPECT_NO_THROW(load_model_folder(folder));
}

// Opening a pipe waits for somebody who writes into it: without an end.
TEST_F(HostileFolder, PipesAreNotWaitedFor) {
  for (const char* name : kFiles) {
    save_again();
    fs::remove(folder / name);
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    expect_error(std::string(name) + ": not a regular file", name);
    fs::remove_all(folder);
  }
}

TEST_F(HostileFolder, AStoppedTrainingStandsForItsNewestWholeCheckpoint) {
  const auto checkpoint = [&](int64_t update) { return checkpoint_of(scratch / "run", update); };
  fs::create_directories(checkpoints_of(scratch / "run"));
  expect_one_line_error([&] { load_model_folder(scratch / "run"); }, "has made no checkpoint yet", "none");
  for (const int64_t update : {9, 10, 200}) fs::copy(folder, checkpoint(update), fs::copy_options::recursive);
  fs::remove(checkpoint(200) / "model.safetensors");
  const ModelFolder found = load_model_folder(scratch / "run");
  EXPECT_EQ(found.path, checkpoint(10));
  EXPECT_EQ(found.checkpoint, 10);
  EXPECT_EQ(found.remark(), (scratch / "run").string() +
                                " has no finished model yet; taking the newest checkpoint of its training, " +
                                checkpoint(10).string());
  // Damage is named, and nothing older taken instead; a model of its own comes first.
  write_file_atomically(checkpoint(10) / "config.json", "{");
  expect_one_line_error([&] { load_model_folder(scratch / "run"); }, "update-10/config.json", "damaged");
  fs::copy(folder, scratch / "run");
  EXPECT_EQ(load_model_folder(scratch / "run").checkpoint, std::nullopt);
  EXPECT_EQ(load_model_folder(scratch / "run").remark(), "");
  EXPECT_EQ(checkpoint_updates(scratch / "run"), (std::vector<int64_t>{9, 10, 200}));
}

// Every bit of the small files' first part flipped: an error or a model, never a crash.
TEST_F(HostileFolder, FlippedBitsNeverCrash) {
  int refused = 0, flips = 0;
  for (const char* name : {"config.json", "tokenizer_config.json", "generation_config.json"}) {
    save_again();
    const std::string whole = read_file(folder / name);
    for (size_t at = 0; at < whole.size(); at += 11) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      write_file_atomically(folder / name, flipped);
      ++flips;
      try {
        load_model_folder(folder);
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GT(refused, flips / 3);
}

// A folder that transformers saved again may name files in config.json that it did not copy.
TEST_F(HostileFolder, FilesNamedByACopiedConfigurationNeedNotBeThere) {
  edit_json(folder / "config.json", [](json& config) { config["transformers_version"] = "5.0.0"; });
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    fs::remove(folder / name);
  }
  EXPECT_NO_THROW(load_model_folder(folder));
}

}  // namespace
}  // namespace mh
