// multihead train --head-gates: what it writes, going on after a stop, and pruning the heads that it closed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "multihead/folders/model_folder.h"
#include "multihead/models/head_gates.h"
#include "tests/cli/training.h"

namespace mh {
namespace {

using testing::HasSubstr;

std::vector<std::string> gates_command(const ScratchFolder& folder, const std::string& model,
                                       const char* price, const char* updates) {
  return train_command(
      folder, model,
      {"--head-gates", price, "--updates", updates, "--learning-rate", "0.03", "--warmup", "5"});
}

/// The last line of metrics about training.
nlohmann::json last_training_line(const std::string& folder) {
  std::istringstream lines(read_file(folder + "/metrics.jsonl"));
  nlohmann::json found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"kind\":\"train\"") != std::string::npos) found = nlohmann::json::parse(line);
  }
  return found;
}

TEST(TrainGates, ClosedHeadsAreListedAndCanBePruned) {
  const ScratchFolder folder;
  write_text(folder);
  const Outcome outcome = tool(gates_command(folder, "gated", "0.02", "130"));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const std::string list = read_file(folder / "gated/closed_heads.txt");
  const auto closed = std::count(list.begin(), list.end(), '\n');
  ASSERT_GT(closed, 0);
  ASSERT_LT(closed, 8);
  EXPECT_THAT(outcome.errors, HasSubstr(std::to_string(closed) + " of 8 heads are closed"));
  const nlohmann::json line = last_training_line(folder / "gated");
  EXPECT_LT(line["heads_open"], 8);
  EXPECT_GT(line["heads_expected"], 0);
  const ToolResult pruned =
      run_tool("heads prune '" + folder / "gated" + "' --heads-from '" + folder / "gated/closed_heads.txt" +
               "' --out '" + folder / "pruned" + "' --json");
  ASSERT_EQ(pruned.status, 0) << pruned.err;
  const auto report = nlohmann::json::parse(pruned.out);
  EXPECT_LT(report["difference"]["logits"].get<double>(),
            1e-5 * report["difference"]["logits_magnitude"].get<double>())
      << "closed heads do nothing";
}

TEST(TrainGates, ANothingPriceKeepsAllAndAHugeOneSaysSo) {
  const ScratchFolder folder;
  write_text(folder);
  const Outcome free = tool(gates_command(folder, "free", "0", "30"));
  ASSERT_EQ(free.status, 0) << free.errors;
  EXPECT_THAT(free.errors, HasSubstr("0 of 8 heads are closed"));
  EXPECT_EQ(read_file(folder / "free/closed_heads.txt"), "");
  const Outcome dear = tool(gates_command(folder, "dear", "1000", "130"));
  ASSERT_EQ(dear.status, 0) << dear.errors;
  EXPECT_THAT(dear.errors, HasSubstr("--head-gates 1000 closed all 8 heads"));
  EXPECT_EQ(closed_heads(*load_model_folder(folder / "dear").model).size(), 8u);
  const Outcome wrong = tool(gates_command(folder, "wrong", "-1", "30"));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.errors, HasSubstr("--head-gates"));
}

TEST(TrainGates, ARunThatGoesOnEndsWithTheSameBits) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(gates_command(folder, "straight", "0.1", "60")).status, 0);
  ASSERT_EQ(tool(gates_command(folder, "halves", "0.1", "30")).status, 0);
  const Outcome on = tool({"train", "--model", folder / "halves", "--updates", "60"});
  ASSERT_EQ(on.status, 0) << on.errors;
  EXPECT_EQ(final_weights(folder, "halves"), final_weights(folder, "straight"));
  EXPECT_EQ(read_file(folder / "halves/closed_heads.txt"), read_file(folder / "straight/closed_heads.txt"));
  // Another price is another run; and gates begin from any trained model.
  EXPECT_EQ(tool({"train", "--model", folder / "halves", "--head-gates", "0.3"}).status, 2);
  const Outcome from = tool(train_command(
      folder, "from", {"--init-from", folder / "straight", "--head-gates", "0.1", "--updates", "10"}));
  EXPECT_EQ(from.status, 0) << from.errors;
}

}  // namespace
}  // namespace mh
