// multihead heads steer, and --steer of other verbs, on a small translator with random weights and others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsSteer : public SmallFolder {
 protected:
  HeadsSteer() {
    scratch.write("toward", "the small dog sees\n\na cat runs\nsmall cats\n");
    scratch.write("away", "dogs see the cats\nthe dog\n");
    scratch.write("other", "a cat runs\nthe dog sees a cat\n");
  }
  ToolResult steer(const std::string& flags) const {
    return run_tool("heads steer '" + folder + "' --quiet " + flags);
  }
  std::string file(const std::string& name) const { return "'" + scratch / name + "' "; }
  /// Makes a direction, and returns its path in quotes.
  std::string direction(const std::string& site = "decoder.0.output") const {
    const ToolResult made = steer(made_of(site) + "--save " + file(site + ".safetensors"));
    EXPECT_EQ(made.status, 0) << made.err;
    return file(site + ".safetensors");
  }
  std::string made_of(const std::string& site) const {
    return "--toward " + file("toward") + "--away " + file("away") + "--site " + site + " ";
  }
};

TEST_F(HeadsSteer, ShowsTheDirectionItsEffectAndItsDamage) {
  const ToolResult result =
      steer(made_of("decoder.1.output") +
            "--text 'a cat' --text 'the dog' --answer dogs --answer cats --answer small --answer runs "
            "--prefix 'the small' --other " +
            file("other") + "--strength -3 --strength 0.5 --strength 1e6");
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"direction at decoder.1.output: mean of the mean rows of 3 texts less that of", "\nlength ",
        "; the rows that it was made of: ",
        "\n strength          dogs          cats         small          loss    perplexity\n", "\n       -3 ",
        "\n      0.5 ", "\n    1e+06 ", "\n strength          runs\n", "the mean over 2 texts",
        "perplexity:\ne to the loss."})
    EXPECT_THAT(result.out, HasSubstr(part));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
}

TEST_F(HeadsSteer, JsonHasAllOfIt) {
  const ToolResult result =
      steer(made_of("encoder.1.self_attention.heads") +
            "--head 2 --text 'a cat' --answer dogs --answer cats --other " + file("other") +
            "--other-target " + file("other") + "--json --mute encoder.0.self_attention.1");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["direction"]["site"], "encoder.1.self_attention.heads");
  EXPECT_EQ(json["direction"]["head"], 2);
  EXPECT_EQ(json["direction"]["columns"], 8);
  EXPECT_EQ(json["direction"]["weights_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(json["options"]["rows"], nullptr);
  EXPECT_EQ(json["texts"][0]["answers"][1]["text"], "cats");
  EXPECT_EQ(json["texts"][0]["target"], nlohmann::json({"<start>"}));
  EXPECT_EQ(json["other"]["texts"], 2);
  ASSERT_EQ(json["doses"].size(), 7u);
  EXPECT_EQ(json["doses"][0]["strength"], -4);
  EXPECT_EQ(json["doses"][3]["log_probabilities"][0], json["doses"][3]["log_probability"]);
  EXPECT_GT(json["doses"][3]["perplexity"], 1);
  const ToolResult other =
      steer("--direction " + direction() + "--text 'a cat' --answer dogs --json --strength 0.1");
  EXPECT_EQ(nlohmann::json::parse(other.out)["doses"][0]["strength"], 0.1);
  EXPECT_EQ(nlohmann::json::parse(other.out)["doses"][0]["loss"], nullptr);
}

TEST_F(HeadsSteer, SaysWhatADirectionIsWithoutAQuestion) {
  const ToolResult saved = steer(made_of("decoder.1.cross_attention.contributions.0") +
                                 "--rows last --save " + file("d.safetensors"));
  ASSERT_EQ(saved.status, 0) << saved.err;
  EXPECT_THAT(saved.out, HasSubstr("direction at decoder.1.cross_attention.output: mean of the last rows"));
  EXPECT_THAT(saved.out, Not(HasSubstr("strength")));
  EXPECT_FALSE(scratch.read("d.safetensors").empty());
}

TEST_F(HeadsSteer, IsTheSameFromItsFileAndInOtherVerbs) {
  const std::string asked = "--text 'a cat' --answer dogs --other " + file("other") + "--strength 2 --json ";
  const std::string saved = direction();
  auto made = nlohmann::json::parse(steer(made_of("decoder.0.output") + asked).out),
       read = nlohmann::json::parse(steer("--direction " + saved + asked).out);
  EXPECT_EQ(read["doses"], made["doses"]);
  EXPECT_EQ(read["direction"], made["direction"]);
  // A text's loss is that of `score` with --steer.
  const ToolResult scored =
      run_tool("score '" + folder + "' --source " + file("other") + "--target " + file("other") + "--steer " +
               scratch / "decoder.0.output.safetensors" + "=2");
  ASSERT_EQ(scored.status, 0) << scored.err;
  double sum = 0;
  for (const std::string& line : lines_of(scored.out)) sum += std::stod(line);
  const auto whole = nlohmann::json::parse(steer("--direction " + saved + "--other " + file("other") +
                                                 "--other-target " + file("other") + "--strength 2 --json")
                                               .out);
  EXPECT_NEAR(whole["doses"][0]["loss"].get<double>() * whole["other"]["tokens"].get<double>(), -sum, 1e-3);
}

TEST_F(HeadsSteer, EveryVerbThatMutesSteers) {
  const std::string saved = direction(), lines = file("other");
  for (const std::string& verb :
       {"translate '" + folder + "' --max-length 7 --n-best 2 -i " + lines,
        "heads '" + folder + "' --json -i " + lines, "heads stats '" + folder + "' --json -i " + lines,
        "heads patch '" + folder +
            "' --clean 'a cat runs' --corrupt 'the dog runs' --answer dogs --wrong cats ",
        "heads importance '" + folder + "' -i " + lines + "--target " + lines}) {
    SCOPED_TRACE(verb);
    const auto with = [&](const std::string& flags) {
      const ToolResult found = run_tool(verb + flags + " --quiet");
      EXPECT_EQ(found.status, 0) << found.err;
      return found.out;
    };
    const std::string path = scratch / "decoder.0.output.safetensors", whole = with("");
    EXPECT_TRUE(with("--steer '" + path + "=0'") == whole);
    EXPECT_TRUE(with("--steer '" + path + "=9'") != whole);
    EXPECT_TRUE(with("--steer '" + path + "=9' --steer '" + path + "=9'") !=
                with("--steer '" + path + "=9'"));
    EXPECT_EQ(with("--steer '" + path + "'"), with("--steer '" + path + "=1'"));
  }
  const ToolResult compared =
      run_tool("translate '" + folder + "' -i " + lines + "--compare --quiet --steer '" +
               scratch / "decoder.0.output.safetensors" + "=50'");
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("WITH CHANGED HEADS"));
}

