// Folders whose matrices are integers of 8 bits with a scale for each row, or for each group of a row's numbers.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/block_parts.h"
#include "multihead/base/error.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/io/safetensors.h"
#include "tests/folders/folder_case.h"
#include "tests/io/hostile.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(QuantiseInt8Row, HasTheLeastScaleOf8BitsThatFloat16Has) {
  std::vector<float> row(37);
  std::vector<std::byte> integers(row.size());
  for (float magnitude = 3e-9f; magnitude < 8e6f; magnitude *= 1.37f) {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = magnitude * std::sin(static_cast<float>(i * i + 1)) * (i == 11 ? 1.0f : 0.9f);
    const float largest = std::fabs(*std::max_element(
        row.begin(), row.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
    const float scale = quantise_int8_row(row, integers);
    EXPECT_EQ(from_bfloat16(to_bfloat16(scale)), scale) << magnitude;
    EXPECT_EQ(from_float16(to_float16(scale)), scale) << magnitude;
    EXPECT_GE(127 * scale, largest * (1 - 1e-6f)) << magnitude;
    // What comes before it is too small. Below 2^-16 float16 has multiples of 2^-24 alone.
    const float before = scale <= 0x1p-16f ? scale - 0x1p-24f : scale * (1 - 0x1p-7f);
    EXPECT_LT(127 * before, largest) << magnitude;
    for (size_t i = 0; i < row.size(); ++i) {
      const auto q = std::bit_cast<int8_t>(integers[i]);
      EXPECT_NE(q, -128);
      EXPECT_NEAR(q * scale, row[i], scale * 0.5001f) << magnitude << " " << i;
    }
  }
  std::fill(row.begin(), row.end(), 0.0f);
  EXPECT_EQ(quantise_int8_row(row, integers), 1);
  row[3] = -127 * 65520.0f;
  EXPECT_EQ(quantise_int8_row(row, integers), std::numeric_limits<float>::infinity());
}

/// A translator in Marian's format. Rows of 96 and 64 numbers are a multiple of 32; those of the decoder's w_2, 37, are not.
class Int8Folder : public testing::Test {
 protected:
  Int8Folder() : tokenizer(test::small_tokenizer()), model(shape().config()), folder(scratch / "int8") {
    model.initialise(7);
    save_model_folder(folder, model,
                      {.tokenizer = &tokenizer, .type = type, .matrices = SavedMatrices::kInt8});
  }
  TranslatorShape shape() const {
    TranslatorShape made = test::folder_shape(tokenizer.size());
    made.d_model = 96;
    made.encoder_heads = made.decoder_heads = 3;
    made.encoder_ff = 64;
    made.decoder_ff = 37;
    return made;
  }
  void expect_refused(const std::string& part) {
    test::expect_one_line_error([&] { load_model_folder(folder); }, part, part);
  }
  void edit_config(const std::function<void(json&)>& change) {
    test::edit_json(folder / "config.json", change);
  }
  /// Puts other bytes at the begin of a tensor.
  void overwrite(const std::string& tensor, const std::string& bytes) {
    const std::filesystem::path file = folder / "model.safetensors";
    const TensorEntry entry = SafetensorsFile::open(file).entry(tensor);
    std::string whole = read_file(file);
    uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    std::copy(bytes.begin(), bytes.end(), whole.begin() + static_cast<int64_t>(8 + header + entry.begin));
    write_file_atomically(file, whole);
  }
  static std::string bytes_of(float number) {
    return {reinterpret_cast<const char*>(&number), sizeof number};
  }

  static constexpr NumberType type = NumberType::kFloat32;
  const std::string some = "model.encoder.layers.0.self_attn.q_proj.weight";
  const test::ScratchFolder scratch;
  const Tokenizer tokenizer;
  EncoderDecoder model;
  const std::filesystem::path folder;
};

TEST_F(Int8Folder, HoldsIntegersAndScalesThatStayInTheFile) {
  const SafetensorsFile file = SafetensorsFile::open(folder / "model.safetensors");
  EXPECT_EQ(file.entry(some).dtype, DType::kI8);
  EXPECT_THAT(file.shape(some), ElementsAre(96, 96));
  EXPECT_THAT(file.shape(some + "_scale"), ElementsAre(96, 1));
  EXPECT_EQ(file.entry("model.decoder.layers.0.fc2.weight").dtype, DType::kF32);  // rows of 37
  EXPECT_EQ(file.entry("model.decoder.layers.0.fc1.weight").dtype, DType::kI8);
  EXPECT_EQ(file.entry("model.shared.weight").dtype, DType::kF32);

  const ModelFolder read = load_model_folder(folder);
  EXPECT_EQ(read.remark(), "");
  int integers = 0;
  model.visit([&](const std::string& name, Parameter& parameter) {
    read.model->visit([&](const std::string& its_name, Parameter& its) {
      if (name != its_name) return;
      const Weight &before = parameter.value, &after = its.value;
      const BlockMatrix* const blocks = after.blocks(/*columns=*/true);
      if (blocks == nullptr) {
        EXPECT_EQ(test::copy_of(after.view()), test::copy_of(before.view())) << name;
        return;
      }
      ++integers;
      EXPECT_FALSE(after.is_own()) << name;
      EXPECT_EQ(blocks->type, BlockType::kQ8_0);
      std::vector<std::byte> expected(static_cast<size_t>(before.rows()));
      std::vector<float> row(expected.size());
      for (int64_t j = 0; j < before.cols(); ++j) {
        for (int64_t i = 0; i < before.rows(); ++i) row[static_cast<size_t>(i)] = before(i, j);
        const float scale = quantise_int8_row(row, expected);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), blocks->row(j))) << name << " " << j;
        ASSERT_EQ(from_float16(blocks->scales[static_cast<size_t>(j)]), scale);
      }
    });
  });
  EXPECT_EQ(integers, 1 * 6 + 2 * 9);
}

