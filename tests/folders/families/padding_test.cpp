// The id of the padding in a text: models of the RoBERTa kind give it a position of its own, which does not count.
// tests/oracles/pad_positions_goldens.py makes the states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/autograd/tape.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/nn/context.h"
#include "tests/support/places.h"

namespace mh {
namespace {

const std::filesystem::path kPaddingGoldens = goldens_folder();

TEST(PaddingInText, HasThePositionThatTransformersGivesIt) {
  const auto golden = nlohmann::json::parse(read_file(kPaddingGoldens / "roberta" / "padding.json"));
  ASSERT_EQ(golden.size(), 16u);
  for (const auto& one : golden) {
    SCOPED_TRACE(one["folder"].get<std::string>() + " " + one["ids"].dump());
    const ModelFolder folder = load_model_folder(kPaddingGoldens / one["folder"].get<std::string>());
    const auto& model = dynamic_cast<const EncoderModel&>(*folder.model);
    // Between two others in one batch, so that it does not begin at row 0.
    const std::vector<int32_t> ids = one["ids"], other = {8, 9};
    Batch batch;
    batch.add(other, 0);
    batch.add(ids, 1);
    batch.add(other, 2);
    Tape tape;
    Context context{.tape = tape};
    const Var states = model.states(context, batch.view());
    double largest = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<int64_t>(other.size() + i);
      ASSERT_EQ(std::ssize(one["states"][i]), states.cols());
      for (int64_t j = 0; j < states.cols(); ++j) {
        const double expected = one["states"][i][static_cast<size_t>(j)];
        largest = std::max(largest, std::abs(states.value()(row, j) - expected));
      }
    }
    EXPECT_LT(largest, 3e-5);
  }
}

TEST(PaddingInText, NeedsARowBeforeTheFirstPosition) {
  EncoderConfig config =
      dynamic_cast<const EncoderModel&>(*load_model_folder(kPaddingGoldens / "roberta" / "encoder").model)
          .config();
  config.position_offset = 0;
  EXPECT_THAT(problems_of(config), testing::ElementsAre(testing::HasSubstr("position_offset")));
  config.embedding.uncounted = std::nullopt;
  EXPECT_THAT(problems_of(config), testing::IsEmpty());
}

}  // namespace
}  // namespace mh
