// Files that are written here are read again, here and, in the tests of folders, as models.
#include "multihead/io/gguf_writer.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/io/gguf.h"
#include "tests/io/gguf_bytes.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::ElementsAre;

/// A tensor whose bytes are those of `data`.
GgufOutputTensor output_of(const std::string& name, std::vector<int64_t> shape, GgufType type,
                           const std::string& data) {
  GgufOutputTensor tensor{.name = name, .shape = std::move(shape), .type = type, .rows = nullptr};
  tensor.rows = [data, bytes = tensor.row_bytes()](int64_t begin, int64_t end, std::span<std::byte> to) {
    ASSERT_EQ(std::ssize(to), (end - begin) * bytes);
    std::memcpy(to.data(), data.data() + begin * bytes, to.size());
  };
  return tensor;
}

class GgufWriter : public testing::Test {
 protected:
  const std::string halves = std::string("ABCDEFGHIJKLMNOPQRSTUV"), floats = std::string(13 * 4, 'x'),
                    blocks = std::string(3 * 2 * 34, '\1');
  const std::vector<GgufOutputTensor> tensors = {output_of("halves", {11}, GgufType::kF16, halves),
                                                 output_of("blocks", {3, 64}, GgufType::kQ8_0, blocks),
                                                 output_of("floats", {13, 1}, GgufType::kF32, floats)};
  const test::ScratchFolder scratch;
  const std::filesystem::path path = scratch / "made.gguf";
};

TEST_F(GgufWriter, GivesTheBytesOfTheFormat) {
  for (const uint32_t alignment : {32u, 8u, 64u}) {
    const std::vector<GgufOutputValue> values = {
        {.key = "words", .bytes = test::gguf_strings({"a", "", "żółw"})},
        GgufOutputValue::of("general.alignment", alignment)};
    write_gguf(path, values, tensors);
    test::GgufSpec expected{.values = {{"words", test::gguf_strings({"a", "", "żółw"})},
                                       {"general.alignment", test::gguf_u32(alignment)}},
                            .tensors = {{.name = "halves", .sizes = {11}, .type = 1, .data = halves},
                                        {.name = "blocks", .sizes = {64, 3}, .type = 8, .data = blocks},
                                        {.name = "floats", .sizes = {1, 13}, .type = 0, .data = floats}},
                            .alignment = alignment};
    std::string bytes = expected.bytes();
    bytes.append((alignment - floats.size() % alignment) % alignment, '\0');
    EXPECT_EQ(read_file(path), bytes) << alignment;
    const GgufFile file = GgufFile::open(path);
    EXPECT_THAT(file.texts("words").value(), ElementsAre("a", "", "żółw"));
    EXPECT_EQ(file.stored("words"), test::gguf_strings({"a", "", "żółw"}));
    EXPECT_THAT(file.tensor("blocks")->shape, ElementsAre(3, 64));
    EXPECT_EQ(std::memcmp(file.tensor("halves")->bytes.data(), halves.data(), halves.size()), 0);
  }
}

TEST_F(GgufWriter, AFileThatCannotBeFinishedIsNotThere) {
  std::vector<GgufOutputTensor> failing = tensors;
  failing.back().rows = [](int64_t, int64_t, std::span<std::byte>) { throw Error("no numbers"); };
  EXPECT_THROW(write_gguf(path, {}, failing), Error);
  const StopScope stopped([] { return true; });
  EXPECT_THROW(write_gguf(path, {}, tensors), Interrupted);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

}  // namespace
}  // namespace mh