// Products of the integers have the bits of those with the numbers that they stand for.
TEST_F(Int8Folder, ComputesWhatItsNumbersGive) {
  const ModelFolder read = load_model_folder(folder);
  save_model_folder(scratch / "numbers", read);
  EXPECT_FALSE(json::parse(read_file(scratch / "numbers" / "config.json")).contains(kQuantisation));
  const ModelFolder numbers = load_model_folder(scratch / "numbers");
  const std::vector<std::vector<int32_t>> sources = {{5, 7, 11, 13, 2}, {17, 2}},
                                          targets = {{0, 3, 5}, {0, 9}};
  const ModelDifference same = compare_models(*read.model, *numbers.model, sources, targets);
  EXPECT_EQ(same.logits->largest, 0);
  EXPECT_EQ(same.memory->largest, 0);
  const ModelDifference rounded = compare_models(model, *read.model, sources, targets);
  EXPECT_GT(rounded.logits->largest, 0);
  EXPECT_LT(rounded.logits->largest, 0.03 * rounded.logits->magnitude);
}

TEST_F(Int8Folder, ConfigSaysItAsCompressedTensorsDoes) {
  const json said = json::parse(read_file(folder / "config.json")).at(kQuantisation);
  EXPECT_EQ(said["quant_method"], "compressed-tensors");
  EXPECT_EQ(said["format"], "int-quantized");
  const json& group = said["config_groups"]["group_0"];
  EXPECT_EQ(group["format"], "int-quantized");
  EXPECT_EQ(group["weights"]["strategy"], "channel");
  EXPECT_EQ(group["targets"].size(), 1 * 6 + 2 * 9);
  EXPECT_THAT(group["targets"].get<std::vector<std::string>>(),
              testing::Contains("re:(.*[.])?model[.]encoder[.]layers[.]0[.]self_attn[.]q_proj$"));
  const std::vector<std::string> tensors = {"bert.encoder.layer.3.output.dense.weight"},
                                 prefixes = {"", "bert."};
  EXPECT_EQ(json::parse(with_int8_config("{}", tensors,
                                         prefixes))[kQuantisation]["config_groups"]["group_0"]["targets"][0],
            "re:(.*[.])?encoder[.]layer[.]3[.]output[.]dense$");
}

