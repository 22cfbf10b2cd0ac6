// What is refused takes at most the size of its file and 64 MiB of memory, measured of the tool as a whole.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "tests/cli/run_tool.h"
#include "tests/io/gguf_bytes.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using test::gguf_f32, test::gguf_string, test::gguf_u32, test::gguf_zeros, test::GgufSpec,
    test::little_endian;
using testing::HasSubstr;

constexpr int64_t kAllowed = int64_t{64} << 20;  // beside the file

struct Refusal {
  int status = -1;
  std::string err;
  int64_t peak = 0;  // bytes
};

/// The tool's answer and the most memory that it had.
Refusal answer_to(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "multihead");
  arguments.push_back(nullptr);
  const ScratchFolder scratch;
  const std::string err = scratch.write("err", "");
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(err.c_str(), O_WRONLY);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::execv(tool_file().c_str(), const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .err = scratch.read("err"),
          .peak = int64_t{usage.ru_maxrss} * 1024};
}

void expect_refused(const std::vector<const char*>& arguments, int64_t size, const std::string& part) {
  const Refusal found = answer_to(arguments);
  EXPECT_EQ(found.status, 1) << part;
  EXPECT_THAT(found.err, HasSubstr(part));
  EXPECT_LT(found.peak, size + kAllowed) << part << ": the file has " << size << " bytes";
}

/// 57 MB in blocks of 4 bits, which are 400 MB as float32.
GgufSpec wide_gguf() {
  constexpr uint64_t kWidth = 512, kHidden = 1 << 16, kVocabulary = 32;
  GgufSpec spec;
  spec.values = {{"general.architecture", gguf_string("llama")},
                 {"llama.block_count", gguf_u32(1)},
                 {"llama.context_length", gguf_u32(8)},
                 {"llama.embedding_length", gguf_u32(kWidth)},
                 {"llama.feed_forward_length", gguf_u32(kHidden)},
                 {"llama.attention.head_count", gguf_u32(8)},
                 {"llama.attention.layer_norm_rms_epsilon", gguf_f32(1e-5f)}};
  const auto add = [&](const char* name, uint64_t in, uint64_t out) {
    constexpr uint32_t kQ4_0 = 2;
    spec.tensors.push_back(
        {.name = name, .sizes = {in, out}, .type = kQ4_0, .data = std::string(in * out / 32 * 18, '\0')});
  };
  spec.tensors = {gguf_zeros("output_norm.weight", {kWidth}), gguf_zeros("blk.0.attn_norm.weight", {kWidth}),
                  gguf_zeros("blk.0.ffn_norm.weight", {kWidth})};
  add("token_embd.weight", kWidth, kVocabulary);
  for (const char* name :
       {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight"})
    add(name, kWidth, kWidth);
  add("blk.0.ffn_gate.weight", kWidth, kHidden);
  add("blk.0.ffn_up.weight", kWidth, kHidden);
  add("blk.0.ffn_down.weight", kHidden, kWidth);
  return spec;
}

TEST(RefusedMemory, GgufFilesThatAreQuantised) {
  const std::vector<std::pair<std::function<void(GgufSpec&)>, std::string>> damages = {
      {[](GgufSpec& s) {
         std::string& data = s.tensor("blk.0.ffn_down.weight").data;
         data.replace(data.size() - 18, 2, std::string("\x00\x7c", 2));  // the last scale is infinite
       },
       "not finite: 32 of 33554432 numbers of blk.0.ffn_down.weight"},
      {[](GgufSpec& s) { s.tensors.push_back(gguf_zeros("more", {3})); }, "not used: more"},
      {[](GgufSpec& s) { s.tensors.erase(s.tensors.begin()); }, "missing: output_norm.weight"},
      {[](GgufSpec& s) {
         s.tensor("output_norm.weight").sizes = {256, 2};
       },
       "shape of output_norm.weight"}};
  for (const auto& [damage, part] : damages) {
    const ScratchFolder scratch;
    int64_t size = 0;
    std::string path;
    {
      GgufSpec spec = wide_gguf();
      damage(spec);
      const std::string bytes = spec.bytes();
      size = static_cast<int64_t>(bytes.size());
      path = scratch.write("wide.gguf", bytes);
    }
    expect_refused({"info", path.c_str()}, size, part);
  }
}

constexpr int64_t kSize = 100'000'000;

/// `start`, then `unit` again and again, `end`, and spaces: kSize bytes.
std::string filled(std::string start, std::string_view unit, std::string_view end) {
  start.reserve(kSize);
  while (static_cast<int64_t>(start.size() + unit.size() + end.size()) <= kSize) start += unit;
  return start.append(end).append(static_cast<size_t>(kSize) - start.size(), ' ');
}

std::string as_weights(const std::string& header) {
  return little_endian(static_cast<uint64_t>(header.size())) + header;
}

/// `make` gives config.json and model.safetensors of a folder. Their bytes are gone when the tool starts, since
/// what this process has counts as the child's.
void expect_folder_refused(const std::function<std::pair<std::string, std::string>()>& make,
                           const std::string& part) {
  const ScratchFolder scratch;
  std::filesystem::create_directories(scratch.path() / "model");
  {
    const auto [config, weights] = make();
    scratch.write("model/config.json", config);
    scratch.write("model/model.safetensors", weights);
  }
  expect_refused({"info", (scratch / "model").c_str()}, kSize, part);
}

TEST(RefusedMemory, ValuesWithoutEnd) {
  const std::string gpt2 = R"({"model_type":"gpt2","n_embd":4,"n_head":1,"n_layer":1,"vocab_size":3,)"
                           R"("bos_token_id":0,"eos_token_id":0})";
  const auto header = [&](const char* start, std::string_view unit, std::string_view end, const char* part) {
    expect_folder_refused([&] { return std::pair(gpt2, as_weights(filled(start, unit, end))); }, part);
  };
  const char* const memory = "its values would take more than 41943040 bytes";
  header(R"({"a":{"dtype":"U8","shape":[0)", ",0", R"(],"data_offsets":[0,0]}})", memory);
  header(R"({"__metadata__":{"a":")", "xxxxxxxx", "\"}}",
         "a text, a number or its space has more than 8388608 bytes");
  header("{", " ", "}", "a text, a number or its space has more than 8388608 bytes");
  expect_folder_refused([&] { return std::pair(filled("{\"model_type\":[0", ",0", "]}"), as_weights("{}")); },
                        memory);
}

/// `unit` with its number in the place of every #, `count` times, with commas between.
std::string numbered(std::string_view unit, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    for (const char c : unit) c == '#' ? text += std::to_string(i) : text += c;
  }
  return text;
}

