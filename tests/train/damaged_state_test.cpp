// A checkpoint whose training_state.json or moments are damaged: refused in one line, and nothing is changed.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/train/checkpoint_store.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

class DamagedCheckpoint : public testing::Test {
 protected:
  // Some epochs, and sums since the last line of metrics.
  DamagedCheckpoint()
      : model(small_shape().config()),
        corpus(small_corpus()),
        store(folder.path()),
        training(model, corpus, options()) {
    model.initialise(1);
    TrainingState& state = trainer().state();
    while (state.epoch < 2 || state.batch == 0) {
      trainer().update();
      if (state.update == 3) {
        state.smoothed_loss = state.negative_log_likelihood = 0;
        state.target_tokens = state.source_tokens = state.sentences = 0;
        store.save(training.objective, trainer().adam(), state);
      }
    }
    for (const int64_t update : {2, 5})
      state.validations.push_back({.update = update, .loss = 1.5, .perplexity = std::exp(1.5), .bleu = 17});
    state.settings = {{"seed", "1"}};
    state.data = "0123456789abcdef";
    store.save(training.objective, trainer().adam(), state);
    checkpoint = store.path(state.update);
  }
  static SmallOptions options() {
    SmallOptions options = small_options();
    options.trainer.accumulate = 2;
    return options;
  }
  Trainer& trainer() { return training.trainer; }

  std::string refusal() {
    EncoderDecoder other(small_shape().config());
    other.initialise(9);
    SmallTraining again(other, corpus, options());
    const std::vector<float> before = all_parameters(other);
    try {
      store.restore(store.load(trainer().state().update), again.trainer);
    } catch (const FormatError& error) {
      EXPECT_EQ(all_parameters(other), before);
      EXPECT_EQ(again.trainer.state().update, 0);
      return error.what();
    }
    return "";
  }
  void expect_refused(const char* field, const std::string& what) {
    const std::string message = refusal();
    EXPECT_THAT(message, HasSubstr(field)) << what;
    EXPECT_THAT(message,
                HasSubstr("remove " + checkpoint.string() + " to go on from the checkpoint before it"))
        << what;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 600u) << message;
  }

  const test::ScratchFolder folder;
  EncoderDecoder model;
  const TrainingCorpus corpus;
  CheckpointStore store;
  SmallTraining training;
  fs::path checkpoint;
};

TEST_F(DamagedCheckpoint, NoNumberOfTheStateMayContradictTheOthers) {
  struct Damage {
    const char* field;
    std::function<void(json&)> change;
  };
  const auto set = [](const char* field, const json& value) {
    return Damage{field, [=](json& state) { state[field] = value; }};
  };
  const auto in_validation = [](const char* field, size_t i, const json& value) {
    return Damage{field, [=](json& state) { state["validations"][i][field] = value; }};
  };
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const int64_t update = trainer().state().update, epoch = trainer().state().epoch;
  const std::vector<Damage> damages = {
      set("batch", 99999999),
      set("batch", kHuge),
      set("batch", trainer().state().batch + 1),  // half an update
      set("batch", trainer().state().batch + 2),  // one that was not made
      set("batch", -1),
      set("epoch", 2147483647),
      set("epoch", kHuge),
      set("epoch", epoch + 1),
      set("epoch", epoch - 1),
      set("epoch", 1.5),
      set("update", update + 1),
      set("update", 0),
      set("target_tokens", kHuge),
      set("target_tokens", 0),
      set("target_tokens", 100000),  // more than all epochs have
      set("source_tokens", kHuge),
      set("source_tokens", 1),
      set("sentences", 0),
      set("sentences", kHuge),
      set("sentences", trainer().state().target_tokens + 1),
      set("smoothed_loss", -1e308),
      set("smoothed_loss", 1e308),
      set("smoothed_loss", nullptr),
      set("negative_log_likelihood", -1e3),
      set("negative_log_likelihood", 1e300),
      set("data", "no fingerprint"),
      set("data", 7),
      set("settings", "none"),
      set("validations", json::object()),
      in_validation("bleu", 0, 900),
      in_validation("bleu", 1, -0.5),
      in_validation("loss", 1, -3),
      in_validation("loss", 0, 1e308),
      in_validation("perplexity", 0, 2),
      in_validation("perplexity", 1, 1e300),
      in_validation("update", 1, update + 1),
      in_validation("update", 1, 2),  // twice the same
      in_validation("update", 0, 0),
      in_validation("update", 0, kHuge),
  };
  const fs::path file = checkpoint / "training_state.json";
  const std::string whole = read_file(file);
  EXPECT_EQ(refusal(), "");
  for (const Damage& damage : damages) {
    json state = json::parse(whole);
    damage.change(state);
    write_file_atomically(file, state.dump());
    expect_refused(damage.field, state.dump());
    EXPECT_THAT(refusal(), HasSubstr("training_state.json"));
  }
  write_file_atomically(file, whole);
  EXPECT_EQ(refusal(), "");
}

// Learning on with such moments would end in a loss that is not a number, and in advice that does not help.
TEST_F(DamagedCheckpoint, MomentsThatNoTrainingWritesAreNamed) {
  const fs::path file = checkpoint / "training_state.safetensors";
  const std::string whole = read_file(file);
  const SafetensorsFile moments = SafetensorsFile::open(file);
  const auto with = [&](const std::string& tensor, float value) {
    std::string bytes = whole;
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const size_t at = 8 + header + moments.entry(tensor).begin;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  struct Damage {
    const char* tensor;
    float value;
  };
  for (const auto& [tensor, value] : {Damage{"first.embedding", nan},
                                      {"first.embedding", -infinity},
                                      {"second.encoder.1.self_attention.w_q", nan},
                                      {"second.decoder.0.feed_forward.b_1", infinity},
                                      {"second.embedding", -1.0f}}) {
    write_file_atomically(file, with(tensor, value));
    expect_refused(tensor, std::to_string(value));
    EXPECT_THAT(refusal(), HasSubstr("training_state.safetensors is damaged"));
  }
  write_file_atomically(file, with("first.embedding", -1.0f));
  EXPECT_EQ(refusal(), "");
}

TEST_F(DamagedCheckpoint, WithoutAnotherOneTheTrainingBeginsAnew) {
  store.remove(3);
  write_file_atomically(checkpoint / "training_state.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("remove " + checkpoint.string() + " to begin the training anew"));
}

TEST_F(DamagedCheckpoint, WeightsThatAreNoNumbersAreNamed) {
  const fs::path file = checkpoint / "model.safetensors";
  std::string bytes = read_file(file);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - sizeof nan, &nan, sizeof nan);
  write_file_atomically(file, bytes);
  expect_refused("not finite: 1 of ", "NaN");
}

}  // namespace
}  // namespace mh
