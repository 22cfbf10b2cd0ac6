// multihead train: bad input, and what a config file holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/cli/training.h"

namespace mh {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Train, RefusesBadInputInOneLine) {
  const ScratchFolder folder;
  write_text(folder);
  std::ofstream(folder / "short.de") << "hund\n";
  std::ofstream(folder / "empty.en");
  std::ofstream(folder / "latin1.en") << "ok\n\xe4\n";
  std::ofstream(folder / "a_file") << "x";
  fs::create_directories(folder / "foreign");
  std::ofstream(folder / "foreign/config.json") << "{}";
  struct Case {
    std::vector<std::string> flags;
    int status;
    const char* message;
  };
  const std::vector<Case> cases = {
      {{"--train-target", folder / "short.de"}, 1, "200 lines"},
      {{"--train-source", folder / "empty.en"}, 1, "is empty"},
      {{"--train-source", folder / "latin1.en"}, 1, "latin1.en"},
      {{"--train-source", folder / "missing.en"}, 1, "missing.en"},
      {{"--model", folder / "a_file"}, 1, "is a file"},
      {{"--model", "/proc/no/such"}, 1, "/proc/no/such"},
      {{"--model", folder / "foreign"}, 2, "--init-from"},
      {{"--dropout", "1.5"}, 2, "--dropout"},
      {{"--dropout", "abc"}, 2, "--dropout"},
      {{"--heads", "0"}, 2, "--heads"},
      {{"--heads", "5"}, 2, "--heads 5 does not divide --d-model 16"},
      {{"--d-model", "65536", "--heads", "64", "--encoder-layers", "512"},
       2,
       "GiB of memory, this machine has"},
      {{"--norm", "middle"}, 2, "--norm"},
      {{"--geometry", "narrow"}, 2, "geometry 'narrow' is unknown; choose one of canonical"},
      {{"--positions", "absolute"}, 2, "--positions"},
      {{"--d-key", "0"}, 2, "--d-key"},
      {{"--scores", "both"}, 2, "expected query_key|tied|"},
      {{"--geometry", "merged", "--positions", "rotary"}, 2, "use alibi, t5 or shaw"},
      {{"--geometry", "merged", "--qk-norm", "l2"}, 2, "query_key_norm"},
      {{"--key-heads", "3"}, 2, "key_heads is 3; expected a divisor of the 2 heads, for example 1"},
      {{"--head-output", "concatenation", "--d-value", "3"}, 2, "use a projection or d_value 8"},
      {{"--segments", "random"}, 2, "--segments random needs --segment-size, from 1 to --d-model 16"},
      {{"--disagreement", "most"}, 2, "none|subspace|positions|output|"},
      {{"--preset", "huge"}, 2, "huge"},
      {{"--no-such-flag"}, 2, "--no-such-flag"},
      {{"--max-length", "2"}, 2, "--max-length"},
      {{"--tokenizer", folder / "train.en"}, 1, "train.en"},
      {{"--init-from", folder / "foreign"}, 1, "foreign"},
      {{"--config", folder / "foreign/none.json"}, 1, "none.json"},
  };
  for (const Case& bad : cases) {
    const Outcome outcome = tool(train_command(folder, "m", bad.flags));
    EXPECT_EQ(outcome.status, bad.status) << bad.flags[0] << ": " << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(bad.message));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }
}

