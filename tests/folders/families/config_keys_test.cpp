// Every key of config.json that a configuration class of transformers has, changed alone: either the numbers are those of
// transformers, or the folder is refused, or a remark names the key. The lists are committed, with what becomes of each key;
// tests/oracles/config_keys_goldens.py makes them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;

const std::filesystem::path kKeyLists = std::filesystem::path(goldens_folder()) / "config_keys";
constexpr const char* kFamiliesWithKeys[] = {
    "bert",  "roberta", "camembert", "xlm-roberta", "mpnet",   "distilbert", "modernbert",  "gpt2",
    "llama", "mistral", "qwen2",     "qwen3",       "marian",  "gemma2",     "gemma3_text", "gpt_neo",
    "bart",  "mbart",   "gpt_neox",  "olmo2",       "opt",     "phi",        "phi3",        "smollm3",
    "t5",    "mt5",     "umt5",      "m2m_100",     "electra", "nomic_bert", "deberta-v2"};

// What the script reads.
const std::vector<int32_t> kReadTokens = {5, 17, 3, 11, 23, 7, 19};
const std::vector<int32_t> kReadSource = {5, 17, 3, 11}, kReadTarget = {23, 7, 19};

std::vector<float> with_logits(ConstMatrixView states, const VocabularyHead& head, ConstMatrixView before) {
  Tensor logits(before.rows, head.size());
  head.logits(before, logits.view());
  const int64_t last = states.rows - 1;
  std::vector<float> numbers(states.row(last), states.row(last) + states.cols);
  numbers.insert(numbers.end(), logits.view().row(last), logits.view().row(last) + logits.cols());
  return numbers;
}

/// The last rows of states and logits.
std::vector<float> numbers_of(const Model& model) {
  Tape tape;
  Context context{.tape = tape};
  if (const auto* encoder = dynamic_cast<const EncoderModel*>(&model)) {
    const Batch batch(std::vector<std::vector<int32_t>>{kReadTokens});
    const Var states = encoder->states(context, batch.view());
    const float* const last = states.value().row(states.rows() - 1);
    if (!model.predicts())
      return {last, last + states.cols()};  // the layers of a decoder that sees both sides
    return with_logits(states.value(), encoder->vocabulary(), encoder->word_states(context, states).value());
  }
  const auto& predicts = dynamic_cast<const LanguageModel&>(model);
  const bool translates = predicts.facts().source_vocabulary > 0;
  std::vector<int32_t> target = kReadTokens;
  if (translates) {
    target = kReadTarget;
    target.insert(target.begin(), predicts.facts().start_id);
  }
  const Batch source(translates ? std::vector<std::vector<int32_t>>{kReadSource}
                                : std::vector<std::vector<int32_t>>{});
  const Batch text(std::vector<std::vector<int32_t>>{target});
  const Var states = predicts.states(context, translates ? source.view() : Sequences{}, text.view());
  return with_logits(states.value(), predicts.vocabulary(), states.value());
}

bool is_near(const std::vector<float>& found, const std::vector<double>& wanted) {
  if (found.size() != wanted.size()) return false;
  double most = 0, difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    most = std::max(most, std::abs(wanted[i]));
    difference = std::max(difference, std::abs(wanted[i] - static_cast<double>(found[i])));
  }
  return difference < 1e-5 * most;
}

class ConfigKeys : public testing::TestWithParam<const char*> {
 protected:
  const std::string family = GetParam();
  const json list = json::parse(read_file(kKeyLists / (family + ".json")));
  const std::string weights = read_file(kKeyLists / (family + ".safetensors"));
  const std::vector<double> base = list["numbers"];

  ModelFolder with(const json& config) const {
    return load_model_folder(std::make_shared<const MemoryFolder>(
        MemoryFolder::Files{{kConfigFile, config.dump()}, {kWeightsFile, weights}}, family));
  }
  /// What becomes of the key of a row.
  std::string becomes(const json& row) const {
    std::string key = row["key"];
    const std::string name = key.substr(0, key.find(" ("));
    json config = list["config"];
    config[name] = row["value"];
    const json& wanted = row["numbers"];
    const std::string where = family + ", " + key;
    try {
      const ModelFolder folder = with(config);
      const bool named = folder.remark().find(name) != std::string::npos;
      if (named) return "remarked";
      if (wanted == "not opened") return "opened here alone";
      std::vector<double> numbers = wanted == "same" ? base : wanted.get<std::vector<double>>();
      const std::vector<float> found = numbers_of(*folder.model);
      if (!folder.model->predicts()) numbers.resize(found.size());  // without logits
      EXPECT_TRUE(is_near(found, numbers)) << where << ": other numbers than transformers'";
      return wanted == "same" ? "changes nothing" : "obeyed";
    } catch (const Error& error) {
      const std::string said = error.what();
      // The key, or one inside of it, or the weights that it no longer fits.
      bool named = said.find(name) != std::string::npos;
      if (row["value"].is_object()) {
        const json flat = row["value"].flatten();
        for (const auto& inner : flat.items())
          named |= said.find(inner.key().substr(inner.key().rfind('/') + 1)) != std::string::npos;
      }
      EXPECT_TRUE(named || said.find("does not fit config.json") != std::string::npos)
          << where << ": " << said;
      return "refused";
    }
  }
};

TEST_P(ConfigKeys, WithoutAChangeThereIsNoRemarkAndTheNumbersAreThoseOfTransformers) {
  const ModelFolder folder = with(list["config"]);
  EXPECT_EQ(folder.remark(), "");
  EXPECT_TRUE(is_near(numbers_of(*folder.model), base));
}

TEST_P(ConfigKeys, EachIsObeyedOrChangesNothingOrIsRefusedOrNamed) {
  std::map<std::string, int> counts;
  for (const json& row : list["keys"]) {
    const std::string found = becomes(row);
    ++counts[found];
    EXPECT_EQ(found, row["becomes"]) << family << "\t" << row["key"].get<std::string>() << "\t" << found;
  }
  for (const auto& [kind, count] : counts) RecordProperty(kind, count);
  std::string line = family + ":";
  for (const auto& [kind, count] : counts) line += fmt::format(" {} {}", count, kind);
  SCOPED_TRACE(line);
  EXPECT_GE(counts["obeyed"], 2);
  EXPECT_GE(counts["changes nothing"], 5);
  EXPECT_GE(counts["refused"], 3);
  EXPECT_GE(counts["remarked"], 1);
}

INSTANTIATE_TEST_SUITE_P(Families, ConfigKeys, testing::ValuesIn(kFamiliesWithKeys), [](const auto& of) {
  std::string name = of.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace mh
