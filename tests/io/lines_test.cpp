#include "multihead/io/lines.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "hostile.h"
#include "multihead/base/file.h"

namespace mh {
namespace {

using test::expect_one_line_error;
using testing::ElementsAre;
using testing::IsEmpty;

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

TEST(Lines, LineEnds) {
  EXPECT_THAT(split_lines("", "x"), IsEmpty());
  EXPECT_THAT(split_lines("\n", "x"), ElementsAre(""));
  EXPECT_THAT(split_lines("a\n\nb", "x"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("a\r\n\r\nb\r\n", "x"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("a\rb\r\r\n", "x"), ElementsAre("a\rb\r"));  // only the line end goes
  EXPECT_THAT(split_lines("\xef\xbb\xbf"
                          "a\n\xef\xbb\xbf"
                          "b",
                          "x"),
              ElementsAre("a",
                          "\xef\xbb\xbf"
                          "b"));
  EXPECT_THAT(split_lines("\xef\xbb\xbf", "x"), IsEmpty());
  // Other line separators of Unicode are characters of a line here: sentence numbers must agree with wc -l.
  EXPECT_THAT(split_lines("a\u2028b\u0085c\x0b\n", "x"), ElementsAre("a\u2028b\u0085c\x0b"));
}

TEST(Lines, BrokenUtf8NamesTheLine) {
  expect_one_line_error([] { split_lines("ok\nna\xefve\n", "text.de"); }, "text.de: line 2: byte 3",
                        "Latin-1");
  expect_one_line_error([] { split_lines("\xc0\xaf", "text.de"); }, "line 1", "overlong");
  expect_one_line_error([] { split_lines("a\n\n\nb\xed\xa0\x80", "text.de"); }, "line 4", "surrogate");
}

TEST(Lines, GzipByItsFirstBytes) {
  const auto path = std::filesystem::temp_directory_path() / ("mh_lines_" + std::to_string(::getpid()));
  write_file_atomically(path, gzip("eins\nzwei\n"));
  EXPECT_THAT(read_lines(path), ElementsAre("eins", "zwei"));
  write_file_atomically(path, gzip("eins\n") + gzip("") + gzip("zwei"));
  EXPECT_THAT(read_lines(path), ElementsAre("eins", "zwei"));
  write_file_atomically(path, "eins\nzwei");
  EXPECT_THAT(read_lines(path), ElementsAre("eins", "zwei"));
  std::filesystem::remove(path);
  expect_one_line_error([&] { read_lines(path); }, path.string(), "no such file");
  expect_one_line_error([&] { read_lines("/"); }, "directory", "a folder");
}

TEST(Lines, LongTextComesBackFromGzip) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919) + "\n";
  const auto lines = split_lines(gzip(text), "x");
  ASSERT_EQ(lines.size(), 50'000u);
  EXPECT_EQ(lines[49'999], std::to_string(49'999 * 7919));
}

TEST(Lines, DamagedGzip) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i * i * 31 % 1009) + "\n";
  const std::string packed = gzip(text);
  for (size_t length = 2; length < packed.size(); ++length) {
    expect_one_line_error([&] { split_lines(packed.substr(0, length), "t.gz"); }, "t.gz", "cut");
  }
  // The check sum at the end finds what the code inside does not.
  for (size_t at = 10; at < packed.size(); at += 7) {
    std::string broken = packed;
    broken[at] = static_cast<char>(broken[at] ^ 0x10);
    expect_one_line_error([&] { split_lines(std::move(broken), "t.gz"); }, "t.gz", "bit flipped");
  }
  expect_one_line_error([&] { split_lines(packed + "garbage", "t.gz"); }, "follow", "something after it");
  EXPECT_EQ(split_lines(packed + std::string(100, '\0'), "t.gz").size(), 300u);  // padding of a block
}

}  // namespace
}  // namespace mh
