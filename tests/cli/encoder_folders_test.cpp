// What info, tokenize and heads say of models that do not translate.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "multihead/base/file.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::string kEncoders = goldens_folder() + "/sentences/", kLines = kEncoders + "sentences.txt";

TEST(EncoderFolders, AreShownByInfo) {
  const ToolResult table = run_tool("info " + kEncoders + "dense");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(
      table.out,
      AllOf(HasSubstr("roberta, post-norm encoder\n"),
            HasSubstr("2 layers of 2 heads (size 7), feed-forward 23"), HasSubstr("learned, up to 31 tokens"),
            HasSubstr("22; 1 type of token"), HasSubstr("on top        pooler\n"),
            HasSubstr(
                "vectors of 9 numbers from up to 29 tokens: mean of the states, a dense layer, divided by "
                "its length, a dense layer\n"),
            HasSubstr("encoder.1.self_attention    heads 0 to 1")));
  for (const std::string& line : lines_of(table.out)) EXPECT_LE(line.size(), 150u);
  const json bert = json::parse(run_tool("info --json " + goldens_folder() + "/bert/pretraining").out);
  EXPECT_EQ(bert["model_type"], "bert");
  EXPECT_EQ(bert["encoder"], json::parse(R"({"layers": 3, "heads": 3, "d_ff": 31})"));
  EXPECT_EQ(bert["predicts"], json::parse(R"(["pooler", "masked words"])"));
  EXPECT_EQ(bert["vocabulary"], json::parse(R"({"source": 61, "token_types": 2})"));
  EXPECT_TRUE(bert["tokenizer"].is_null());
  EXPECT_FALSE(bert.contains("sentences"));
  const json sentences = json::parse(run_tool("info --json " + kEncoders + "modes").out)["sentences"];
  EXPECT_EQ(sentences["dimension"], 6 * 14);
  EXPECT_EQ(sentences["longest"], 13);
  EXPECT_EQ(sentences["pooling"][5], "lasttoken");
  const json gpt2 = json::parse(run_tool("info --json " + goldens_folder() + "/gpt2/tied").out);
  EXPECT_TRUE(gpt2.contains("decoder"));
}

TEST(EncoderFolders, SayHowManyNumbersOfAVectorAreKept) {
  const ScratchFolder scratch;
  const std::string model = scratch / "model";
  std::filesystem::copy(kEncoders + "dense", model, std::filesystem::copy_options::recursive);
  json config = json::parse(read_file(model + "/config_sentence_transformers.json"));
  config["truncate_dim"] = 5;
  scratch.write("model/config_sentence_transformers.json", config.dump());
  EXPECT_THAT(run_tool("info '" + model + "'").out,
              AllOf(HasSubstr("vectors of 5 numbers from up to 29 tokens"),
                    HasSubstr("a dense layer, the first 5 numbers\n")));
  const auto cut = json::parse(run_tool("embed '" + model + "'", "two dogs run .\n").out)["vector"],
             whole =
                 json::parse(run_tool("embed '" + kEncoders + "dense'", "two dogs run .\n").out)["vector"];
  EXPECT_EQ(cut, json(whole.begin(), whole.begin() + 5));
}

TEST(EncoderFolders, AreTokenised) {
  EXPECT_EQ(run_tool("tokenize --special-tokens --model " + kEncoders + "dense", "two dogs run .\n").out,
            "[CLS] two dogs run . [SEP]\n");
}