TEST_F(Int8Folder, InShardsToo) {
  save_model_folder(scratch / "shards", model,
                    {.tokenizer = &tokenizer, .largest_file = 70'000, .matrices = SavedMatrices::kInt8});
  EXPECT_TRUE(is_there(scratch / "shards" / "model.safetensors.index.json"));
  const auto values = [](const std::filesystem::path& path) {
    return test::values_of(load_model_folder(path).translator());
  };
  EXPECT_EQ(values(scratch / "shards"), values(folder));
}

TEST_F(Int8Folder, ModelsWithoutSuchMatricesAreRefused) {
  EncoderDecoder narrow(test::folder_shape(tokenizer.size()).config());
  narrow.initialise(3);
  test::expect_one_line_error(
      [&] {
        save_model_folder(scratch / "never", narrow,
                          {.tokenizer = &tokenizer, .matrices = SavedMatrices::kInt8});
      },
      "has no matrix [out, in] of rows that are a multiple of 32 numbers", "narrow");
  EXPECT_FALSE(is_there(scratch / "never"));
}

TEST_F(Int8Folder, NumbersBeyondFloat16AreRefused) {
  model.visit([](const std::string& name, Parameter& parameter) {
    if (name == "encoder.0.self_attention.w_q") parameter.value.view()(3, 5) = 2e7f;
    parameter.changed();
  });
  test::expect_one_line_error(
      [&] {
        save_model_folder(scratch / "never", model,
                          {.tokenizer = &tokenizer, .matrices = SavedMatrices::kInt8});
      },
      "tensor " + some + " has numbers that are not finite as integers of 8 bits", "2e7");
  EXPECT_FALSE(is_there(scratch / "never"));
}

TEST_F(Int8Folder, OtherMethodsAreRefusedByName) {
  const json whole = json::parse(read_file(folder / "config.json"))[kQuantisation];
  const auto expect = [&](const std::function<void(json&)>& change, const std::string& part) {
    edit_config([&](json& config) {
      config[kQuantisation] = whole;
      change(config[kQuantisation]);
    });
    expect_refused(part);
  };
  expect([](json& said) { said = {{"quant_method", "gptq"}, {"bits", 4}}; }, "quant_method is \"gptq\"");
  expect([](json& said) { said["format"] = "pack-quantized"; }, "format is \"pack-quantized\"");
  expect([](json& said) { said.erase("format"); }, "format is null");
  expect([](json& said) { said["kv_cache_scheme"] = {{"num_bits", 8}}; }, "kv_cache_scheme is");
  expect([](json& said) { said["config_groups"] = json::object(); }, "config_groups has no group");
  expect([](json& said) { said["config_groups"]["group_0"] = 3; }, "\"group_0\" is 3");
  expect([](json& said) { said = "x"; }, "quant_method is null");
  expect([](json& said) { said["config_groups"]["group_0"]["format"] = "naive-quantized"; },
         "\"group_0\".format is \"naive-quantized\"");
  const auto in_weights = [&](const char* field, const json& value, const std::string& part) {
    expect([&](json& said) { said["config_groups"]["group_0"]["weights"][field] = value; }, part);
  };
  in_weights("num_bits", 4, "\"group_0\".weights.num_bits is 4, not 8");
  in_weights("strategy", "tensor", "weights.strategy is \"tensor\"");
  in_weights("strategy", "group", "weights.group_size is null");
  in_weights("symmetric", false, "weights.symmetric is false");
  in_weights("type", "float", "weights.type is \"float\"");
  in_weights("dynamic", true, "weights.dynamic is true");
  expect(
      [](json& said) {
        said["config_groups"]["group_0"]["input_activations"] = {{"num_bits", 8}};
      },
      "\"group_0\".input_activations is");
  expect([](json& said) { said["config_groups"]["group_0"]["weights"] = nullptr; },
         "weights.num_bits is null");
  // Without it, integers are no numbers.
  edit_config([](json& config) { config.erase(kQuantisation); });
  EXPECT_THAT([&] { load_model_folder(folder); },
              testing::ThrowsMessage<FormatError>(
                  HasSubstr("type of " + some + ": expected F32, F16 or BF16, got I8")));
}

TEST_F(Int8Folder, ScalesThatAreNotFiniteAreRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    overwrite(some + "_scale", bytes_of(bad));
    expect_refused("not finite: 96 of 9216 numbers of " + some);
  }
}

TEST_F(Int8Folder, ScalesThatAreNoFloat16AreExactAndNamed) {
  overwrite(some + "_scale", bytes_of(1.0f / 3));
  const ModelFolder read = load_model_folder(folder);
  EXPECT_THAT(read.remark(), HasSubstr("1 of the matrices of integers have scales that are no float16"));
  const SafetensorsFile file = SafetensorsFile::open(folder / "model.safetensors");
  const std::string integers = file.bytes(some);
  read.model->visit([&](const std::string& name, Parameter& parameter) {
    if (name != "encoder.0.self_attention.w_q") return;
    EXPECT_EQ(parameter.value.blocks(/*columns=*/true), nullptr);
    for (int64_t i = 0; i < 96; ++i)
      EXPECT_EQ(parameter.value(i, 0), 1.0f / 3 * std::bit_cast<int8_t>(integers[static_cast<size_t>(i)]));
  });
}

/// Integers of 3 rows of 96 numbers with `groups` scales a row, each 1/8 of its number.
TensorFiles grouped(int64_t groups) {
  std::string data;
  for (int i = 0; i < 3 * 96; ++i) data += static_cast<char>(i % 251 - 125);
  std::vector<TensorEntry> entries = {
      {.name = "w", .dtype = DType::kI8, .shape = {3, 96}, .end = data.size()}};
  for (int64_t i = 0; i < 3 * groups; ++i) {
    const uint16_t half = to_float16(0.125f * static_cast<float>(i + 1));
    data.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  entries.push_back({.name = "w_scale",
                     .dtype = DType::kF16,
                     .shape = {3, groups},
                     .begin = entries[0].end,
                     .end = data.size()});
  return TensorFiles(SafetensorsFile::from_bytes(safetensors_header(entries) + data, "memory"), "memory");
}

TEST(Int8Matrices, HaveScalesOfGroups) {
  for (const int64_t groups : {int64_t{1}, int64_t{3}, int64_t{6}}) {
    const TensorFiles read = with_int8_matrices(grouped(groups));
    const std::vector<float> numbers = read.floats("w");
    ASSERT_EQ(numbers.size(), 3u * 96);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t group = i / (96 / static_cast<size_t>(groups));
      ASSERT_EQ(numbers[i], (static_cast<int>(i % 251) - 125) * 0.125f * static_cast<float>(group + 1))
          << groups << " " << i;
    }
    // Groups of 16 numbers are no blocks.
    const NumberSource& source = *read.tensor("w").source;
    EXPECT_EQ(source.blocks() == nullptr, groups == 6);
    EXPECT_EQ(read.remarks().size(), groups == 6 ? 1u : 0u);
    std::vector<float> row(96);
    source.read_rows(1, 2, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), numbers.begin() + 96)) << groups;
    if (source.blocks() == nullptr) continue;
    EXPECT_EQ(source.blocks()->scales.empty(), groups == 3);
    for (int64_t i = 0; i < 96; ++i) {
      const BlockParts parts = BlockParts::of(*source.blocks(), 2, i / 32);
      EXPECT_EQ(parts.scale() * static_cast<float>(int{parts.q[i % 32]} - 128),
                numbers[static_cast<size_t>(2 * 96 + i)])
          << groups << " " << i;
    }
  }
  test::expect_one_line_error([] { with_int8_matrices(grouped(5)); },
                              "w_scale: expected numbers [3,1], one for each row of w [3,96]", "5 groups");
}

TEST_F(Int8Folder, ScalesOfAnotherShapeOrTypeAreRefused) {
  const std::filesystem::path path = folder / "model.safetensors";
  const std::string whole = read_file(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    const size_t tensor = changed.find("\"" + some + "_scale\"");
    const size_t at = changed.find(from, tensor);
    ASSERT_EQ(from.size(), to.size());
    changed.replace(at, from.size(), to);
    write_file_atomically(path, changed);
  };
  with("[96,1]", "[1,96]");
  expect_refused(some + "_scale: expected numbers [96,1], one for each row of " + some +
                 " [96,96], or [96,N] of groups in a row, got F32 [1,96]");
  with("\"F32\"", "\"I32\"");
  expect_refused("[96,N] of groups in a row, got I32 [96,1]");
  with("_scale\"", "_scalf\"");
  expect_refused("type of " + some + ": expected F32, F16 or BF16, got I8");
}

}  // namespace
}  // namespace mh
