// model.safetensors that does not fit config.json: all differences on one line.
#include "tests/folders/hostile_folder.h"

#include <limits>

#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/support/edit_weights.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace test;

class HostileWeights : public HostileFolder {
 protected:
  using Edit = EditedTensor;
  void edit_weights(const std::function<void(std::vector<Edit>&)>& change) {
    test::edit_weights(folder / "model.safetensors", change);
  }
  static Edit& named(std::vector<Edit>& tensors, const std::string& name) {
    for (Edit& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::logic_error(name);
  }
};

TEST_F(HostileWeights, WeightsInOtherFormsNameTheRemedy) {
  fs::rename(folder / "model.safetensors", folder / "pytorch_model.bin");
  expect_error("save it again with save_pretrained", "a pickle");
  fs::rename(folder / "pytorch_model.bin", folder / "model.safetensors.index.json");
  expect_error("model/model.safetensors; copy the whole folder again", "an index that is none");
}

// Terabytes by the configuration, kilobytes in the file: refused before anything is allocated.
TEST_F(HostileWeights, SizesFarBeyondTheFile) {
  edit_json(folder / "config.json", [](json& config) {
    config["d_model"] = 61440;
    config["encoder_attention_heads"] = config["decoder_attention_heads"] = 60;
    config["encoder_layers"] = config["decoder_layers"] = 1000;
    config["max_position_embeddings"] = 512;
  });
  expect_error("model.safetensors holds", "many layers");
  save_again();
  fs::remove(folder / "tokenizer.json");
  edit_json(folder / "config.json", [](json& config) {
    config["vocab_size"] = config["decoder_vocab_size"] = 1 << 24;
    config["d_model"] = 61440;
    config["encoder_attention_heads"] = config["decoder_attention_heads"] = 60;
    config["multihead_files"] = json::array();
  });
  expect_error("model.safetensors holds", "a large vocabulary");
  save_again();
  edit_json(folder / "config.json", [](json& config) {
    config["d_model"] = 61440;
    config["encoder_attention_heads"] = config["decoder_attention_heads"] = 60;
    config["max_position_embeddings"] = 1 << 20;
  });
  expect_error("max_position_embeddings is 1048576", "many positions");
}

TEST_F(HostileWeights, AllDifferencesAreListedAtOnce) {
  edit_weights([](std::vector<Edit>& tensors) {
    std::erase_if(tensors, [](const Edit& t) { return t.name == "model.decoder.layers.1.fc2.bias"; });
    std::erase_if(tensors, [](const Edit& t) { return t.name == "model.shared.weight"; });
    Edit& wide = named(tensors, "model.encoder.layers.0.fc1.weight");
    wide.shape = {15, 19};
    tensors.push_back({"model.decoder.layers.2.fc1.weight", {23, 15}, std::vector<float>(23 * 15)});
    named(tensors, "model.decoder.layers.0.self_attn.k_proj.weight").data[5] =
        std::numeric_limits<float>::quiet_NaN();
    named(tensors, "model.encoder.layers.0.fc1.bias").data[0] = std::numeric_limits<float>::infinity();
  });
  expect_error("does not fit config.json", "many at once");
  EXPECT_THAT(
      message(),
      AllOf(HasSubstr("missing: model.shared.weight, model.decoder.layers.1.fc2.bias; "),
            HasSubstr("shape of model.encoder.layers.0.fc1.weight: expected [19,15], got [15,19]"),
            HasSubstr("not finite: 1 of 225 numbers of model.decoder.layers.0.self_attn.k_proj.weight"),
            HasSubstr("not finite: 1 of 19 numbers of model.encoder.layers.0.fc1.bias"),
            HasSubstr("not used: model.decoder.layers.2.fc1.weight")));
}

TEST_F(HostileWeights, WeightsOfAnotherModel) {
  TranslatorShape shape = folder_shape(tokenizer.size());
  shape.d_model = 30;
  EncoderDecoder other(shape.config());
  other.initialise(1);
  save_model_folder(scratch / "other", other);
  fs::copy_file(scratch / "other" / "model.safetensors", folder / "model.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message(), AllOf(HasSubstr("shape of model.shared.weight: expected [53,15], got [53,30]"),
                               HasSubstr("shape of model.decoder.layers.1.encoder_attn.out_proj.weight"),
                               Not(HasSubstr("\n"))));
}

TEST_F(HostileWeights, IntegersAreNoWeights) {
  const std::vector<int32_t> numbers(15, 1);
  std::string bytes;
  {
    const auto file = SafetensorsFile::open(folder / "model.safetensors");
    std::vector<std::vector<float>> kept;
    std::vector<NamedTensor> tensors;
    for (const TensorEntry& entry : file.entries()) {
      if (entry.name == "model.encoder.layers.0.fc2.bias") {
        tensors.push_back(
            {.name = entry.name, .shape = entry.shape, .data = std::span<const int32_t>(numbers)});
        continue;
      }
      kept.push_back(file.floats(entry.name));
      tensors.push_back(
          {.name = entry.name, .shape = entry.shape, .data = std::span<const float>(kept.back())});
    }
    bytes = write_safetensors(tensors);
  }
  write_file_atomically(folder / "model.safetensors", bytes);
  expect_error("type of model.encoder.layers.0.fc2.bias: expected F32, F16 or BF16, got I32", "integers");
}

TEST_F(HostileWeights, RepeatedTensorsMustBeWhatTheyRepeat) {
  const auto add = [&](const std::string& name, float change) {
    save_again();
    edit_weights([&](std::vector<Edit>& tensors) {
      Edit copy = named(tensors, "model.shared.weight");
      copy.name = name;
      copy.data[20] += change;
      tensors.push_back(copy);
    });
  };
  for (const char* name :
       {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    add(name, 0);
    EXPECT_NO_THROW(load_model_folder(folder)) << name;
    add(name, 0.5f);
    expect_error("is not the shared embedding", name);
  }
  save_again();
  edit_weights([](std::vector<Edit>& tensors) {
    tensors.push_back({"model.encoder.embed_positions.weight", {29, 15}, std::vector<float>(29 * 15, 0.5f)});
  });
  expect_error("sinusoids", "learned positions");
}

}  // namespace
}  // namespace mh
