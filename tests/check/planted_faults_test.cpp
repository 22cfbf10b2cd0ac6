// Faults that were made in families of models before, each planted in a copy of a golden folder, and found at its site. What
// transformers computes of the right folder comes from tests/oracles/check_goldens.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/file.h"
#include "multihead/check/check_model.h"
#include "multihead/io/safetensors.h"
#include "tests/support/edit_weights.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using test::EditedTensor;

struct Fault {
  const char* name;
  const char* model;
  const char* site;  // the first that differs
  std::function<void(const fs::path& folder)> plant;
};

std::function<void(const fs::path&)> key(const char* name, const nlohmann::json& value) {
  return [name = std::string(name), value](const fs::path& folder) {
    auto config = nlohmann::ordered_json::parse(read_file(folder / "config.json"));
    auto& place = config[nlohmann::ordered_json::json_pointer("/" + name)];
    ASSERT_NE(nlohmann::json(place), value);
    place = value;
    write_file_atomically(folder / "config.json", config.dump(2));
  };
}

/// change(tensor, all tensors) of the one whose name ends so.
using Change = std::function<void(EditedTensor&, const std::vector<EditedTensor>&)>;
std::function<void(const fs::path&)> tensor(const char* ending, const Change& change) {
  return [ending = std::string(ending), change](const fs::path& folder) {
    int found = 0;
    test::edit_weights(folder / "model.safetensors", [&](std::vector<EditedTensor>& tensors) {
      const std::vector<EditedTensor> before = tensors;
      for (EditedTensor& one : tensors) {
        if (!one.name.ends_with(ending)) continue;
        change(one, before);
        ++found;
      }
    });
    ASSERT_EQ(found, 1);
  };
}

void add_one(EditedTensor& one, const std::vector<EditedTensor>&) {
  for (float& number : one.data) number += 1;
}
/// Its first part, of `parts`, comes last.
Change turned(size_t parts) {
  return [parts](EditedTensor& one, const std::vector<EditedTensor>&) {
    std::rotate(one.data.begin(), one.data.begin() + static_cast<std::ptrdiff_t>(one.data.size() / parts),
                one.data.end());
  };
}
void take_embedding(EditedTensor& one, const std::vector<EditedTensor>& all) {
  one.data = std::find_if(all.begin(), all.end(), [](const EditedTensor& other) {
               return other.name.ends_with("embed_tokens.weight");
             })->data;
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = {
      {"RotaryBase", "llama/tied_grouped", "decoder.0.self_attention.queries",
       key("rope_parameters/rope_theta", 10000.0)},
      {"GroupedQueryOrder", "llama/tied_grouped", "decoder.0.self_attention.projected_keys",
       tensor("layers.0.self_attn.k_proj.weight", turned(3))},
      {"NormOffset", "llama/tied_grouped", "decoder.0.self_attention.input",
       tensor("layers.0.input_layernorm.weight", add_one)},
      {"MaskByOne", "mistral/window", "decoder.0.self_attention.weights.0", key("sliding_window", 18)},
      {"WrongBias", "gpt2/tied", "decoder.0.feed_forward.hidden", tensor("h.0.mlp.c_fc.bias", add_one)},
      {"Scale", "gpt2/tied", "decoder.0.self_attention.scores.0", key("scale_attn_weights", false)},
      {"PadId", "roberta/masked", "encoder.embeddings", key("pad_token_id", 0)},
      {"TiedOutput", "mistral/window", "decoder.logits", tensor("lm_head.weight", take_embedding)},
      {"PositionOffset", "gpt2/tied", "decoder.embeddings", tensor("wpe.weight", turned(67))},
      {"SoftCap", "gemma2/capped", "decoder.0.self_attention.scores.0", key("attn_logit_softcapping", 1.0)},
      {"Activation", "gpt2/tied", "decoder.0.feed_forward.hidden", key("activation_function", "gelu")},
  };
  return all;
}

SafetensorsFile answer_of(std::string model) {
  std::replace(model.begin(), model.end(), '/', '_');
  return SafetensorsFile::open(fs::path(goldens_folder()) / "check" / (model + ".safetensors"));
}

class PlantedFault : public testing::TestWithParam<Fault> {};

TEST_P(PlantedFault, IsFoundAtItsSite) {
  const Fault& fault = GetParam();
  const test::ScratchFolder scratch;
  const fs::path folder = scratch / "model";
  fs::copy(fs::path(goldens_folder()) / fault.model, folder);
  const SafetensorsFile answer = answer_of(fault.model);
  {
    const CheckReport right = check_model(load_model_folder(folder), {}, answer);
    EXPECT_TRUE(right.right()) << right.first->site;
  }
  ASSERT_NO_FATAL_FAILURE(fault.plant(folder));
  const CheckReport report = check_model(load_model_folder(folder), {}, answer);
  EXPECT_FALSE(report.right());
  ASSERT_TRUE(report.first.has_value());
  EXPECT_EQ(report.first->site, fault.site);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedFault, testing::ValuesIn(faults()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace mh