TEST_F(HeadsSteer, GeneratesWithADirection) {
  const std::string gpt = "'" + std::string(goldens_folder()) + "/generate/gpt2' ",
                    made = "heads steer " + gpt + "--quiet --site decoder.1.output --toward ";
  ASSERT_EQ(run_tool(made + file("toward") + "--save " + file("g=1.safetensors")).status, 0);
  const auto generated = [&](const std::string& flags) {
    return run_tool("generate " + gpt + "--greedy --max-new-tokens 9 --json --prompt two " + flags);
  };
  const std::string path = scratch / "g=1.safetensors";  // a name with =
  EXPECT_EQ(generated("--steer '" + path + "=0'").out, generated("").out);
  EXPECT_NE(generated("--steer '" + path + "=3'").out, generated("").out);
  EXPECT_EQ(generated("--steer '" + path + "'").out, generated("--steer '" + path + "=1'").out);
  expect_error(generated("--steer '" + path + "=1e39'"), 2, "=: expected a finite number, got 1e39");
  expect_error(generated("--steer '" + path + "=3e38'"), 2, "is too large for float32");
}

TEST_F(HeadsSteer, SaysInOneLineWhatIsWrong) {
  const std::string asked = "--text 'a cat' --answer dogs ", saved = direction();
  expect_error(steer(asked), 2,
               "a direction is needed: give --toward FILE with --site SITE, or --direction FILE");
  expect_error(steer("--toward " + file("toward") + asked), 2, "--toward: give --site");
  expect_error(steer(made_of("decoder.0.output")), 2,
               "nothing is asked: give --text and --answer, --other FILE, or --save FILE");
  expect_error(steer(made_of("decoder.0.output") + "--direction " + saved + asked), 2, "--direction");
  expect_error(steer("--direction " + saved + "--text 'a cat'"), 2, "--answer");
  expect_error(steer("--direction " + saved + asked + "--strength much"), 2, "--strength: expected a number");
  expect_error(steer("--direction " + saved + asked + "--strength 1e39"), 2, "--strength: expected a number");
  expect_error(steer("--direction " + file("toward") + asked), 1, "toward");
  expect_error(steer(made_of("decoder.5.output") + asked), 2, "no site 'decoder.5.output'");
  expect_error(steer(made_of("decoder.0.output") + "--head 1 " + asked), 2, "--head: there is no head 1");
  scratch.write("blank", " \n\n");
  expect_error(steer("--toward " + file("blank") + "--site decoder.0.output " + asked), 1,
               "no line has words");
  scratch.write("empty", "");
  expect_error(steer("--direction " + saved + "--other " + file("empty")), 1, "no line");
  // Weights of another training.
  model.initialise(5);
  const std::string again = scratch / "again";
  save_model_folder(again, model, {.tokenizer = &tokenizer});
  for (const char* verb : {"translate ", "heads steer --text 'a cat' --answer dogs "}) {
    const bool steers = std::string(verb).starts_with("heads");
    expect_error(
        run_tool(verb + ("'" + again + "' ") + (steers ? "--direction " : "--steer ") + saved, "a cat\n"), 2,
        "decoder.0.output.safetensors was made with other weights");
  }
  expect_error(run_tool("generate '" + std::string(goldens_folder()) +
                        "/generate/gpt2' --prompt two --steer " + saved),
               2,
               "decoder.0.output.safetensors has 24 numbers, and 'decoder.0.output' of this model 21; make "
               "one with this model");
}

}  // namespace
}  // namespace mh
