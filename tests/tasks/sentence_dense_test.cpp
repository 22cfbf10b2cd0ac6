// The activations of dense layers: the vectors of sentence-transformers with each of them, and their gradients.
#include "multihead/folders/sentence_dense.h"

#include "multihead/autograd/ops.h"
#include "tests/autograd/random_numbers.h"
#include "tests/tasks/sentence_folder_case.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SentenceDenseLayers : public test::SentenceFolder {
 protected:
  /// A copy of "dense" whose first dense layer has this activation.
  fs::path with_activation(const std::string& name) {
    const fs::path folder = copy_of("dense");
    edit(folder / "2_Dense/config.json", [&](json& config) { config["activation_function"] = name; });
    return folder;
  }
  static constexpr const char* kNames[] = {"Tanh", "Identity", "ReLU", "GELU", "SiLU", "Sigmoid"};
};

TEST_F(SentenceDenseLayers, ActivationsAreThoseOfTorch) {
  const SafetensorsFile file = SafetensorsFile::open(goldens / "activations.safetensors");
  for (const std::string& name : std::vector<std::string>(std::begin(kNames), std::end(kNames))) {
    const std::vector<float> expected = file.floats(name);
    const std::string module = name == "Identity" ? "linear." : "activation.";
    for (const std::string& path : {"torch.nn.modules." + module + name, "torch.nn." + name}) {
      const Tensor found = vectors_of(with_activation(path));
      ASSERT_EQ(static_cast<size_t>(found.size()), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found.data()[i], expected[i], 4e-6) << path;
    }
  }
}

TEST_F(SentenceDenseLayers, OthersAreRefusedByName) {
  for (const char* name : {"torch.nn.modules.activation.Mish", "torch.nn.functional.relu", "torch.relu",
                           "mine.ReLU", "ReLU", ""}) {
    expect_refused(with_activation(name), std::string("activation_function '") + name +
                                              "' is not supported; only Identity, Tanh, ReLU, GELU, SiLU, "
                                              "Sigmoid of torch.nn are");
  }
}

// d(seed . y) / dx of the tape against central differences.
TEST_F(SentenceDenseLayers, ActivationsHaveTheirGradients) {
  for (const char* name : kNames) {
    std::vector<std::string> remarks;
    const auto dense =
        load_sentence_dense(with_activation(std::string("torch.nn.") + name) / "2_Dense", 14, remarks);
    Tensor x = test::random_matrix<float>(3, 14, 1);
    Tensor seed = test::random_matrix<float>(3, 11, 2);
    const auto score = [&](Tape& tape, Var in) {
      return ops::sum(tape, ops::multiply(tape, dense->of(tape, in), tape.constant(seed.view())));
    };
    Tape tape(Tape::Mode::kRecordValues);
    const Tape::Watched in = tape.watch(tape.constant(x.view()));
    tape.backward(score(tape, in.value));
    for (int64_t i = 0; i < x.size(); ++i) {
      constexpr float kStep = 2e-3f;
      const auto moved = [&](float by) {
        const float kept = x.data()[i];
        x.data()[i] = kept + by;
        Tape plain;
        const auto found = static_cast<double>(score(plain, plain.constant(x.view())).value()(0, 0));
        x.data()[i] = kept;
        return found;
      };
      EXPECT_NEAR(in.gradient.data[i], (moved(kStep) - moved(-kStep)) / (2 * static_cast<double>(kStep)),
                  2e-3)
          << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace mh