TEST(EncoderFolders, ShowTheirHeads) {
  const std::string heads = "heads " + kEncoders + "dense ";
  const ToolResult table = run_tool(heads + "--quiet -i '" + kLines + "'");
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, testing::StartsWith("7 sentences\n"));
  EXPECT_THAT(table.out, HasSubstr("encoder.1.self_attention"));
  const ToolResult text =
      run_tool(heads + "--text 'two dogs run .' --json --head encoder.1.self_attention.0");
  const json seen = json::parse(text.out)["text"];
  EXPECT_EQ(seen["source_tokens"], json::parse(R"(["[CLS]", "two", "dogs", "run", ".", "[SEP]"])"));
  double sum = 0;
  for (const double weight : seen["weights"]["encoder.1.self_attention.0"][2]) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-5);
  const std::string picture = heads + "--text 'two dogs run .' --numbers --head encoder.1.self_attention.0";
  EXPECT_NE(run_tool(picture + " --mute encoder.0.self_attention.1").out, run_tool(picture).out);
  const ScratchFolder scratch;
  const std::string tree =
      "1\ttwo\ttwo\tNUM\t_\t_\t2\tnummod\t_\t_\n2\tdogs\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
      "3\trun\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n";
  const ToolResult trees =
      run_tool(heads + "--least-support 1 --conllu '" + scratch.write("trees", tree) + "'");
  EXPECT_THAT(trees.out, HasSubstr("\nnummod ")) << trees.err;
  EXPECT_EQ(run_tool(heads + "--text 'two dogs' --svg '" + (scratch / "a.svg") + "' --save '" +
                     (scratch / "w") + "'")
                .status,
            0);
  expect_error(run_tool(heads + "--text 'two dogs' --target-text x"), 2,
               "a roberta model, which reads one text");
  expect_error(run_tool(heads + "-i '" + kLines + "' --target '" + kLines + "'"), 2,
               "leave out translations and alignments");
}

// The reason, what is taken, and what can be done with this model instead.
TEST(EncoderFolders, AreRefusedWhereTheyAreNotTaken) {
  const std::string data = goldens_folder() + "/";
  const std::pair<std::string, std::string> models[] = {{kEncoders + "dense", "roberta"},
                                                        {data + "bert/masked", "bert"}};
  for (const auto& [model, type] : models) {
    const std::tuple<std::string, const char*, const char*> verbs[] = {
        {"ledger " + model, "ledger", "give its sizes by --d-model, --heads and --key-heads"}};
    for (const auto& [command, verb, instead] : verbs) {
      const ToolResult result = run_tool(command);
      expect_error(
          result, 2,
          model + " holds a " + type + " model, but " + verb + " takes the folder of a translator (");
      EXPECT_THAT(result.err, HasSubstr(instead));
    }
  }
  EXPECT_THAT(run_tool("ledger --help").out, HasSubstr("The folder of a translator or a causal model"));
}

// A head less: in the family's format where that can hold it, else in our own, on demand.
TEST(EncoderFolders, AndOthersAreConverted) {
  const ScratchFolder scratch;
  const std::string data = goldens_folder() + "/", out = scratch / "out";
  const std::string bert = "convert " + data + "bert/masked --remove encoder.0.self_attention.1 --out ";
  expect_error(run_tool(bert + out), 2,
               "the config.json of bert cannot hold these heads: its heads have d_model / "
               "num_attention_heads columns");
  EXPECT_FALSE(std::filesystem::exists(out));
  const ToolResult own = run_tool(bert + out + " --own-format");
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("It is the given model with these heads muted, but for rounding"));
  EXPECT_EQ(json::parse(run_tool("info --json " + out).out)["model_type"], "bert");
  expect_error(run_tool("convert " + data + "bert/masked --to merged --out " + out + "2"), 2,
               "it has heads of one kind only");
  expect_error(run_tool("convert " + data + "bert/masked --permute 1,0 --target x --out " + out + "2"), 2,
               "--target is for translators");
  EXPECT_FALSE(std::filesystem::exists(out + "2"));
  const ToolResult gguf =
      run_tool("convert " + data + "gguf/untied_llama3.gguf --dtype bfloat16 --out " + out + "3");
  EXPECT_EQ(gguf.status, 0) << gguf.err;
  EXPECT_THAT(gguf.out, HasSubstr("parameters in BF16"));
}