/// `make` gives the JSON, whose bytes are gone when the tool starts.
void expect_tokenizer_refused(const std::function<std::string()>& make, const std::string& part) {
  const ScratchFolder scratch;
  const std::string path = scratch.write("tokenizer.json", make());
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  expect_refused({"tokenize", "--tokenizer", path.c_str()}, size, part);
}

// Each fault stands after lists that would take some hundred megabytes when they are kept.
TEST(RefusedMemory, TokenizersOfManyTokens) {
  constexpr int kMany = 1'000'000;
  const auto repeated = [](std::string start, std::string_view unit, std::string_view end) {
    for (int i = 0; i < 2 * kMany; ++i) start += unit;
    return start.append(end);
  };
  const auto words = [] {
    return R"({"model":{"type":"BPE","vocab":{"a":1000000,"b":1000001,"ab":1000002,)" +
           numbered(R"("#":#)", kMany) + "}";
  };
  expect_tokenizer_refused(words, "cut short");
  expect_tokenizer_refused([&] { return repeated(words() + R"(,"merges":[)", R"("a b",)", R"("a c"]}})"); },
                           "model.merges[2000000]: 'c' is not in model.vocab");
  expect_tokenizer_refused(
      [&] {
        return words() + R"(,"merges":[]},"added_tokens":[)" + numbered(R"({"id":#,"content":"#"})", kMany) +
               R"(,{"id":7,"content":"x"}]})";
      },
      "two tokens have id 7: 'x' and one before it");
  expect_tokenizer_refused(
      [] { return R"({"model":{"vocab":{)" + numbered(R"("#":#)", kMany + 50'000) + "}}}"; },
      "model.vocab: more than 1048576 tokens");
  expect_tokenizer_refused(
      [] {
        return R"({"model":{"type":"Unigram","vocab":[)" + numbered(R"(["#",-#])", kMany) +
               R"(],"unk_id":1000000}})";
      },
      "model.unk_id: expected an id below 1000000");
  expect_tokenizer_refused([&] { return repeated(R"({"version":[0)", ",0", "]}"); },
                           "its values would take more than 8388608 bytes");
}

}  // namespace
}  // namespace mh
