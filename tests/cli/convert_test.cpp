// multihead convert: writes folders with other heads and compares them with the old ones.
#include <nlohmann/json.hpp>

#include "multihead/models/encoder_decoder.h"
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
  EXPECT_LT(pruned["difference"]["logits"], 1e-3);
  EXPECT_LT(pruned["parameters"]["after"], pruned["parameters"]["before"]);
  EXPECT_EQ(load_model_folder(scratch / "pruned").translator().config().encoder_heads, 2);
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
  refused("--to merged --key-heads 1", "--key-heads says nothing to --to merged");
  refused("--to collaborative", "--shared-size is missing");
  refused("--to grouped --key-heads 2",
          "encoder.0.self_attention: key_heads is 2; expected a divisor of the 3 heads");
  refused("--permute 0,1", "the order 0,1 is no permutation of heads 0 ... 2");
  refused("--permute 0:1", "--permute: expected numbers of heads between commas, got 0");
  refused("--permute 0,1,2 --attention encoder.4.self_attention", "this model has no attention");
  refused("--remove encoder.0.self_attention", "encoder.0.self_attention");
  refused("--merge-equal", "no two heads of a layer have equal queries, keys and values");
  refused("--to merged --source x", "--source and --target go together");
  refused("--to merged --source /no/such --target /no/such", "cannot read /no/such", 1);
  expect_error(run_tool("convert " + folder + " --to merged --out " + folder), 2,
               "exists; name a new folder");
  expect_error(run_tool("convert /no/such --to merged --out " + (scratch / "never")), 1,
               "no model folder /no/such");
}

}  // namespace
}  // namespace mh
