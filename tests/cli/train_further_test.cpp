// multihead train --init-from a translator of another family.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "multihead/folders/model_folder.h"
#include "tests/cli/training.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string golden_of(const char* name) {
  return (fs::path(goldens_folder()) / name).string();
}

std::vector<std::string> further_command(const ScratchFolder& folder, const std::string& model,
                                         const std::string& from, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {"train", "--init-from", from, "--model", folder / model};
  for (const char* file : {"train", "valid"}) {
    for (const auto& [side, ending] : {std::pair("source", "en"), std::pair("target", "de")}) {
      command.push_back(fmt::format("--{}-{}", file, side));
      command.push_back(folder / fmt::format("{}.{}", file, ending));
    }
  }
  command.insert(command.end(),
                 {"--max-length", "29", "--batch-tokens", "300", "--learning-rate", "1e-3", "--warmup", "10",
                  "--validate-every", "20", "--validate-beam", "2", "--save-every", "10"});
  if (std::find(more.begin(), more.end(), "--updates") == more.end())
    command.insert(command.end(), {"--updates", "20"});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

TEST(TrainFurther, LanguagesAreAskedForAndKeptByTheRun) {
  const ScratchFolder folder;
  write_text(folder);
  const std::string nllb = golden_of("languages/nllb");
  const auto train = [&](const std::vector<std::string>& more) {
    return tool(further_command(folder, "a", nllb, more));
  };
  Outcome outcome = train({"--from", "eng"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("nothing says its target language: give --to, or put tgt_lang into"));
  outcome = train({"--from", "xx", "--to", "deu"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors,
              HasSubstr("--from: 'xx' is no language of this model, which has deu_Latn, eng_Latn"));
  outcome = tool(further_command(folder, "a", golden_of("bart/text"), {"--to", "deu"}));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors,
              HasSubstr("has no codes of languages among which one could choose; leave it out"));
  EXPECT_EQ(newest_checkpoint(folder / "a"), -1);

  ASSERT_EQ(train({"--from", "eng", "--to", "deu"}).status, 0);
  outcome = train({"--from", "eng", "--to", "ron"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("--to was deu, is now ron"));
  outcome = tool({"train", "--model", folder / "a", "--updates", "30"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("going on from"));
  EXPECT_EQ(newest_checkpoint(folder / "a"), 30);
  outcome = tool({"train", "--model", folder / "a", "--dump-config"});
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("\"from\": \"eng\""), HasSubstr("\"to\": \"deu\"")));
  const std::string config = folder.write("config.json", outcome.output);
  EXPECT_THAT(tool({"train", "--config", config}).errors, HasSubstr("is finished"));

  const std::string line = folder.write("line", "a big dog\n");
  outcome = tool({"translate", folder / "a", "-i", line, "--from", "eng", "--to", "deu"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST(TrainFurther, BeforeAndAfterAreShownSideBySide) {
  const ScratchFolder folder;
  write_text(folder);
  const std::string before = golden_of("t5/text");
  const Outcome trained = tool(further_command(folder, "after", before, {"--source-prefix", "dog: "}));
  ASSERT_EQ(trained.status, 0) << trained.errors;
  const Outcome shown =
      tool({"view", before, "the dog runs", "--with", folder / "after", "-o", folder / "page.html"});
  EXPECT_EQ(shown.status, 0) << shown.errors;
}

// A training that began with another translator ends with the same folder, whenever it is killed.
TEST(SlowTrainFurther, KillsAtAnyMomentEndWithTheSameFolder) {
  const ScratchFolder folder;
  write_text(folder);
  const std::vector<std::string> more = {"--average", "2", "--average-of", "last", "--updates", "60"};
  const auto command = [&](const char* model) {
    return further_command(folder, model, golden_of("bart/text"), more);
  };
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(tool(command("straight")).status, 0);
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  Random random(13);
  double window = 0.5;
  int kills = 0;
  for (; kills < 12; ++kills) {
    Process process(command("killed"));
    std::this_thread::sleep_for(took * window * random.uniform());
    const bool was_running = process.running();
    process.kill(SIGKILL);
    process.wait();
    if (!was_running && kills > 2) break;
    if (!was_running) {  // it ended before it was killed often enough: begin anew and kill sooner
      fs::remove_all(folder / "killed");
      window /= 2;
      kills = -1;
      continue;
    }
    if (const int64_t newest = newest_checkpoint(folder / "killed"); newest >= 0) {
      const ModelFolder found =
          load_model_folder(folder / fmt::format("killed/checkpoints/update-{}", newest));
      EXPECT_EQ(found.model_type, "bart");
    }
  }
  EXPECT_GT(kills, 2);
  const Outcome last = tool(command("killed"));
  ASSERT_EQ(last.status, 0) << last.errors;
  for (const auto& entry : fs::directory_iterator(folder / "straight")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.starts_with("events.") || name == "metrics.jsonl") continue;
    EXPECT_EQ(read_file(entry.path()), read_file(folder / ("killed/" + name))) << name;
  }
}

// Runs only when MULTIHEAD_PYTHON names a Python with torch and transformers (`make oracles`).
class TrainFurtherOracle : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(TrainFurtherOracle, TransformersOpensTheFolderAndComputesTheSame) {
  const char* const python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch and transformers";
  const ScratchFolder folder;
  write_text(folder);
  const std::vector<std::string> more(GetParam().begin() + 1, GetParam().end());
  const Outcome trained = tool(further_command(folder, "after", golden_of(GetParam().front().c_str()), more));
  ASSERT_EQ(trained.status, 0) << trained.errors;
  const Outcome checked = tool({"check", folder / "after", "--python", python});
  EXPECT_EQ(checked.status, 0) << checked.output << checked.errors;
  EXPECT_THAT(checked.output, HasSubstr("right: all "));
}

INSTANTIATE_TEST_SUITE_P(
    Families, TrainFurtherOracle,
    testing::Values(std::vector<std::string>{"bart/text"},
                    std::vector<std::string>{"t5/text", "--source-prefix", "a: "},
                    std::vector<std::string>{"languages/mbart", "--from", "en_XX", "--to", "de"},
                    std::vector<std::string>{"languages/mbart50", "--from", "en", "--to", "gl"},
                    std::vector<std::string>{"languages/nllb", "--from", "eng", "--to", "deu"}),
    [](const auto& of) { return fmt::format("Family{}", of.index); });

}  // namespace
}  // namespace mh
