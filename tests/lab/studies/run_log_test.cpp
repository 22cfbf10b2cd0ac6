// Runs are found by their settings, and a setting that a line leaves out has its default.
#include "lab/studies/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/lines.h"
#include "multihead/models/translator_shape.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TranslatorShape small_model() {
  TranslatorShape model;
  model.d_model = 24;
  model.geometry.scores = Scores::kTied;
  return model;
}

RunSettings some_run(uint64_t seed = 3) {
  RunSettings run;
  run.size = "quick";
  run.updates = 7;
  run.learning_rate = 0.01;
  run.seed = seed;
  return run;
}

TEST(RunIdentity, SaysWhatDiffersFromTheDefaults) {
  const RunIdentity run(some_run(), small_model());
  EXPECT_EQ(run.differences(), R"({"size":"quick","seed":3,"updates":7,"learning_rate":0.01,)"
                               R"("model":{"d_model":24,"head_geometry":{"scores":"tied"}}})");
  EXPECT_EQ(RunIdentity::parse(run.differences(), "line").all(), run.all());
}

TEST(RunIdentity, ASettingThatIsNewAndHasItsDefaultIsNoOtherRun) {
  const RunIdentity run(some_run(), small_model());
  // As a program wrote it that knew of no embedding_scale, no member, no positions and no query_key_norm.
  const auto older =
      RunIdentity::parse(R"({"learning_rate":0.01, "size":"quick", "seed":3, "updates":7,)"
                         R"("model":{"head_geometry":{"scores":"tied","d_key":0},"d_model":24}})",
                         "line");
  EXPECT_EQ(older.all(), run.all());
  // As one that says defaults, too.
  const auto wordy = RunIdentity::parse(
      R"({"size":"quick","seed":3,"updates":7,"learning_rate":0.01,"embedding_scale":1.0,"member":0,)"
      R"("model":{"d_model":24,"head_geometry":{"scores":"tied","query_key_norm":"none"}}})",
      "line");
  EXPECT_EQ(wordy.all(), run.all());
  RunSettings louder = some_run();
  louder.embedding_scale = 2;
  EXPECT_NE(RunIdentity(louder, small_model()).all(), run.all());
  TranslatorShape other = small_model();
  other.geometry.weights = HeadWeights::kTalking;
  EXPECT_NE(RunIdentity(some_run(), other).all(), run.all());
}

TEST(RunLog, KeepsALineARunAndKnowsThoseOfAllStudies) {
  const test::ScratchFolder scratch;
  const RunIdentity one(some_run(3), small_model()), two(some_run(4), small_model());
  const ArmRun result{.arm = "h = 2, tied", .seed = 3, .loss = 1.25, .curve = {{.update = 7, .loss = 2}}};
  {
    RunLog log(scratch.path() / "not there yet");
    EXPECT_FALSE(log.find(one));
  }
  RunLog log(scratch.path());
  log.keep("diversity", one, result);
  log.keep("diversity", one, result);
  EXPECT_EQ(log.weights_of(one, result).filename(), "h-2-tied-seed-3.safetensors");
  log.keep("table3", two, result);
  EXPECT_EQ(log.weights_of(two, result).filename(), "h-2-tied-seed-3-2.safetensors");
  const auto lines = read_lines(scratch.path() / "diversity.jsonl");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::StartsWith(R"({"arm":"h = 2, tied","is":{"size":"quick","seed":3,)"));
  EXPECT_THAT(lines[0], HasSubstr(R"("loss":1.25)"));

  RunLog again(scratch.path());
  ASSERT_TRUE(again.find(one));
  EXPECT_EQ(again.find(one)->loss, 1.25);
  EXPECT_EQ(again.find(one)->curve.at(0).update, 7);
  EXPECT_EQ(again.weights_of(two, result).filename(), "h-2-tied-seed-3-2.safetensors");
  EXPECT_TRUE(again.find(two));
  EXPECT_FALSE(again.find(RunIdentity(some_run(5), small_model())));
}