// Encoders, and causal models in folders and GGUF files.
TEST(EncoderFolders, AreTraced) {
  const std::string data = goldens_folder() + "/";
  const std::pair<std::string, std::string> models[] = {
      {kEncoders + "dense", "encoder"}, {data + "fill/bert", "encoder"}, {data + "generate/gpt2", "decoder"}};
  for (const auto& [model, stack] : models) {
    const std::string trace = "trace '" + model + "' --text 'two dogs' ", name = stack + ".1.self_attention";
    const ToolResult first = run_tool(trace), second = run_tool(trace + "--attention " + name);
    ASSERT_EQ(second.status, 0) << second.err;
    EXPECT_THAT(first.out, testing::StartsWith(stack + ".0.self_attention of " + model));
    EXPECT_THAT(second.out, testing::StartsWith(name + " of " + model));
    EXPECT_EQ(stack == "decoder", second.out.find("masked_0 = ") != std::string::npos);
    EXPECT_THAT(second.out, testing::ContainsRegex("fused kernel, differs by\n[0-9.]+e-0[5-9] at most|"
                                                   "fused kernel, differs by\n0 at most"));
    expect_error(
        run_tool(trace + "--attention encoder.9.self_attention"), 2,
        "this model has no attention 'encoder.9.self_attention'; it has " + stack + ".0.self_attention");
    expect_error(run_tool(trace + "--target-text x"), 2, "which reads one text");
  }
}

TEST(EncoderFolders, ShowHeadsOnPairsOfTexts) {
  const std::string heads = "heads '" + goldens_folder() + "/fill/bert' ";
  const ScratchFolder scratch;
  const std::string firsts = "-i '" + scratch.write("a", "The sky.\n\nA cafe?\n") + "' ",
                    seconds = "--input-pair '" + scratch.write("b", "It is blue.\n\nThe city.\n") + "' ";
  const ToolResult text = run_tool(heads + "--json --text 'The sky.' --text-pair 'It is blue.' --head '*.0'");
  ASSERT_EQ(text.status, 0) << text.err;
  const json of_text = json::parse(text.out)["text"];
  const std::vector<std::string> tokens = of_text["source_tokens"];
  EXPECT_EQ(tokens.front(), "[CLS]");
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), "[SEP]"), 2);
  EXPECT_EQ(of_text["weights"]["encoder.1.self_attention.0"].size(), tokens.size());
  const ToolResult table = run_tool(heads + "--quiet " + firsts + seconds);
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, testing::StartsWith("2 sentences\n"));
  EXPECT_NE(table.out, run_tool(heads + "--quiet " + firsts).out);
  expect_error(
      run_tool(heads + "-i '" + (scratch / "a") + "' --input-pair '" + scratch.write("c", "a\n") + "'"), 1,
      "c has 1 line, but " + (scratch / "a") + " has 3 lines");
  expect_error(run_tool(heads + "--text a " + seconds), 2, "--text has --text-pair");
  expect_error(run_tool(heads + "--text-pair a " + firsts), 2, "--text-pair needs a sentence: give --text");
  const std::string gpt2 = "heads '" + goldens_folder() + "/generate/gpt2' ";
  for (const std::string& flags : {std::string("--text a --text-pair b"), firsts + seconds})
    expect_error(run_tool(gpt2 + flags), 2,
                 "holds a gpt2 model, which does not read two texts as one sequence");
}

