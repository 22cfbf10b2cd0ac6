// Finite weights that overflow: every verb that runs a model ends with the same error and prints no number.
#include <filesystem>
#include <string>
#include <utility>

#include "tests/cli/small_folder.h"
#include "tests/support/edit_weights.h"
#include "tests/support/places.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

const std::string kGoldens = goldens_folder() + "/";

class NotFiniteVerbs : public SmallFolder {
 protected:
  /// A copy of a golden folder, in quotes, whose tensors with this ending are huge.
  std::string damaged(const std::string& golden, const std::string& ending) {
    const fs::path copy = scratch.path() / ("golden" + std::to_string(copies_++));
    fs::copy(kGoldens + golden, copy, fs::copy_options::recursive);
    test::set_tensors(copy / "model.safetensors", ending, test::huge);
    return "'" + copy.string() + "'";
  }
  void expect_refused(const std::string& line, const std::string& input = "") {
    SCOPED_TRACE(line);
    expect_error(run_tool(line, input), 1, "are not finite numbers; its weights may be damaged");
  }

 private:
  int copies_ = 0;
};

TEST_F(NotFiniteVerbs, Embed) {
  const std::string name = damaged("sentences/dense", "layer.0.attention.self.query.weight"),
                    lines = "'" + scratch.write("lines", "two dogs run .\nthe cat\n") + "'";
  for (const char* format : {"jsonl", "npy", "raw"})
    expect_refused("embed " + name + " -i " + lines + " --format " + format);
  expect_refused("embed " + name + " --similarity 'two dogs run .' 'the cat'");
  expect_refused("embed " + name + " --nearest 1 " + lines, "the cat\n");
  expect_refused("embed " + name + " -i " + lines + " -o '" + scratch / "vectors" + "'");
  EXPECT_FALSE(fs::exists(scratch / "vectors"));
  // The last layer of sentence-transformers' own.
  expect_refused("embed " + damaged("sentences/dense", "layer.1.output.LayerNorm.weight") + " -i " + lines);
}

TEST_F(NotFiniteVerbs, Heads) {
  const std::string lines = "'" + scratch.write("lines", "two dogs run .\nthe cat\n") + "'";
  for (const auto& [golden, ending] : {std::pair{"sentences/dense", "layer.0.attention.self.query.weight"},
                                       {"generate/gpt2", "h.0.attn.c_attn.weight"}}) {
    const std::string heads = "heads " + damaged(golden, ending);
    expect_refused(heads + " -i " + lines);
    expect_refused(heads + " -i " + lines + " --json");
    expect_refused(heads + " --text 'two dogs run .'");
    expect_refused(heads + " --text 'two dogs run .' --svg '" + scratch / "heads.svg" + "' --save '" +
                   scratch / "weights.safetensors" + "'");
    EXPECT_FALSE(fs::exists(scratch / "heads.svg"));
    EXPECT_FALSE(fs::exists(scratch / "weights.safetensors"));
  }
}

TEST_F(NotFiniteVerbs, CausalModels) {
  const std::string name = damaged("generate/gpt2", "h.0.attn.c_attn.weight"),
                    lines = "'" + scratch.write("lines", "two dogs run\nthe sky\n") + "'";
  for (const char* flags : {"", " --per-line", " --per-token", " --document"})
    expect_refused("score " + name + " -i " + lines + flags);
  for (const char* flags : {"", " --temperature 0.7 --seed 3", " --beam-size 3"})
    expect_refused("generate " + name + " --prompt 'two dogs' --max-new-tokens 3" + flags);
}

TEST_F(NotFiniteVerbs, MaskedWords) {
  expect_refused("fill " + damaged("fill/bert", "layer.0.attention.self.query.weight") +
                 " --text 'the [MASK] runs'");
}

TEST_F(NotFiniteVerbs, Translators) {
  const std::string one = "'" + scratch.write("one", kText[0] + "\n") + "'",
                    other = "'" + scratch.write("other", kText[1] + "\n") + "'", name = "'" + folder + "'";
  // Every score of the encoder's first layer is -infinity.
  for (const auto& [ending, value] : {std::pair{"q_proj.weight", 0.0f},
                                      {"k_proj.weight", 0.0f},
                                      {"q_proj.bias", 3e38f},
                                      {"k_proj.bias", -3e38f}})
    test::set_tensors(folder + "/model.safetensors", std::string("encoder.layers.0.self_attn.") + ending,
                      [value = value](size_t) { return value; });
  expect_refused("translate " + name + " -i " + one);
  expect_refused("score " + name + " --source " + one + " --target " + other);
  expect_refused("heads " + name + " -i " + one);
  expect_refused("heads " + name + " -i " + one + " --target " + other);
  expect_refused("heads " + name + " --text '" + kText[0] + "' --target-text '" + kText[1] + "'");
  expect_refused("embed " + name + " -i " + one + " --quiet");
  expect_refused("trace " + name + " --text '" + kText[0] + "' --target-text '" + kText[1] +
                 "' --attention encoder.1.self_attention");
  expect_refused("convert " + name + " --permute 2,0,1 --out '" + scratch / "made" + "'");
  EXPECT_FALSE(fs::exists(scratch / "made"));
}

}  // namespace
}  // namespace mh
