// multihead info, on the models that transformers wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "multihead/base/file.h"
#include "multihead/io/gguf.h"
#include "multihead/io/safetensors.h"
#include "multihead/kernels/product_kernels.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kModels = goldens_folder() + "/marian/";

TEST(InfoVerb, PrintsATable) {
  const auto [status, output, errors] = run_tool("info " + kModels + "gelu_f16");
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(output,
              AllOf(HasSubstr("marian, post-norm encoder-decoder"), HasSubstr("parameters    14,751\n"),
                    HasSubstr("1 layer of 3 heads (size 7), feed-forward 19"),
                    HasSubstr("none (token ids only: --token-ids)"),
                    HasSubstr("decoder.1.cross_attention   heads 0 to 6"), HasSubstr("model.safetensors")));
  EXPECT_THAT(errors, IsEmpty());
}

TEST(InfoVerb, PrintsJson) {
  const auto [status, output, errors] = run_tool("info --json " + kModels + "swish_bf16_separate");
  ASSERT_EQ(status, 0) << errors;
  const auto json = nlohmann::json::parse(output);
  EXPECT_EQ(json["model_type"], "marian");
  EXPECT_EQ(json["d_model"], 24);
  EXPECT_EQ(json["decoder"], nlohmann::json::parse(R"({"layers": 1, "heads": 2, "d_ff": 17})"));
  EXPECT_EQ(json["activation"], "swish");
  EXPECT_EQ(json["vocabulary"]["target"], 59);
  EXPECT_EQ(json["vocabulary"]["shared_embeddings"], false);
  EXPECT_EQ(json["dropout"]["residual"].dump(), "0.3");
  EXPECT_EQ(json["suppressed"], nlohmann::json::parse("[2]"));
  EXPECT_EQ(json["attentions"].size(), 3u);
  EXPECT_TRUE(json["tokenizer"].is_null());
}

TEST(InfoVerb, AlignsFilesOfAnyName) {
  const ScratchFolder scratch;
  const std::string folder = scratch / "model";
  std::filesystem::copy(kModels + "gelu_f16", folder, std::filesystem::copy_options::recursive);
  scratch.write("model/events.out.tfevents.1700000000.a-machine.of.long.name.multihead", "x");
  scratch.write("model/a\x1b[31mb", "xy");
  const auto [status, output, errors] = run_tool("info '" + folder + "'");
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(output, AllOf(HasSubstr("a\\u001b[31mb"), testing::Not(HasSubstr("\x1b"))));
  std::vector<size_t> ends;
  const std::string files = output.substr(output.find("\nfiles\n") + 7);
  for (size_t at = 0; (at = files.find(" byte", at)) != std::string::npos; ++at)
    ends.push_back(at - files.rfind('\n', at));
  ASSERT_GE(ends.size(), 4u);
  EXPECT_THAT(ends, testing::Each(ends.front())) << files;
  EXPECT_THAT(files, HasSubstr(" 1 byte\n"));
}

// As the files name their types, not as the model has them in memory.
TEST(InfoVerb, SaysHowWeightsAreStored) {
  const std::string goldens = goldens_folder() + "/";
  const auto weights = [&](const std::string& model) {
    return nlohmann::json::parse(run_tool("info --json '" + goldens + model + "'").out)["weights"];
  };
  for (const auto& [model, type] :
       {std::pair("marian/gelu_f16", "F16"), {"marian/swish_bf16_separate", "BF16"}, {"gpt2/tied", "F32"}}) {
    const auto found = weights(model);
    ASSERT_EQ(found.size(), 1u) << model << found;
    EXPECT_EQ(found[0]["type"], type) << model;
    EXPECT_THAT(run_tool("info '" + goldens + model + "'").out,
                HasSubstr(std::string("\nweights       ") + type + " "))
        << model;
  }
  const SafetensorsFile file = SafetensorsFile::open(goldens + "marian/gelu_f16/model.safetensors");
  int64_t bytes = 0;
  for (const TensorEntry& entry : file.entries()) bytes += static_cast<int64_t>(entry.end - entry.begin);
  EXPECT_EQ(weights("marian/gelu_f16")[0]["bytes"], bytes);
  EXPECT_EQ(weights("marian/gelu_f16")[0]["tensors"], file.entries().size());

  const GgufFile gguf = GgufFile::open(goldens + "gguf/tied_quantised.gguf");
  const auto found = weights("gguf/tied_quantised.gguf");
  ASSERT_GT(found.size(), 1u);
  std::set<std::string> types;
  int64_t tensors = 0, before = std::numeric_limits<int64_t>::max();
  for (const auto& alike : found) {
    types.insert(alike["type"]);
    EXPECT_LE(alike["bytes"].get<int64_t>(), before) << "the largest first";
    before = alike["bytes"];
    int64_t of_type = 0;
    for (const GgufTensor& tensor : gguf.tensors()) {
      if (gguf_type_name(static_cast<uint32_t>(tensor.type)) == alike["type"])
        of_type += std::ssize(tensor.bytes);
    }
    EXPECT_EQ(before, of_type) << alike;
    tensors += alike["tensors"].get<int64_t>();
  }
  EXPECT_EQ(types.size(), found.size());
  EXPECT_EQ(tensors, std::ssize(gguf.tensors()));
}

