// Small Llamas in GGUF with the numbers of the models that they were made from, and the ids of their tokenizers
// (tests/oracles/gguf_goldens.py); and files whose metadata, tokenizer or tensors do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/causal_model.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/gguf_case.h"
#include "tests/folders/gguf_texts.h"
#include "tests/io/hostile.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::ElementsAreArray;
using namespace test;

class GgufGoldens : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  GoldenModel golden{GetParam().first, GetParam().second};
  fs::path path = golden.folder.string() + ".gguf";
};

TEST_P(GgufGoldens, StatesAndLogitsAreThoseOfTheModel) {
  const ModelFolder folder = load_model_folder(path);
  EXPECT_EQ(folder.model_type, "llama");
  EXPECT_EQ(folder.path, path);
  EXPECT_EQ(folder.chat_template, "{{ messages }}");
  EXPECT_THAT(folder.generation.end_tokens, ElementsAre(2));
  const ModelFacts facts = folder.model->facts();
  EXPECT_THAT(std::vector({facts.start_id, facts.eos_id, facts.pad_id}), ElementsAre(1, 2, 2));
  expect_states_and_logits(folder.language_model(), golden);
  expect_same_in_parts(folder.language_model(), golden, {1, 5}, 2e-5);
}

Tensor golden_logits(const LanguageModel& model, const GoldenModel& golden) {
  const Batch batch(golden.sequences);
  Tape tape;
  Context context{.tape = tape};
  const Var states = model.states(context, {}, batch.view());
  Tensor logits(states.rows(), model.facts().vocabulary);
  model.vocabulary().logits(states.value(), logits.view());
  return logits;
}

// Products with blocks have the bits of products with their numbers as float32.
TEST_P(GgufGoldens, BlocksGiveTheBitsOfTheirNumbers) {
  const ModelFolder blocks = load_model_folder(path), floats = load_model_folder(path);
  int found = 0;
  floats.model->visit(ParameterVisitor([&](const std::string&, Parameter& parameter) {
    found += parameter.value.blocks(true) != nullptr || parameter.value.blocks(false) != nullptr ? 1 : 0;
    parameter.value.tensor();
    parameter.changed();
    EXPECT_TRUE(parameter.value.blocks(true) == nullptr && parameter.value.blocks(false) == nullptr);
  }));
  EXPECT_EQ(found > 0, path.filename() == "tied_quantised.gguf") << found;
  const Tensor left = golden_logits(blocks.language_model(), golden),
               right = golden_logits(floats.language_model(), golden);
  ASSERT_EQ(left.size(), right.size());
  EXPECT_EQ(std::memcmp(left.data(), right.data(), static_cast<size_t>(left.size()) * sizeof(float)), 0);
}

TEST_P(GgufGoldens, IdsAreThoseOfTokenizers) {
  const ModelFolder folder = load_model_folder(path);
  expect_ids_of_texts(folder.source_tokens(), golden.file, "");
}

TEST_P(GgufGoldens, TheConvertedFolderIsTheSameModel) {
  const ScratchFolder scratch;
  const ModelFolder before = load_model_folder(path);
  save_model_folder(scratch / "folder", before);
  const ModelFolder folder = load_model_folder(scratch / "folder");
  expect_states_and_logits(folder.language_model(), golden);
  expect_ids_of_texts(folder.source_tokens(), golden.file, "");
  EXPECT_EQ(folder.source_tokens().to_json(), before.source_tokens().to_json());
  EXPECT_EQ(folder.model->facts().eos_id, 2);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufGoldens,
                         testing::Values(std::pair{"gguf", "tied_quantised"},
                                         std::pair{"gguf", "untied_llama3"},
                                         std::pair{"gguf_sentencepiece", "llama"}),
                         [](const auto& file) { return file.param.second; });

class HostileGgufModel : public testing::Test {
 protected:
  ModelFolder load(const GgufSpec& spec) {
    write_file_atomically(path, spec.bytes());
    return load_model_folder(path);
  }
  void refused(const std::function<void(GgufSpec&)>& change, std::string_view part) {
    GgufSpec spec = small_gguf();
    change(spec);
    expect_one_line_error([&] { load(spec); }, part, part);
  }
  void value(const char* key, std::string bytes, std::string_view part) {
    refused([&](GgufSpec& spec) { spec.value(key) = std::move(bytes); }, part);
  }
  void without(const char* key, std::string_view part) {
    refused([&](GgufSpec& spec) { spec.erase(key); }, part);
  }
  const ScratchFolder scratch;
  const fs::path path = scratch / "small.gguf";
};

