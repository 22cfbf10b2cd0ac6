// What GGUF's metadata say besides the shape of the model: keys that are refused or named, pooling, special tokens, models in
// several files.
#include "multihead/folders/gguf_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/models/language_model.h"
#include "tests/folders/gguf_case.h"
#include "tests/io/hostile.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using namespace test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using KeyChange = std::function<void(GgufSpec&)>;

class GgufKeys : public testing::Test {
 protected:
  fs::path written(const KeyChange& change = nullptr) const {
    GgufSpec spec = small_gguf();
    if (change) change(spec);
    write_file_atomically(path, spec.bytes());
    return path;
  }
  static KeyChange with(const char* key, std::string value) {
    return [key, value = std::move(value)](GgufSpec& spec) { spec.value(key) = value; };
  }
  std::string remark(const char* key, std::string value) const {
    return load_model_folder(written(with(key, std::move(value)))).remark();
  }
  void refused(const char* key, std::string value, std::string_view part) const {
    written(with(key, std::move(value)));
    expect_one_line_error([&] { load_model_folder(path); }, part, part);
  }
  const ScratchFolder scratch;
  const fs::path path = scratch / "small.gguf";
};

TEST_F(GgufKeys, ThoseThatChangeNumbersAreRefusedOrNamed) {
  EXPECT_EQ(load_model_folder(written()).remark(), "");
  refused("llama.attention.causal", gguf_bool(0),
          "llama.attention.causal is false; it is not supported in GGUF");
  refused("general.type", gguf_string("adapter"), "general.type is \"adapter\"; expected a model");
  refused("llama.rope.scaling.attn_factor", gguf_f32(0.5f), "llama.rope.scaling.attn_factor is 0.5");
  for (const char* key :
       {"llama.attention.sliding_window", "llama.logit_scale", "llama.final_logit_softcapping",
        "llama.attn_logit_softcapping", "llama.attention.scale", "llama.residual_scale",
        "llama.embedding_scale", "llama.attention.max_alibi_bias", "llama.attention.clamp_kqv",
        "llama.rope.freq_base_swa", "general.sampling.temp", "llama.of_a_later_version",
        "tokenizer.ggml.of_a_later_version", "adapter.lora.alpha"}) {
    EXPECT_THAT(remark(key, gguf_f32(0.5f)),
                AllOf(HasSubstr(key), HasSubstr(" is not known here and was not used")));
  }
  EXPECT_THAT(remark("llama.rope.dimension_sections", gguf_ints({1, 2})), HasSubstr("is not known here"));
}

TEST_F(GgufKeys, ThoseThatChangeNothingAreNot) {
  EXPECT_EQ(remark("llama.attention.causal", gguf_bool(1)), "");
  EXPECT_EQ(remark("general.type", gguf_string("model")), "");
  EXPECT_EQ(remark("llama.rope.scaling.attn_factor", gguf_f32(1)), "");
  EXPECT_EQ(remark("general.name", gguf_string("Small")), "");
  EXPECT_EQ(remark("general.languages", gguf_strings({"en"})), "");
  EXPECT_EQ(remark("tokenizer.ggml.fim_pre_token_id", gguf_u32(3)), "");
  EXPECT_EQ(remark("quantize.imatrix.file", gguf_string("x")), "");
  EXPECT_EQ(remark("somebody.else", gguf_u32(3)), "");
}

TEST_F(GgufKeys, PoolingIsObeyed) {
  const auto pooling = [&](uint32_t kind) {
    return load_sentence_model(written(with("llama.pooling_type", gguf_u32(kind))));
  };
  EXPECT_THAT(pooling(1).poolings, ElementsAre(Pooling::kMean));
  EXPECT_THAT(pooling(2).poolings, ElementsAre(Pooling::kFirst));
  const SentenceModel last = pooling(3);
  EXPECT_THAT(last.poolings, ElementsAre(Pooling::kLast));
  EXPECT_THAT(last.remarks, ElementsAre());
  EXPECT_THAT(pooling(0).remarks, ElementsAre(HasSubstr("a vector is the mean of the states")));
  refused("llama.pooling_type", gguf_u32(4), "a ranking of pairs, which is not supported");
  refused("llama.pooling_type", gguf_u32(5), "expected an integer from 0 to 4, got 5");
  // The converted folder says it as sentence-transformers does.
  save_model_folder(scratch / "folder", last.folder);
  EXPECT_THAT(load_sentence_model(scratch / "folder").poolings, ElementsAre(Pooling::kLast));
}

