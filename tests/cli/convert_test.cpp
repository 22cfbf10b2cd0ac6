// multihead convert: writes folders with other heads and compares them with the old ones.
#include <nlohmann/json.hpp>

#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ConvertVerb : public SmallFolder {
 protected:
  nlohmann::json converted(const std::string& flags, const std::string& out, const std::string& from = "") {
    const ToolResult result = run_tool("convert " + (from.empty() ? folder : scratch / from) +
                                       " --json --out " + (scratch / out) + " " + flags);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out);
  }
  void refused(const std::string& flags, const std::string& part, int status = 2) {
    expect_error(run_tool("convert " + folder + " --out " + (scratch / "never") + " " + flags), status, part);
    EXPECT_FALSE(std::filesystem::exists(scratch / "never"));
  }
  std::string translation_of(const std::string& of) {
    return run_tool("translate --model " + of, "a small dog\nthe cat runs\n").out;
  }
};

TEST_F(ConvertVerb, MergesAndSeparatesAgain) {
  const auto there = converted("--to merged", "merged");
  EXPECT_EQ(there["exact"], true);
  EXPECT_LT(there["difference"]["logits"], 1e-3);
  EXPECT_GT(there["parameters"]["after"], there["parameters"]["before"]);
  EXPECT_EQ(there["parameters"]["before"], model.parameter_count());
  converted("--to canonical", "back", "merged");
  EXPECT_EQ(translation_of(scratch / "back"), translation_of(folder));
  EXPECT_EQ(load_model_folder(scratch / "back").model_type, "marian");
  EXPECT_TRUE(load_model_folder(scratch / "merged").tokenizer.has_value());
}

TEST_F(ConvertVerb, RemovesAndPermutesHeads) {
  converted("--permute 2,0,1 --attention encoder.1.self_attention", "permuted");
  EXPECT_EQ(translation_of(scratch / "permuted"), translation_of(folder));
  const auto pruned =
      converted("--remove encoder.0.self_attention.1 --remove encoder.1.self_attention.2", "pruned");
  EXPECT_LT(pruned["difference_from_muted"]["logits"], 1e-3);
  EXPECT_LT(pruned["parameters"]["after"], pruned["parameters"]["before"]);
  EXPECT_EQ(shape_of(load_model_folder(scratch / "pruned").translator().config()).encoder_heads, 2);
}

TEST_F(ConvertVerb, SaysHowMuchRemovedHeadsMattered) {
  const std::string head = "decoder.1.cross_attention.0",
                    files = "'" + scratch.write("t", "a cat\nthe dog\n") + "'";
  const std::string on = " --source " + files + " --target " + files, out = scratch / "mattered";
  const ToolResult result = run_tool("convert " + folder + " --out " + out + " --remove " + head + on);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find("The same function"), std::string::npos) << result.out;
  EXPECT_THAT(result.out, AllOf(HasSubstr("largest difference from the given model on 2 pairs of sentences"),
                                HasSubstr("Another function: the removed heads mattered"),
                                HasSubstr("It is the given model with these heads muted, but for rounding")));

  const auto json = converted("--remove " + head + on, "mattered-too");
  EXPECT_EQ(json["exact"], false);
  EXPECT_LT(json["difference_from_muted"]["logits"], 1e-3);
  EXPECT_GT(json["difference"]["logits"], 0.05) << "remove another head";
  // As `score` has it, before and after, the end token counted.
  const auto mean = [&](const std::string& of) {
    double sum = 0;
    int tokens = 0;
    for (const auto& line : lines_of(run_tool("score " + of + on + " --per-token").out)) {
      std::istringstream numbers(line);
      double number = 0;
      numbers >> number;  // the sum
      for (; numbers >> number; ++tokens) sum += number;
    }
    return sum / tokens;
  };
  const double before = json["mean_log_probability"]["before"], after = json["mean_log_probability"]["after"];
  EXPECT_NEAR(before, mean(folder), 1e-5);
  EXPECT_NEAR(after, mean(out), 1e-5);
  EXPECT_GT(std::abs(before - after), 1e-3);
}

TEST_F(ConvertVerb, SaysWhenRemovedHeadsDidNothing) {
  EncoderDecoder silent(make_shape(tokenizer).config());
  silent.initialise(3);
  int found = 0;
  silent.visit([&](const std::string& name, Parameter& parameter) {
    if (name != "encoder.0.self_attention.w_o") return;
    ++found;
    const MatrixView rows = parameter.value.view();
    for (int64_t i = rows.rows / 3; i < 2 * rows.rows / 3; ++i) {  // head 1 of 3
      for (int64_t j = 0; j < rows.cols; ++j) rows(i, j) = 0;
    }
    parameter.changed();
  });
  ASSERT_EQ(found, 1);
  save_model_folder(scratch / "silent", silent, {.tokenizer = &tokenizer});
  const ToolResult result = run_tool("convert " + (scratch / "silent") + " --out " + (scratch / "without") +
                                     " --remove encoder.0.self_attention.1");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Without the removed heads nothing changes on what was compared"));
}

TEST_F(ConvertVerb, SaysByHowMuchOtherFunctionsDiffer) {
  const std::string lines = scratch.write("lines", "a cat runs\nthe dog\n");
  const ToolResult result = run_tool("convert " + folder + " --to grouped --out " + (scratch / "one-key") +
                                     " --source " + lines + " --target " + lines);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("one head of keys and values"),
                                HasSubstr("on 2 pairs of sentences"), HasSubstr("Another function")));
  EXPECT_GT(converted("--to collaborative --shared-size 12", "collaborative")["difference"]["logits"], 1e-4);
  EXPECT_LT(converted("--to collaborative --shared-size 24", "exact")["difference"]["logits"], 1e-3);
  EXPECT_EQ(run_tool("translate --model " + (scratch / "collaborative"), "a cat\n").status, 0);
}

TEST_F(ConvertVerb, RefusesInOneLine) {
  refused("", "expected one of --to, --permute, --remove and --merge-equal, got none");
  refused("--to merged --permute 0,1,2", "got several");
  refused("--to canonicle", "--to: expected canonical|merged|grouped|collaborative, got canonicle");
  refused("--to merged --key-heads 1", "--key-heads has no meaning with --to merged");
  refused("--to collaborative", "--shared-size is missing");
  refused("--to grouped --key-heads 2",
          "encoder.0.self_attention: key_heads is 2; expected a divisor of the 3 heads");
  refused("--permute 0,1", "the order 0,1 is no permutation of heads 0 ... 2");
  refused("--permute 0:1", "--permute: expected numbers of heads between commas, got 0");
  refused("--permute 0,1,2 --attention encoder.4.self_attention", "this model has no attention");
  refused("--remove encoder.0.self_attention", "encoder.0.self_attention");
  refused("--merge-equal", "no two heads of a layer have equal queries, keys and values");
  const std::string lines = scratch.write("lines", "a cat\n");
  refused("--to merged --seed 3 --source " + lines + " --target " + lines,
          "--seed has no meaning with --source");
  refused("--to merged --source x", "--source and --target go together");
  refused("--to merged --source /no/such --target /no/such", "cannot read /no/such", 1);
  expect_error(run_tool("convert " + folder + " --to merged --out " + folder), 2,
               "exists; name a new folder");
  expect_error(run_tool("convert /no/such --to merged --out " + (scratch / "never")), 1,
               "no model folder /no/such");
}

}  // namespace
}  // namespace mh