TEST_F(HostileGgufModel, TheRightOneIsRead) {
  const ModelFolder folder = load(small_gguf());
  const Tokenizer& tokenizer = folder.source_tokens();
  EXPECT_THAT(tokenizer.encode_ids("abc a11<tag><end>"), ElementsAre(6, 10, 7, 7, 9, 0));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{6, 10, 9, 0}),
            "abc a<tag>");  // special tokens are left out
  GgufSpec both = small_gguf();
  both.value("tokenizer.ggml.add_bos_token") = gguf_bool(1);
  both.value("tokenizer.ggml.add_eos_token") = gguf_bool(1);
  EXPECT_THAT(load(both).source_tokens().encode_ids("ab"), ElementsAre(0, 5, 0));
  GgufSpec bare = small_gguf();
  bare.erase("tokenizer.ggml.model");
  EXPECT_EQ(load(bare).tokenizer, std::nullopt);
  GgufSpec linear = small_gguf();
  linear.value("llama.rope.scaling.type") = gguf_string("linear");
  linear.value("llama.rope.scaling.factor") = gguf_f32(2.5f);
  const ModelFolder turned = load(linear);
  const auto& config = dynamic_cast<const CausalModel&>(*turned.model).config();
  EXPECT_EQ(config.stack.rotary.scaling.kind, RotaryScaling::Kind::kLinear);
  EXPECT_EQ(config.stack.rotary.scaling.factor, 2.5);
  EXPECT_EQ(config.stack.rotary.base, 1000);
}

TEST_F(HostileGgufModel, MetadataThatCannotBe) {
  without("general.architecture", "\"general.architecture\" is missing");
  value("general.architecture", gguf_string("falcon"),
        "\"general.architecture\": expected one that is read, \"llama\", \"qwen2\", \"qwen3\"");
  value("general.architecture", gguf_string("falcon"), "; got \"falcon\"");
  value("general.architecture", gguf_string("qwen2"), "\"qwen2.embedding_length\" is missing");
  value("general.architecture", gguf_u32(3), "expected a text, got 3");
  without("llama.block_count", "\"llama.block_count\" is missing");
  value("llama.block_count", gguf_u32(0), "\"llama.block_count\": expected an integer from 1 to 1024, got 0");
  value("llama.block_count", gguf_u32(~0u), "expected an integer from 1 to 1024");
  value("llama.block_count", gguf_u32(2), "does not fit its metadata: missing: blk.1.attn_q.weight");
  value("llama.block_count", gguf_string("one"), "got \"one\"");
  value("llama.context_length", gguf_u32(1u << 31), "\"llama.context_length\": expected");
  value("llama.embedding_length", gguf_u32(13), "is 3; expected a divisor of \"llama.embedding_length\", 13");
  value("llama.embedding_length", gguf_u32(24), "\"llama.rope.dimension_count\" is 4; expected 8");
  value("llama.feed_forward_length", gguf_u32(8),
        "shape of blk.0.ffn_gate.weight: expected [8,12], got [7,12]");
  value("llama.feed_forward_length", gguf_u32(1 << 20), "but its metadata describes a model of at least");
  value("llama.attention.head_count", gguf_u32(0), "\"llama.attention.head_count\"");
  value("llama.attention.head_count", gguf_ints({3}), "got a list of i32");
  value("llama.attention.head_count_kv", gguf_u32(2), "num_key_value_heads is 2; expected a divisor");
  value("llama.attention.head_count_kv", gguf_u32(3),
        "shape of blk.0.attn_k.weight: expected [12,12], got [4,12]");
  value("llama.attention.layer_norm_rms_epsilon", gguf_f32(0), "\"llama.attention.layer_norm_rms_epsilon\"");
  value("llama.attention.key_length", gguf_u32(6), "\"llama.rope.dimension_count\" is 4; expected 6");
  value("llama.attention.value_length", gguf_u32(5), "\"llama.attention.value_length\" is 5; expected 4");
  value("llama.rope.freq_base", gguf_f32(-1), "\"llama.rope.freq_base\": expected a number from");
  value("llama.rope.scaling.type", gguf_string("dynamic"),
        "expected \"none\", \"linear\" or \"yarn\", got \"dynamic\"");
  value("llama.rope.scaling.type", gguf_string("linear"), "\"llama.rope.scaling.factor\" is missing");
  value("llama.expert_count", gguf_u32(8), "a mixture of experts is not supported");
  value("llama.vocab_size", gguf_u32(12), "does not match the model: it has 11 tokens, the model 12");
}

TEST_F(HostileGgufModel, TensorsThatDoNotFit) {
  refused([](GgufSpec& s) { s.tensors.erase(s.tensors.begin()); }, "tensor \"token_embd.weight\" is missing");
  refused([](GgufSpec& s) { s.tensors.pop_back(); }, "missing: blk.0.ffn_down.weight");
  refused([](GgufSpec& s) { s.tensors.push_back(gguf_zeros("blk.0.attn_qkv.weight", {3})); },
          "not used: blk.0.attn_qkv.weight");
  refused([](GgufSpec& s) { s.tensor("blk.0.attn_q.weight").sizes = {12 * 12}; },
          "shape of blk.0.attn_q.weight: expected [12,12], got [144]");
  refused([](GgufSpec& s) { s.tensor("output_norm.weight").data.replace(0, 4, "\x00\x00\xc0\x7f", 4); },
          "not finite: 1 of 12 numbers of output_norm.weight");
  const auto frequencies = [&](std::vector<float> numbers, std::string_view part) {
    refused(
        [&](GgufSpec& s) {
          std::string data;
          for (const float number : numbers) data += little_endian(number);
          s.tensors.push_back({.name = "rope_freqs.weight", .sizes = {numbers.size()}, .data = data});
        },
        part);
  };
  frequencies({1, 8, 8}, "\"rope_freqs.weight\" has not one number for each pair");
  frequencies({1, 3}, "\"rope_freqs.weight\" is another scaling");
  frequencies({0, 1}, "has a number below 1");
}

