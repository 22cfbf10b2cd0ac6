// multihead trace: random layers, layers of a model, and layers read from files.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "multihead/base/file.h"
#include "multihead/io/npy.h"
#include "multihead/io/safetensors.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string walk_of(const std::string& arguments) {
  const ToolResult result = run_tool("trace " + arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

int width_of(const std::string& line) {  // of our own text: letters, ellipses, no wide characters
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

TEST(TraceVerb, WalksThroughARandomLayer) {
  const std::string walk = walk_of("--d-model 4 --heads 2 --tokens 3 --seed 5");
  EXPECT_THAT(
      walk, AllOf(HasSubstr("a random layer, canonical, seed 5\n2 heads, d_key 2, d_value 2, scale 0.7071\n"),
                  HasSubstr("q_1 = x w_q_1 + b_q_1"), HasSubstr("[3, 2]  head 1\n"),
                  HasSubstr("weights_0 = softmax of the rows of scaled_0"),
                  HasSubstr("The layer itself, one product for all heads and the fused kernel")));
  EXPECT_EQ(walk, walk_of("--d-model 4 --heads 2 --tokens 3 --seed 5"));
  EXPECT_NE(walk, walk_of("--d-model 4 --heads 2 --tokens 3 --seed 6"));
  EXPECT_THAT(walk_of("--geometry multi-query --keys 3 --causal"), HasSubstr("-inf"));
  EXPECT_THAT(walk_of("--positions rotary"), HasSubstr("scores_0 = q_0_turned k_0_turned^T"));
  for (const char* large : {"--d-model 48 --heads 3 --tokens 20", "--geometry merged --d-model 24 --heads 4",
                            "--geometry talking --heads 12 --d-model 144 --positions alibi --causal",
                            "--geometry differential --heads 12 --d-model 144 --positions shaw"}) {
    const std::string cut = walk_of(large);
    EXPECT_THAT(cut, HasSubstr("\u2026"));
    for (const std::string& line : lines_of(cut)) EXPECT_LE(width_of(line), 80) << line;
  }
}

class TraceOfFolder : public SmallFolder {};

TEST_F(TraceOfFolder, WalksThroughALayerOfTheModel) {
  const std::string save = scratch / "steps";
  const std::string walk = walk_of(folder +
                                   " --text 'a small dog' --attention decoder.1.cross_attention "
                                   "--target-text 'dogs see' --save " +
                                   save);
  EXPECT_THAT(walk,
              AllOf(HasSubstr("decoder.1.cross_attention of "), HasSubstr("memory = the rows that are read"),
                    HasSubstr("k_0 = memory w_k_0 + b_k_0")));
  for (const std::string& line : lines_of(walk)) {
    const bool names_folder = line.find(folder) != std::string::npos;
    EXPECT_TRUE(names_folder || width_of(line) <= 80) << line;
  }
  const NpyArray weights = read_npy(read_file(save + "/weights_2.npy"), "weights_2");
  const auto& numbers = std::get<std::vector<float>>(weights.data);
  float sum = 0;
  for (int64_t j = 0; j < weights.shape[1]; ++j) sum += numbers[static_cast<size_t>(j)];
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_THAT(read_file(save + "/steps.txt"), HasSubstr("scores_2\t["));
  walk_of(folder + " --text 'a cat' --save " + save);  // replaces what it saved
  // Every name is one that may be given.
  expect_error(
      run_tool("trace " + folder + " --text a --attention encoder.7.self_attention"), 2,
      "this model has no attention 'encoder.7.self_attention'; it has encoder.0.self_attention to "
      "encoder.1.self_attention with heads 0 to 2 each; decoder.0.self_attention to decoder.1.self_attention "
      "with heads 0 to 2 each; decoder.0.cross_attention to decoder.1.cross_attention with heads 0 to 2 "
      "each\n");
  expect_error(run_tool("trace " + folder), 2, "--text is missing");
  expect_error(run_tool("trace " + folder + " --text a --heads 2"), 2,
               "--heads is for a layer of --weights, but a model folder's layer is traced");
  expect_error(run_tool("trace " + folder + " --text a --save " + folder), 1, "which was not saved here");
  expect_error(run_tool("trace " + folder + " --text a --save " + folder + "/config.json"), 2,
               "--save: expected a folder, got " + folder + "/config.json");
  std::filesystem::copy(folder + "/config.json", folder + "/taken");
  expect_error(run_tool("trace " + folder + " --text a --save " + folder + "/taken"), 1, "it is a file");
}

class TraceOfOwnWeights : public testing::Test {
 protected:
  void save(const std::string& name, std::vector<int64_t> shape, float begin = 0.1f) {
    int64_t size = 1;
    for (const int64_t n : shape) size *= n;
    std::vector<float> numbers;
    for (int64_t i = 0; i < size; ++i)
      numbers.push_back(begin + 0.25f * static_cast<float>(i * i % 7) - 0.5f);
    std::filesystem::create_directories(scratch.path() / "w");
    scratch.write("w/" + name + ".npy", write_npy(shape, std::span<const float>(numbers)));
  }
  void SetUp() override {
    save("w_q", {6, 8});
    save("w_k", {6, 4});
    save("w_v", {6, 3});
    save("w_o", {6, 6});
    save("b_q", {8});
    save("../x", {5, 6});
  }
  std::string traced(const std::string& more = "--heads 2") const {
    return "--weights " + (scratch / "w") + " --input " + (scratch / "x.npy") + " " + more;
  }
  void refused(const std::string& part, const std::string& more = "--heads 2", int status = 1) const {
    expect_error(run_tool("trace " + traced(more)), status, part);
  }

  ScratchFolder scratch;
};

TEST_F(TraceOfOwnWeights, ReadsAFolder) {
  const std::string walk = walk_of(traced());
  EXPECT_THAT(walk, AllOf(HasSubstr("2 heads, d_key 4, d_value 3, scale 0.5\n"),
                          HasSubstr("k_0 = x w_k + b_k"), HasSubstr("b_q_1")));
}

TEST_F(TraceOfOwnWeights, ReadsSafetensorsAndOneMatrixAHead) {
  const auto numbers = [&](const std::string& name) {
    return std::get<std::vector<float>>(read_npy(read_file(scratch / ("w/" + name + ".npy")), name).data);
  };
  const auto q = numbers("w_q"), k = numbers("w_k"), v = numbers("w_v"), o = numbers("w_o"),
             b = numbers("b_q");
  const std::vector<NamedTensor> tensors = {{"w_q", {6, 2, 4}, std::span<const float>(q)},
                                            {"w_k", {6, 1, 4}, std::span<const float>(k)},
                                            {"w_v", {6, 1, 3}, std::span<const float>(v)},
                                            {"w_o", {2, 3, 6}, std::span<const float>(o)},
                                            {"b_q", {2, 4}, std::span<const float>(b)}};
  const std::string file = scratch.write("own.safetensors", write_safetensors(tensors));
  const std::string walk = walk_of("--weights " + file + " --input " + (scratch / "x.npy"));
  const auto without_name = [](const std::string& text) { return text.substr(text.find('\n')); };
  EXPECT_EQ(without_name(walk), without_name(walk_of(traced())));
}

TEST_F(TraceOfOwnWeights, TakesMasksAndScales) {
  EXPECT_THAT(walk_of(traced("--heads 2 --scale 0.25 --causal")),
              AllOf(HasSubstr("scale 0.25"), HasSubstr("-inf")));
  const std::vector<int32_t> bits = {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1,
                                     0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
  const std::string mask =
      scratch.write("mask.npy", write_npy(std::vector<int64_t>{5, 5}, std::span<const int32_t>(bits)));
  EXPECT_EQ(walk_of(traced("--heads 2 --mask " + mask)), walk_of(traced("--heads 2 --causal")));
  // As np.save writes np.tril(np.ones((5, 5), dtype=bool)).
  std::string booleans("\x93NUMPY\1\0v\0", 10);
  booleans += "{'descr': '|b1', 'fortran_order': False, 'shape': (5, 5), }" + std::string(58, ' ') + "\n";
  for (const int32_t bit : bits) booleans += static_cast<char>(bit);
  const std::string own = scratch.write("own.npy", booleans);
  EXPECT_EQ(walk_of(traced("--heads 2 --mask " + own)), walk_of(traced("--heads 2 --causal")));
  expect_error(run_tool("trace --heads 2 --weights " + (scratch / "w") + " --input " + own), 1,
               "expected float32 or float64, got booleans");
  save("../memory", {3, 6});
  EXPECT_THAT(walk_of(traced("--heads 2 --memory " + (scratch / "memory.npy"))), HasSubstr("[5, 3]  head 1"));
  refused("expected a mask [5,3], queries by keys, got [5,5]",
          "--heads 2 --mask " + mask + " --memory " + (scratch / "memory.npy"));
  refused("give one of them", "--heads 2 --causal --mask " + mask, 2);
}

TEST_F(TraceOfOwnWeights, TakesAnOutputOfAnyWidth) {
  save("w_o", {6, 3});
  EXPECT_THAT(walk_of(traced("--heads 2")), testing::ContainsRegex("output = z w_o . b_o +.5, 3. "));
}

TEST_F(TraceOfOwnWeights, RefusesWhatDoesNotFit) {
  refused("does not tell how many heads there are; say it with --heads", "", 2);
  refused("w_q is [6,8]; with 3 heads expected 8 numbers a row to be a multiple of 3", "--heads 3");
  save("b_q", {7});
  refused("b_q is [7]; expected 8 numbers");
  save("b_q", {8});
  save("w_k", {5, 4});
  refused("w_k is [5,4]; with 2 heads expected [6,heads * 4]");
  save("w_k", {6, 4});
  save("w_o", {7, 6});
  refused("w_o is [7,6]; with 2 heads expected 7 numbers a row to be a multiple of 2");
  save("w_o", {6});
  refused("w_o is [6]; expected a matrix, or one for each head");
  save("w_o", {6, 6}, std::numeric_limits<float>::infinity());
  refused("w_o: number 0 of 36 is not finite");
  std::filesystem::remove(scratch.path() / "w/w_o.npy");
  save("w_v", {6, 4});
  refused("w_v is [6,4]; with 2 heads expected [6,6], as there is no w_o");
  save("w_v", {6, 6});
  save("w_k", {6, 8});
  EXPECT_THAT(walk_of(traced()), HasSubstr("output = z "));
  save("../x", {5, 6, 1});
  refused("expected [tokens, d_model], got [5,6,1]");
  save("../x", {5, 7});
  refused("[5,7]");
  std::filesystem::remove(scratch.path() / "w/w_v.npy");
  refused("has no w_v");
  refused("--text is for a model folder's layer, but a layer of --weights is traced", "--heads 2 --text a",
          2);
  expect_error(run_tool("trace --weights no/such --input x"), 1, "no/such");
  expect_error(run_tool("trace --weights no/such"), 2, "--input is missing");
  expect_error(run_tool("trace --input x"), 2,
               "--input is for a layer of --weights, but a random layer is traced");
  expect_error(run_tool("trace --heads 3"), 2, "heads is 3, which does not divide d_model 8");
}

TEST(TraceVerb, TheExampleInNumPySaysHowItIsCalled) {
  if (run_shell("command -v python3").status != 0) GTEST_SKIP() << "there is no python3";
  for (const char* arguments : {"", " one two"}) {  // NumPy need not be there for this
    const ToolResult result =
        run_shell(std::string("python3 -S " + source_folder() + "/examples/check_your_layer.py") + arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, testing::StartsWith("usage: python3 " + source_folder() + "/examples/"));
    EXPECT_THAT(lines_of(result.err), testing::SizeIs(1)) << result.err;
  }
}

TEST(SlowTraceVerb, ChecksALayerWrittenInNumPy) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with numpy";
  const ToolResult result =
      run_shell(std::string(python) + " " + source_folder() + "/examples/check_your_layer.py \"$MULTIHEAD\"");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("weights_1  differs by"), HasSubstr("output     differs by")));
}

}  // namespace
}  // namespace mh