// sentence-transformers wrote the Transformer into a folder of its own once, and says so in modules.json.
TEST(EncoderFolders, MayHaveTheTransformerInAFolderOfItsOwn) {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const std::string model = scratch / "model", inner = model + "/0_Transformer";
  fs::create_directories(model);
  fs::copy(kEncoders + "dense", inner, fs::copy_options::recursive);
  json modules = json::parse(read_file(inner + "/modules.json"));
  modules[0]["path"] = "0_Transformer";
  scratch.write("model/modules.json", modules.dump());
  scratch.write("model/config.json", R"({"__version__": "1.0"})");  // as old versions did
  for (size_t i = 1; i < modules.size(); ++i) {
    const std::string name = modules[i]["path"];
    fs::rename(inner + "/" + name, model + "/" + name);
  }
  for (const char* name : {"modules.json", "config_sentence_transformers.json"})
    fs::remove(inner + "/" + name);
  fs::copy(kEncoders + "dense/config_sentence_transformers.json", model);
  for (const std::string verb :
       {"info --json ", "heads --text 'two dogs run .' --json ", "tokenize --ids ", "embed --quiet "}) {
    const std::string text = "two dogs run .\n";
    const ToolResult found = run_tool(verb + "--model '" + model + "'", text),
                     plain = run_tool(verb + "--model " + kEncoders + "dense", text);
    EXPECT_EQ(found.status, 0) << verb << found.err;
    if (verb.find("--json") != std::string::npos) {
      json a = json::parse(found.out), b = json::parse(plain.out);  // which say the folder's name and files
      for (json* one : {&a, &b}) {
        for (const char* key : {"folder", "files", "model"}) one->erase(key);
      }
      EXPECT_EQ(a, b) << verb;
    } else {
      EXPECT_EQ(found.out, plain.out) << verb;
    }
  }
  modules[0]["path"] = "../dense";
  scratch.write("model/modules.json", modules.dump());
  for (const char* verb : {"heads --text 'two dogs' ", "tokenize "})
    expect_error(run_tool(std::string(verb) + "--model '" + model + "'"), 1,
                 "modules.json: [0]: expected a folder in this one, got '../dense'");
}

// Only verbs that read ids name them.
TEST(EncoderFolders, WithoutTokenizerNameTheFile) {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  for (const auto& [golden, verb, flags] : {std::tuple{"sentences/dense", "embed", "--similarity a b"},
                                            {"sentences/dense", "heads", "--text two"},
                                            {"fill/bert", "fill", "--text '[MASK]'"},
                                            {"labels/bert_pairs", "classify", "--text two"},
                                            {"generate/gpt2", "generate", "--prompt two"},
                                            {"generate/gpt2", "score", ""},
                                            {"generate/gpt2", "heads", "--text two"}}) {
    const std::string model = scratch / "model";
    fs::remove_all(model);
    fs::copy(goldens_folder() + "/" + golden, model, fs::copy_options::recursive);
    fs::remove(model + "/tokenizer.json");
    const ToolResult result = run_tool(std::string(verb) + " '" + model + "' " + flags);
    SCOPED_TRACE(verb);
    expect_error(result, 1, "model has no tokenizer.json; put the model's tokenizer there\n");
  }
}

// Another model's tokenizer would make other tokens of the text, and results that look like any others.
TEST(EncoderFolders, WithAnotherModelsTokenizerAreRefused) {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  for (const auto& [golden, tokens] : {std::pair{"sentences/dense", 22}, {"fill/bert", 101}}) {
    const std::string model = scratch / "model", name = "'" + model + "'";
    fs::remove_all(model);
    fs::copy(goldens_folder() + "/" + golden, model, fs::copy_options::recursive);
    json tokenizer = json::parse(read_file(kEncoders + "dense/tokenizer.json"));
    tokenizer["model"]["vocab"] = {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"two", 4}};
    scratch.write("model/tokenizer.json", tokenizer.dump());
    for (const std::string& verb :
         {"embed " + name + " --similarity 'two dogs' two", "heads " + name + " --text 'two dogs'",
          "fill " + name + " --text '[MASK]'"}) {
      SCOPED_TRACE(verb);
      expect_error(
          run_tool(verb), 1,
          "tokenizer.json does not match the model: it has 5 tokens, the model " + std::to_string(tokens));
    }
  }
}

}  // namespace
}  // namespace mh