// What is in the table is in the JSON, and what is alike there is the sum of the tensors.
TEST(InfoVerb, SaysWhatEachPrecisionMultipliesWith) {
  for (const char* model : {"gguf/tied_quantised.gguf", "marian/gelu_f16", "bert/masked"}) {
    const std::string path = "'" + goldens_folder() + "/" + model + "'";
    const auto json = nlohmann::json::parse(run_tool("info --json " + path).out);
    const std::string table = run_tool("info " + path).out;
    ASSERT_THAT(table,
                HasSubstr("\nproducts      (what --precision multiplies with on this machine)\n  same  "));
    const size_t begin = table.find("\nproducts ");
    const auto rows = lines_of(table.substr(begin, table.find("\nattentions ") - begin));
    for (const std::string& row : rows) EXPECT_LE(row.size(), 80u) << row;
    int64_t stored = 0, not_multiplied = 0;
    for (const auto& tensor : json["tensors"]) {
      stored += tensor["stored_bytes"].get<int64_t>();
      not_multiplied += tensor["same"].is_null() ? 1 : 0;
    }
    EXPECT_GT(not_multiplied, 4) << model;
    int64_t in_file = 0;
    for (const auto& alike : json["weights"]) in_file += alike["bytes"].get<int64_t>();
    EXPECT_EQ(stored, in_file) << model;
    for (const auto& [name, precision] : kPrecisionNames) {
      int64_t tensors = 0, bytes = 0, of_tensors = 0;
      std::set<std::string> kernels;
      for (const auto& alike : json["products"][name]) {
        tensors += alike["tensors"].get<int64_t>();
        bytes += alike["bytes"].get<int64_t>();
        kernels.insert(alike["kernel"]);
        EXPECT_THAT(table,
                    HasSubstr(alike["tensors"].dump() + " " + alike["stored_as"].get<std::string>() + ", "));
        EXPECT_THAT(table, HasSubstr(" as " + alike["used_as"].get<std::string>() + ", by " +
                                     alike["kernel"].get<std::string>() + "\n"));
      }
      for (const auto& tensor : json["tensors"]) {
        if (!tensor[name].is_null()) of_tensors += tensor[name]["bytes"].get<int64_t>();
      }
      EXPECT_EQ(bytes, of_tensors) << model << name;
      EXPECT_EQ(tensors + not_multiplied, std::ssize(json["tensors"])) << model << name;
      const WeightsKind kind =
          std::string(model).ends_with(".gguf") ? WeightsKind::kBlocks : WeightsKind::kNumbers;
      EXPECT_THAT(kernels, testing::ElementsAre(name_of(kernel_for(precision, kind), kProductKernelNames)))
          << model << name;
    }
  }
  const auto json = nlohmann::json::parse(run_tool("info --json " + kModels + "swish_bf16_separate").out);
  EXPECT_EQ(json["products"]["same"][0]["used_as"], "bfloat16");
  EXPECT_EQ(json["products"]["fast"][0]["used_as"], "bytes");
}

// A file of many types has several lines, and a number stays with its type.
TEST(InfoVerb, FitsTheTypesOfWeightsIntoALine) {
  const std::regex whole("(weights)? +([A-Z0-9_]+ [0-9.]+ (bytes|kB|MB),? ?)+");
  size_t most = 0;
  for (const char* folder : {"gguf_architectures", "gguf_sentencepiece"}) {
    for (const auto& entry : std::filesystem::directory_iterator(goldens_folder() + "/" + folder)) {
      if (entry.path().extension() != ".gguf") continue;
      const std::string table = run_tool("info '" + entry.path().string() + "'").out;
      const size_t begin = table.find("\nweights  ") + 1;
      const auto rows = lines_of(table.substr(begin, table.find("\nproducts ") - begin));
      for (const std::string& row : rows) {
        EXPECT_LE(row.size(), 80u) << row;
        EXPECT_TRUE(std::regex_match(row, whole)) << row;
      }
      most = std::max(most, rows.size());
    }
  }
  EXPECT_GT(most, 1u);
}

class InfoOfPrunedModel : public SmallFolder {};

