// Whether a GGUF file is computed right, by what transformers answered before with the numbers that the gguf package reads
// (tests/oracles/check_goldens.py).
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "multihead/base/file.h"
#include "multihead/check/check_model.h"
#include "multihead/io/gguf.h"
#include "multihead/io/safetensors.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

fs::path golden_file() {
  return fs::path(goldens_folder()) / "gguf" / "untied_llama3.gguf";
}
const CheckOptions kOptions{.texts = {"The year 2024"}};

CheckReport report_of(const fs::path& file) {
  return check_model(
      load_model_folder(file), kOptions,
      SafetensorsFile::open(fs::path(goldens_folder()) / "check" / "gguf_untied_llama3.gguf.safetensors"));
}

/// The bytes of the file with the first row of a tensor behind its last one.
std::string with_turned_rows(const fs::path& file, std::string_view tensor) {
  std::string bytes = read_file(file);
  const GgufFile opened = GgufFile::open(file);
  const GgufTensor& found = *opened.tensor(tensor);
  const std::string_view stored(reinterpret_cast<const char*>(found.bytes.data()), found.bytes.size());
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.find(stored));
  const auto size = std::ssize(stored);
  std::rotate(begin, begin + size / found.shape.front(), begin + size);
  return bytes;
}

TEST(CheckGguf, OfARightFileSaysSo) {
  const CheckReport report = report_of(golden_file());
  EXPECT_TRUE(report.right());
  EXPECT_EQ(report.transformers_class, "LlamaForCausalLM");
  EXPECT_EQ(report.greedy_texts, 1u);
  EXPECT_EQ(report.weights_hash.size(), 64u);
  EXPECT_EQ(report.sites.back().site, "decoder.logits");
}

TEST(CheckGguf, FindsAFaultAtItsSite) {
  const test::ScratchFolder scratch;
  const fs::path file = scratch / "model.gguf";
  for (const auto& [tensor, site] :
       {std::pair{"blk.0.attn_q.weight", "decoder.0.self_attention.projected_queries"},
        {"blk.0.ffn_up.weight", "decoder.0.feed_forward.hidden"},
        {"output.weight", "decoder.logits"}}) {
    write_file_atomically(file, with_turned_rows(golden_file(), tensor));
    const CheckReport report = report_of(file);
    EXPECT_FALSE(report.right()) << tensor;
    ASSERT_TRUE(report.first.has_value()) << tensor;
    EXPECT_EQ(report.first->site, site);
  }
}

TEST(CheckGguf, GivesTheFileAndTheConfigOfItsMetadata) {
  const ModelFolder folder = load_model_folder(golden_file());
  const auto request = nlohmann::json::parse(check_request(folder, check_texts(folder, {}, 3), 1));
  EXPECT_EQ(request["gguf"]["files"], nlohmann::json({fs::absolute(golden_file()).string()}));
  EXPECT_EQ(request["gguf"]["config"]["model_type"], "llama");
  EXPECT_EQ(request["gguf"]["config"]["tie_word_embeddings"], false);
  const ModelFolder other = load_model_folder(fs::path(goldens_folder()) / "gpt2" / "tied");
  EXPECT_EQ(nlohmann::json::parse(check_request(other, check_texts(other, {}, 3), 1))["gguf"], nullptr);
}

}  // namespace
}  // namespace mh