TEST_F(GgufKeys, SpecialTokensThatAreNoneAreNotUsed) {
  const auto facts = [&](const char* key, uint32_t id) {
    return load_model_folder(written(with(key, gguf_u32(id)))).model->facts();
  };
  EXPECT_EQ(facts("tokenizer.ggml.padding_token_id", 10).pad_id, 10);
  for (const uint32_t bad : {11u, ~0u}) {
    EXPECT_EQ(facts("tokenizer.ggml.padding_token_id", bad).pad_id, -1);
    EXPECT_EQ(facts("tokenizer.ggml.eos_token_id", bad).eos_id, -1);
    EXPECT_EQ(facts("tokenizer.ggml.bos_token_id", bad).start_id, -1);
  }
  EXPECT_THAT(
      remark("tokenizer.ggml.padding_token_id", gguf_u32(~0u)),
      HasSubstr(
          "tokenizer.ggml.padding_token_id is 4294967295, which is none of its 11 tokens; it was not used"));
  written([](GgufSpec& spec) {
    spec.value("tokenizer.ggml.add_bos_token") = gguf_bool(1);
    spec.value("tokenizer.ggml.bos_token_id") = gguf_u32(11);
  });
  expect_one_line_error([&] { load_model_folder(path); },
                        "is true, but \"tokenizer.ggml.bos_token_id\" is no token of the file", "add_bos");
}

TEST_F(GgufKeys, TextsEndWithATurnToo) {
  written([](GgufSpec& spec) {
    spec.value("tokenizer.ggml.eot_token_id") = gguf_u32(1);
    spec.value("tokenizer.ggml.eom_token_id") = gguf_u32(0);
  });
  EXPECT_THAT(load_model_folder(path).generation.end_tokens, ElementsAre(0, 1));
}

class GgufParts : public testing::Test {
 protected:
  GgufParts() {
    GgufSpec whole = small_gguf();
    float number = 0;
    for (GgufTensorSpec& tensor : whole.tensors) {
      std::string data;
      for (size_t i = 0; i < tensor.data.size() / 4; ++i) data += little_endian(number += 0.25f);
      tensor.data = data;
    }
    write_file_atomically(scratch / "whole.gguf", whole.bytes());
    const auto cut = whole.tensors.begin() + 5;
    for (uint32_t part = 0; part < 2; ++part) {
      GgufSpec spec;
      if (part == 0) spec.values = whole.values;
      spec.value("split.no") = gguf_u32(part);
      spec.value("split.count") = gguf_u32(2);
      spec.value("split.tensors.count") = gguf_u32(12);
      spec.tensors.assign(part == 0 ? whole.tensors.begin() : cut, part == 0 ? cut : whole.tensors.end());
      parts.push_back(spec);
      write(part);
    }
  }
  fs::path path_of(size_t part) const {
    return scratch / ("m-0000" + std::to_string(part + 1) + "-of-00002.gguf");
  }
  void write(size_t part) const { write_file_atomically(path_of(part), parts[part].bytes()); }
  void refused(size_t part, std::string_view words) const {
    expect_one_line_error([&] { load_model_folder(path_of(part)); }, words, words);
  }
  static std::vector<float> numbers_of(const ModelFolder& folder) {
    std::vector<float> all;
    folder.model->visit([&](const std::string&, Parameter& parameter) {
      const float* const data = parameter.value.data();
      all.insert(all.end(), data, data + parameter.value.size());
    });
    return all;
  }
  const ScratchFolder scratch;
  std::vector<GgufSpec> parts;
};

TEST_F(GgufParts, AreReadAsOneModel) {
  const ModelFolder folder = load_model_folder(path_of(0));
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(numbers_of(folder), numbers_of(load_model_folder(scratch / "whole.gguf")));
  save_model_folder(scratch / "folder", folder);
  EXPECT_EQ(numbers_of(load_model_folder(scratch / "folder")), numbers_of(folder));
  const std::string hash = weights_hash(folder);
  parts[1].tensors[2].data[0] = 'x';
  write(1);
  EXPECT_NE(weights_hash(load_model_folder(path_of(0))), hash);
}

TEST_F(GgufParts, ThatCannotBeJoinedSayHowTo) {
  refused(1, "is part 2 of 2 of a model; name the first, ");
  refused(1, "m-00001-of-00002.gguf, or join them with llama.cpp's llama-gguf-split --merge");
  const auto changed = [&](const KeyChange& change, std::string_view words) {
    const GgufSpec before = parts[1];
    change(parts[1]);
    write(1);
    refused(0, words);
    parts[1] = before;
    write(1);
  };
  changed([](GgufSpec& spec) { spec.value("split.no") = gguf_u32(2); },
          "says that it is part 3 of 2; expected part 2 of 2");
  changed([](GgufSpec& spec) { spec.tensors.pop_back(); }, "have 11 tensors; \"split.tensors.count\" is 12");
  changed([](GgufSpec& spec) { spec.tensors[1].name = "output.weight"; },
          "\"output.weight\" is in another part, too");
  fs::rename(path_of(1), scratch / "elsewhere.gguf");
  refused(0, "is part 1 of 2 of a model, and there is no ");
  refused(0, "llama-gguf-split --merge");
  fs::rename(path_of(0), scratch / "other.gguf");
  expect_one_line_error([&] { load_model_folder(scratch / "other.gguf"); },
                        "whose name does not end with -00001-of-00002.gguf", "another name");
}

}  // namespace
}  // namespace mh