// Layers need not have as many heads.
TEST_F(InfoOfPrunedModel, TellsTheHeadsOfAllLayers) {
  const std::string pruned = scratch / "pruned";
  ASSERT_EQ(
      run_tool("convert '" + folder + "' --remove encoder.0.self_attention.1 --out '" + pruned + "'").status,
      0);
  const std::string table = run_tool("info '" + pruned + "'").out;
  EXPECT_THAT(table, AllOf(HasSubstr("encoder       2 layers of 2 or 3 heads (size 8), feed-forward 37\n"),
                           HasSubstr("decoder       2 layers of 3 heads (size 8), feed-forward 37\n"),
                           HasSubstr("encoder.0.self_attention    heads 0 to 1\n"),
                           HasSubstr("encoder.1.self_attention    heads 0 to 2\n")));
  const auto json = nlohmann::json::parse(run_tool("info --json '" + pruned + "'").out);
  EXPECT_TRUE(json["encoder"]["heads"].is_null());
  EXPECT_EQ(json["decoder"]["heads"], 3);
  EXPECT_EQ(nlohmann::json::parse(run_tool("info --json '" + folder + "'").out)["encoder"]["heads"], 3);
}

TEST(InfoVerb, SaysWhatBartsEmbeddingsAreAndHowTranslationsBegin) {
  const std::string folder = goldens_folder() + "/bart/text";
  const auto [status, output, errors] = run_tool("info " + folder);
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(output, AllOf(HasSubstr("bart, post-norm encoder-decoder"),
                            HasSubstr("positions     learned, up to 29 tokens"),
                            HasSubstr("293 source, 293 target; shared embeddings, normed\n"),
                            HasSubstr("begins with   0 = <s>, every translation\n")));
  const auto json = nlohmann::json::parse(run_tool("info --json " + folder).out);
  EXPECT_EQ(json["vocabulary"]["normed_embeddings"], true);
  EXPECT_EQ(json["forced_first"], 0);
}

TEST(InfoVerb, SaysHowTranslateSearchesAndWhatT5sLayersAre) {
  const test::ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path() / "t5";
  std::filesystem::copy(std::filesystem::path(goldens_folder()) / "t5" / "flan_bf16", folder);
  const auto searches = [&](nlohmann::json keys) {
    std::ofstream(folder / "generation_config.json") << keys.dump();
    return run_tool("info '" + folder.string() + "'").out;
  };
  EXPECT_THAT(searches({{"num_beams", 1}, {"max_length", 21}}),
              HasSubstr("search        greedy, 0 to 20 tokens\n"));
  const std::string table = searches({{"num_beams", 4},
                                      {"early_stopping", "never"},
                                      {"length_penalty", 2.0},
                                      {"no_repeat_ngram_size", 3},
                                      {"min_length", 8}});
  EXPECT_THAT(table,
              AllOf(HasSubstr("t5, pre-norm encoder-decoder, RMS norms\n"), HasSubstr("gelu_tanh, gated\n"),
                    HasSubstr("beam of 4, 7 to 53 tokens, length penalty 2, early stopping never\n"),
                    HasSubstr("no repeats    of 3 tokens one after the other\n")));
  const auto json = nlohmann::json::parse(run_tool("info --json '" + folder.string() + "'").out);
  EXPECT_EQ(json["norm_kind"], "rms");
  EXPECT_EQ(json["gated"], true);
  EXPECT_EQ(json["search"]["beam_size"], 4);
  EXPECT_EQ(json["search"]["early_stopping"], "never");
  EXPECT_EQ(searches({{"num_beams", 0}}), "");
  EXPECT_THAT(run_tool("info '" + folder.string() + "'").err, HasSubstr("num_beams: expected"));
}

TEST(InfoVerb, ListsTheLanguagesOfAModelOfMany) {
  const std::string folder = goldens_folder() + "/languages/nllb";
  const auto [status, output, errors] = run_tool("info " + folder);
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(
      output,
      HasSubstr(
          "languages     from eng_Latn to any, of 5: deu_Latn, eng_Latn, ron_Latn, zho_Hans, zho_Hant\n"));
  const auto json = nlohmann::json::parse(run_tool("info --json " + folder).out)["languages"];
  EXPECT_EQ(json["source"], "eng_Latn");
  EXPECT_EQ(json["target"], nullptr);
  EXPECT_EQ(json["codes"].size(), 5U);
}

TEST(InfoVerb, ListsWhatTheTextsOfTasksBeginWith) {
  const test::ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path() / "t5", config = folder / "config.json";
  std::filesystem::copy(std::filesystem::path(goldens_folder()) / "t5" / "text", folder);
  auto keys = nlohmann::json::parse(read_file(config));
  keys["task_specific_params"] = {{"summarization", {{"prefix", "summarize: "}, {"num_beams", 4}}},
                                  {"other", {{"num_beams", 4}}}};
  std::ofstream(config) << keys.dump();
  const auto [status, output, errors] = run_tool("info " + folder.string());
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(output, HasSubstr("task prefix   'summarize: ' for 'summarization'\n"));
  const auto json = nlohmann::json::parse(run_tool("info --json " + folder.string()).out);
  EXPECT_EQ(json["task_prefixes"], (nlohmann::json{{"summarization", "summarize: "}}));
  keys["task_specific_params"]["other"]["prefix"] = 3;
  std::ofstream(config) << keys.dump();
  EXPECT_THAT(run_tool("info " + folder.string()).err,
              HasSubstr("config.json: task_specific_params: the prefix of 'other' is 3; expected a string"));
}

