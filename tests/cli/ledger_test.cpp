// multihead ledger: one layer, comparisons, whole models.
#include <nlohmann/json.hpp>

#include "multihead/folders/model_folder.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/model_ledger.h"
#include "multihead/models/translator_shape.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string output_of(const std::string& arguments) {
  const ToolResult result = run_tool("ledger " + arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

std::string table_of(const std::string& arguments) {
  const std::string table = output_of(arguments);
  for (const std::string& line : lines_of(table)) EXPECT_LE(line.size(), 80u) << line;
  return table;
}

nlohmann::json json_of(const std::string& arguments) {
  return nlohmann::json::parse(output_of("--json " + arguments));
}

void expect_part(const nlohmann::json& found, const LedgerPart& expected) {
  EXPECT_EQ(found["parameters"], expected.parameters);
  EXPECT_EQ(found["multiply_adds"], expected.multiply_adds);
  EXPECT_EQ(found["flops"], expected.flops());
  EXPECT_EQ(found["exponentials"], expected.exponentials);
  EXPECT_EQ(found["bytes"]["kept"], expected.kept_bytes);
}

TEST(LedgerVerb, PrintsALayer) {
  EXPECT_THAT(table_of("--geometry bloem-narrow-shared --tokens 10"),
              AllOf(HasSubstr("one layer, bloem-narrow-shared\nd_model 512, 8 heads, d_key 64, d_value 64\n"
                              "10 queries, 10 keys (their own rows);\n"
                              "attention is computed by the fused kernel"),
                    HasSubstr("total                          12,288")));
  EXPECT_THAT(table_of("--tokens 10 --path composed --causal"),
              AllOf(HasSubstr("keys (their own rows), causal;\n"), HasSubstr("by the composed path")));
}

TEST(LedgerVerb, SaysInJsonWhatTheLibrarySays) {
  const auto json = json_of(
      "--geometry multi-query --d-model 14 --heads 4 --d-key 3 --d-value 2 --tokens 5 "
      "--keys 5");
  const Ledger expected = ledger({.heads = 4, .d_key = 3, .d_value = 2, .key_heads = 1}, 14, 5, 5,
                                 {.keys = LedgerOptions::Keys::kMemory});
  expect_part(json["total"], expected.total());
  ASSERT_EQ(json["parts"].size(), expected.parts.size());
  for (size_t i = 0; i < expected.parts.size(); ++i) {
    EXPECT_EQ(json["parts"][i]["part"], expected.parts[i].name);
    expect_part(json["parts"][i], expected.parts[i]);
  }
  EXPECT_EQ(json["path"], "fused");
}

TEST(LedgerVerb, TakesAnyDescriptionOfHeads) {
  const ScratchFolder scratch;
  const std::string fields = R"({"scores":"merged","biases":"none","d_key":3})";
  const LedgerPart expected =
      ledger({.heads = 2, .d_key = 3, .scores = Scores::kMerged, .biases = Biases::kNone}, 7, 11, 11).total();
  const std::string sizes = " --d-model 7 --heads 2 --tokens 11";
  expect_part(json_of("--geometry '" + fields + "'" + sizes)["total"], expected);
  expect_part(json_of("--geometry " + scratch.write("heads.json", fields) + sizes)["total"], expected);
  const std::string zeros =
      scratch.write("zeros.json", R"({"d_key":0,"key_heads":0})");  // as config.json has
  const std::string usual = " --d-model 8 --heads 2 --tokens 11";
  EXPECT_EQ(json_of("--geometry " + zeros + usual)["total"], json_of(usual)["total"]);
}

TEST(LedgerVerb, ComparesLineByLine) {
  const std::string table = table_of("--compare tensor2tensor,bloem-wide,bloem-narrow-shared --tokens 100");
  EXPECT_THAT(table, AllOf(HasSubstr("tensor2tensor           1,048,576"),
                           HasSubstr("bloem-wide              8,388,608"), HasSubstr("times tensor2tensor"),
                           HasSubstr("bloem-wide                  8.000"),
                           HasSubstr("bloem-narrow-shared         0.012")));
  EXPECT_EQ(json_of("--compare merged,tied")["compared"].size(), 2u);
}

TEST(LedgerVerb, AddsUpAPreset) {
  const std::string table = table_of("--preset base --vocabulary-size 37000 --tokens 600");
  EXPECT_THAT(table, AllOf(HasSubstr("base\nd_model 512, 6 + 6 layers"), HasSubstr("decoder cross-attention"),
                           HasSubstr("63,082,496")));
  EXPECT_THAT(table_of("--preset tiny --compare canonical,multi-query"), HasSubstr("tiny with other heads"));
}

class LedgerOfFolder : public SmallFolder {};

TEST_F(LedgerOfFolder, AddsUpAModel) {
  const auto json = json_of(folder + " --tokens 5 --target-tokens 7");
  EXPECT_EQ(json["total"]["parameters"], model.parameter_count());
  expect_part(json["total"], model_ledger(model.config(), 5, 7).total());
  TranslatorShape shape = shape_of(model.config());
  shape.geometry = {.key_heads = 1};
  expect_part(json_of(folder + " --geometry multi-query --tokens 3")["total"],
              model_ledger(shape.config(), 3, 3).total());
  expect_error(run_tool("ledger " + folder + " --tokens 20"), 2,
               "tokens is 20; this model reads sequences of");
  expect_error(run_tool("ledger " + folder + " --d-key 20"), 2, "--d-key describes one layer");
}

TEST(LedgerVerb, AddsUpACausalModel) {
  const std::string golden = goldens_folder() + "/gemma2/capped";
  const auto json = json_of(golden + " --tokens 5");
  const ModelFolder folder = load_model_folder(golden);
  EXPECT_EQ(json["total"]["parameters"], folder.model->parameter_count());
  expect_part(json["total"],
              model_ledger(dynamic_cast<const CausalModel&>(*folder.model).config(), 5).total());
  EXPECT_THAT(table_of(golden + " --tokens 5"),
              AllOf(HasSubstr("d_model 24, 3 layers, 6 heads, d_ff 29\n5 tokens, vocabulary 37;"),
                    HasSubstr("logit cap ")));
  expect_error(run_tool("ledger " + golden + " --geometry multi-query"), 2,
               "--geometry needs a translator; a causal model is counted as it is");
}

TEST(LedgerVerb, RefusesInOneLine) {
  const auto refused = [](const std::string& arguments, const std::string& part, int status = 2) {
    expect_error(run_tool("ledger " + arguments), status, part);
  };
  refused("--geometry canonicle", "geometry 'canonicle' is unknown; choose one of canonical, tensor2tensor");
  refused("--heads 3 --d-model 7",
          "heads is 3, which does not divide d_model 7; set d_key, for example to 2");
  refused("--geometry '{\"score\":1}'", "--geometry: ");
  refused("--d-key 0", "--d-key: expected an integer from 1 to 1024, got 0");
  refused("--heads 0", "--heads: expected an integer from 1 to 65536, got 0");
  refused("--geometry '{\"d_key\":0}'", "--geometry: d_key: expected an integer from 1 to 1024, got 0");
  refused("--geometry no/such.json", "cannot read no/such.json", 1);
  refused("--geometry merged --key-heads 2", "merged scores already share their keys");
  refused("--compare canonical,,tied", "--compare: expected names between commas, got canonical,,tied");
  refused("--compare tied --geometry merged", "name all geometries by --compare");
  refused("--preset huge", "preset 'huge' is unknown; choose one of tiny, small, base, big");
  refused("--preset tiny a-folder", "give one of them");
  refused("--tokens 0", "--tokens: expected an integer from 1 to 1048576, got 0");
  refused("--tokens 1048576 --heads 65536 --d-model 65536 --d-key 1024",
          "the ledger's counts go beyond 2^63");
  refused("no-such-folder", "no model folder no-such-folder", 1);
}

}  // namespace
}  // namespace mh