TEST(Train, HeadsAreWhatTheFlagsSay) {
  const ScratchFolder folder;
  write_text(folder);
  const std::vector<std::string> few = {"--updates",    "3", "--validate-every", "3",
                                        "--save-every", "3", "--average",        "1"};
  const auto train = [&](const std::string& model, std::vector<std::string> more) {
    more.insert(more.end(), few.begin(), few.end());
    return tool(train_command(folder, model, more));
  };
  const std::vector<std::string> flags = {
      "--geometry", "multi-query", "--d-key",        "4",      "--positions",           "rotary",
      "--qk-norm",  "l2",          "--disagreement", "output", "--disagreement-weight", "0.5"};
  Outcome outcome = train("m", flags);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  ModelFolder made = load_model_folder(folder / "m");
  EXPECT_EQ(shape_of(made.translator().config()).geometry.key_heads, 1);
  EXPECT_EQ(shape_of(made.translator().config()).geometry.d_key, 4);
  EXPECT_EQ(shape_of(made.translator().config()).geometry.query_key_norm, QueryKeyNorm::kL2);
  EXPECT_EQ(shape_of(made.translator().config()).positions, Positions::kRotary);

  EXPECT_THAT(read_file(folder / "m/metrics.jsonl"), HasSubstr("\"head_similarity\":"));
  const Outcome info = tool({"info", folder / "m"});
  EXPECT_THAT(info.output, HasSubstr(R"({"d_key":4,"key_heads":1,"query_key_norm":"l2"})"));
  EXPECT_THAT(info.output, HasSubstr("rotary, up to 512 tokens"));

  // The same command again knows the run; with other heads it refuses.
  outcome = train("m", flags);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("is finished"));
  outcome = train("m", {"--positions", "alibi"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("--positions was rotary, is now alibi; leave out what differs"));

  // Its weights begin another run, with its heads, or are refused.
  outcome = train("again", {"--init-from", folder / "m"});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(shape_of(load_model_folder(folder / "again").translator().config()).geometry,
            shape_of(made.translator().config()).geometry);
  outcome = train("again2", {"--init-from", folder / "m", "--geometry", "multi-query", "--d-key", "4",
                             "--qk-norm", "l2"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  outcome = train("other", {"--init-from", folder / "m", "--scores", "merged", "--positions", "t5"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("other heads than it has; --positions t5 but it has rotary"));

  outcome = train("json", {"--geometry", R"({"input": "columns", "columns": [[0, 1, 5], [2]], "d_key": 3})"});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(shape_of(load_model_folder(folder / "json").translator().config()).geometry.input.columns,
            (HeadColumns{{0, 1, 5}, {2}}));
  outcome = train("json2", {"--geometry", R"({"inputs": "slices"})"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("inputs"));

  outcome = train("learned", {"--positions", "learned", "--segments", "spread", "--segment-size", "11"});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  made = load_model_folder(folder / "learned");
  EXPECT_EQ(shape_of(made.translator().config()).positions, Positions::kLearned);
  ASSERT_EQ(shape_of(made.translator().config()).geometry.input.columns.size(), 2u);
  EXPECT_EQ(shape_of(made.translator().config()).geometry.input.columns[1].back(), 15);
  outcome = train("longer", {"--init-from", folder / "learned", "--max-length", "600"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("--max-length 600 but it learned 512 positions"));
}

TEST(Train, ConfigFilesHoldWhatFlagsHold) {
  const ScratchFolder folder;
  const Outcome first = tool({"train", "--preset", "small", "--seed", "5", "--norm", "pre", "--lowercase",
                              "--scores", "tied", "--dump-config"});
  ASSERT_EQ(first.status, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("\"d-model\": 256"));
  std::ofstream(folder / "run.json") << first.output;
  const Outcome second = tool({"train", "--config", folder / "run.json", "--seed", "6", "--dump-config"});
  ASSERT_EQ(second.status, 0) << second.errors;
  EXPECT_THAT(second.output, HasSubstr("\"seed\": 6"));
  EXPECT_THAT(second.output, HasSubstr("\"norm\": \"pre\""));
  EXPECT_THAT(second.output, HasSubstr("\"scores\": \"tied\""));
  EXPECT_THAT(second.output, HasSubstr("\"biases\": null"));
  EXPECT_THAT(second.output, HasSubstr("\"lowercase\": true"));
  const Outcome help = tool({"train", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("Example:"));
  std::ofstream(folder / "typo.json") << "{\"sed\": 1}";
  const Outcome typo = tool({"train", "--config", folder / "typo.json", "--dump-config"});
  EXPECT_EQ(typo.status, 1);
  EXPECT_THAT(typo.errors, HasSubstr("sed"));
}

}  // namespace
}  // namespace mh