// The example is a head that the model has.
TEST(InfoVerb, NamesAHeadOfTheModel) {
  const std::pair<const char*, const char*> models[] = {
      {"marian/gelu_f16", "encoder.0.self_attention.2"},
      {"gpt2/tied", "decoder.0.self_attention."},
      {"gguf/untied_llama3.gguf", "decoder.0.self_attention."}};
  for (const auto& [model, name] : models) {
    const std::string output = run_tool("info " + goldens_folder() + "/" + std::string(model)).out;
    EXPECT_THAT(output, HasSubstr(std::string("(name a head as ") + name)) << model;
  }
}

TEST(InfoVerb, SaysHowPositionsTurnAndWhatIsCapped) {
  const std::string goldens = goldens_folder() + "/";
  const auto table = [&](const std::string& model) { return run_tool("info " + goldens + model).out; };
  EXPECT_THAT(table("gemma3_text/plain"),
              HasSubstr("rotary        2 layers: base 30; 1 layer: base 700, linear with factor 2\n"));
  EXPECT_THAT(table("gpt_neox/parallel"),
              HasSubstr("rotary        base 500, the first 4 numbers of a head turn\n"));
  EXPECT_THAT(table("smollm3/some_turn"),
              HasSubstr("rotary        2 layers: base 2000000; 1 layer: no positions\n"));
  EXPECT_THAT(table("gemma2/capped"), HasSubstr("logits        softly capped at 3\n"));
  EXPECT_THAT(table("gemma2/scores_capped_bf16"), Not(HasSubstr("softly")));
  EXPECT_THAT(table("olmo2/grouped_yarn_bf16"),
              HasSubstr("rotary        base 300, yarn with factor 8, attention factor 1.05446\n"));
  EXPECT_THAT(
      table("phi3/longrope_bf16"),
      HasSubstr(
          "rotary        base 300, the first 6 numbers of a head turn, longrope, attention factor 1.06"));
  EXPECT_THAT(table("olmo2/plain"), Not(HasSubstr("rotary        ")));
  const auto json = nlohmann::json::parse(run_tool("info --json " + goldens + "smollm3/some_turn").out);
  EXPECT_TRUE(json["rotary"][1].is_null());
  EXPECT_EQ(json["rotary"][2]["base"], 2e6);
  EXPECT_EQ(json["rotary"][2]["attention_factor"], 1);
}

TEST(InfoVerb, SaysWhichLayersHaveAWindow) {
  const std::string goldens = goldens_folder() + "/";
  const auto json = [&](const std::string& model) {
    return nlohmann::json::parse(run_tool("info --json " + goldens + model).out);
  };
  EXPECT_THAT(run_tool("info " + goldens + "modernbert/masked").out,
              HasSubstr("windows       2 of 4 layers see 5 tokens to each side\n"));
  EXPECT_EQ(json("modernbert/masked")["windows"], (std::vector{0, 5, 5, 0}));
  EXPECT_THAT(run_tool("info " + goldens + "qwen2/some_windows").out,
              HasSubstr("windows       2 of 3 layers see the last 11 tokens\n"));
  EXPECT_FALSE(json("qwen2/tied").contains("windows"));
}

TEST(InfoVerb, SaysHowWideEmbeddingsAreWhereStatesAreWider) {
  const std::string goldens = goldens_folder() + "/";
  EXPECT_THAT(run_tool("info " + goldens + "electra/masked").out,
              HasSubstr("d_model       21; embeddings of 13\n"));
  const auto json = [&](const std::string& model) {
    return nlohmann::json::parse(run_tool("info --json " + goldens + model).out);
  };
  EXPECT_EQ(json("electra/masked")["d_embedding"], 13);
  EXPECT_FALSE(json("electra/encoder").contains("d_embedding"));
}

TEST(InfoVerb, FailsInOneLine) {
  const auto [status, output, errors] = run_tool("info /no/such/model");
  EXPECT_EQ(status, 1);
  EXPECT_THAT(output, IsEmpty());
  EXPECT_EQ(
      errors,
      "multihead: no model folder /no/such/model: there is no such folder; name a folder that multihead "
      "train or save_pretrained wrote\n");
  EXPECT_EQ(run_tool("info").status, 2);
}

}  // namespace
}  // namespace mh