// Lines of an earlier version: what it measured of heads and this one does not is left out, what is new is missing.
TEST(RunLog, ReadsCurvesWithMeasuresThatAreGone) {
  const test::ScratchFolder scratch;
  write_file_atomically(
      scratch.path() / "diversity.jsonl",
      R"({"arm":"one","is":{"size":"quick","seed":3,"updates":7,"learning_rate":0.01,"model":{"d_model":24,)"
      R"("head_geometry":{"scores":"tied"}}},"seed":3,"loss":1.25,"weights":"one.safetensors","curve":[{"update":0,"seconds":0.0,)"
      R"("loss":8.0,"heads":{"subspace":0.5,"positions":0.125,"output":0.25,"divergence":0.75,"entropy":0.625,)"
      R"("effective":3.5}}]})"
      "\n");
  const auto run = RunLog(scratch.path()).find(RunIdentity(some_run(3), small_model()));
  ASSERT_TRUE(run);
  ASSERT_EQ(run->curve.size(), 1u);
  const HeadTelemetry& heads = run->curve[0].heads;
  EXPECT_EQ(heads.positions, 0.125);
  EXPECT_EQ(heads.divergence, 0.75);
  EXPECT_EQ(heads.entropy, 0.625);
  EXPECT_FALSE(heads.written);
  EXPECT_FALSE(heads.ratio);
}

TEST(RunLog, KeepsTimesThatWereMeasuredTogether) {
  const test::ScratchFolder scratch;
  const RunIdentity one(some_run(3), small_model()), two(some_run(4), small_model()),
      three(some_run(5), small_model());
  {
    RunLog log(scratch.path());
    EXPECT_FALSE(log.find_times({{.arm = "one", .run = one}}));
    log.keep_times({{"one", one, 0.5}, {"two", two, 2}}, "AVX2");
    log.keep_times({{"two", two, 7}, {"three", three, 3}}, "AVX3");
  }
  const RunLog log(scratch.path());
  using Seconds = std::vector<double>;
  EXPECT_EQ(log.find_times({{.arm = "one", .run = one}, {.arm = "two", .run = two}}), (Seconds{0.5, 2}));
  EXPECT_EQ(log.find_times({{.arm = "2", .run = two}, {.arm = "1", .run = one}}), (Seconds{2, 0.5}))
      << "in the order that was asked for, whatever their names";
  EXPECT_EQ(log.find_times({{.arm = "three", .run = three}, {.arm = "two", .run = two}}), (Seconds{3, 7}));
  EXPECT_FALSE(log.find_times({{.arm = "one", .run = one}, {.arm = "three", .run = three}}))
      << "never measured together";
  EXPECT_FALSE(RunLog(scratch.path()).find(one)) << "a time is no run";
}

TEST(RunLog, NamesTheFileWhoseTimesCannotBeRead) {
  for (const char* text :
       {"{", "[{}]", "[3]", "{\"arms\": 1}",
        "[{\"processor\": \"AVX2\", \"arms\": [{\"arm\": \"one\", \"seconds\": \"2\", \"is\": {}}]}]",
        "[{\"processor\": \"AVX2\", \"arms\": [{\"arm\": \"one\", \"seconds\": 0, \"is\": {}}]}]"}) {
    SCOPED_TRACE(text);
    const test::ScratchFolder scratch;
    write_file_atomically(scratch.path() / "times.json", text);
    try {
      RunLog log(scratch.path());
      FAIL();
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr("times.json"));
    }
  }
}

TEST(RunLog, NamesTheLineThatIsNoRun) {
  const test::ScratchFolder scratch;
  write_file_atomically(scratch.path() / "a.jsonl", "{\"is\": {}, \"weights\": \"w\"}\n{\"arm\": 1}\n");
  try {
    RunLog log(scratch.path());
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.jsonl line 2: expected a run"));
  }
}

}  // namespace
}  // namespace mh