TEST_F(HostileGgufModel, TokenizersThatCannotBe) {
  value("tokenizer.ggml.model", gguf_string("rwkv"), "tokenizers of the kind 'rwkv' are not read; expected");
  value("tokenizer.ggml.pre", gguf_string("bloom"),
        "cuts text into words as 'bloom', which is not supported; expected one of gpt-2");
  value("tokenizer.ggml.pre", gguf_string("default"),
        "\"tokenizer.ggml.pre\" is 'default': it does not say how");
  without("tokenizer.ggml.pre", "\"tokenizer.ggml.pre\" is missing: it does not say how");
  without("tokenizer.ggml.tokens", "\"tokenizer.ggml.tokens\" is missing");
  without("tokenizer.ggml.merges", "\"tokenizer.ggml.merges\" is missing");
  value("tokenizer.ggml.tokens", gguf_ints({1, 2}), "expected a list of texts, got a list of i32");
  value("tokenizer.ggml.tokens", gguf_strings({"a"}), "has 11 items, \"tokenizer.ggml.tokens\" 1");
  refused(
      [](GgufSpec& s) {
        s.tensor("token_embd.weight") = gguf_zeros("token_embd.weight", {12, 10});
      },
      "has 11 items, \"token_embd.weight\" 10 rows");
  value("tokenizer.ggml.token_type", gguf_ints({1}), "\"tokenizer.ggml.token_type\" has 1 items");
  value("tokenizer.ggml.merges", gguf_strings({"ab"}), "expected two tokens and a space between, got 'ab'");
  value("tokenizer.ggml.merges", gguf_strings({"a b c"}), "expected two tokens and a space between");
  value("tokenizer.ggml.merges", gguf_strings({"a z"}), "'z' is not in");
  value("tokenizer.ggml.merges", gguf_strings({"b a"}), "'ba' is not in");
  value("tokenizer.ggml.tokens",
        gguf_strings({"<end>", "<pad>", "a", "b", "c", "ab", "abc", "1", "a", "<tag>", "Ġa"}),
        "is there twice");
  value("tokenizer.ggml.eos_token_id", gguf_string("<end>"),
        "\"tokenizer.ggml.eos_token_id\": expected an integer");
  refused(
      [](GgufSpec& s) {
        s.value("tokenizer.ggml.add_bos_token") = gguf_bool(1);
        s.erase("tokenizer.ggml.bos_token_id");
      },
      "\"tokenizer.ggml.add_bos_token\" is true, but \"tokenizer.ggml.bos_token_id\" is missing");
  value("tokenizer.ggml.add_bos_token", gguf_bool(2), "expected true or false");
  refused(
      [](GgufSpec& s) {
        s.value("tokenizer.ggml.tokens") = gguf_strings({"a", "b"});
        s.value("tokenizer.ggml.merges") = gguf_strings({});
        s.erase("tokenizer.ggml.token_type");
      },
      "does not match the model: it has 2 tokens, the model 11");
}

TEST(ConvertGguf, StoppedAtAnyTimeLeavesNothing) {
  const test::ScratchFolder scratch;
  const fs::path file = fs::path(goldens_folder()) / "gguf" / "untied_llama3.gguf", out = scratch / "out";
  int stopped = 0;
  for (;; ++stopped) {
    int looks = 0;
    const ModelFolder folder = load_model_folder(file);
    try {
      const StopScope scope([&] { return looks++ == stopped; });
      save_model_folder(out, folder);
      break;
    } catch (const Interrupted&) {
      ASSERT_TRUE(fs::is_empty(scratch.path())) << stopped;
    }
    ASSERT_LT(stopped, 1000);
  }
  EXPECT_GT(stopped, 10);  // between files, and between parameters
  EXPECT_NO_THROW(load_model_folder(out));
}

TEST_F(HostileGgufModel, FilesThatAreNone) {
  expect_one_line_error([&] { load_model_folder(path); }, "small.gguf", "missing");
  write_file_atomically(path, "{}");
  expect_one_line_error([&] { load_model_folder(path); }, "not GGUF", "JSON");
  fs::remove(path);
  fs::create_directory(path);
  expect_one_line_error([&] { load_model_folder(path); }, "small.gguf", "a folder");
}

TEST_F(HostileGgufModel, FlippedBitsNeverCrash) {
  const std::string whole = small_gguf().bytes();
  int refused_flips = 0, flips = 0;
  for (size_t at = 0; at < whole.size() - 2000; at += 3) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    write_file_atomically(path, flipped);
    ++flips;
    try {
      load_model_folder(path);
    } catch (const Error& error) {
      ++refused_flips;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(refused_flips, flips / 4);
}

}  // namespace
}  // namespace mh
