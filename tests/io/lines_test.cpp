#include "multihead/io/lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "hostile.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/io/line_splitter.h"
#include "tests/support/scratch_folder.h"

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

TEST(Lines, PiecesOfAnySizeGiveTheSameLines) {
  const std::string mark = "\xef\xbb\xbf", text = mark + "na\u00efve\r\n\n\u6f22\u5b57\nlast";
  const auto expected = split_lines(text, "x");
  ASSERT_THAT(expected, ElementsAre("na\u00efve", "", "\u6f22\u5b57", "last"));
  const std::string two_members =
      gzip(text.substr(0, 9)) + gzip("") + gzip(text.substr(9)) + std::string(5, '\0');
  for (const std::string& bytes : {text, two_members}) {
    for (size_t size = 1; size <= bytes.size(); ++size) {
      LineSplitter splitter("x", {});
      std::vector<std::string> lines;
      for (size_t at = 0; at < bytes.size(); at += size)
        splitter.feed(std::string_view(bytes).substr(at, size), lines);
      splitter.finish(lines);
      ASSERT_EQ(lines, expected) << "pieces of " << size << " bytes";
    }
  }
  EXPECT_THAT(split_lines("\x1f", "x"), ElementsAre("\x1f"));  // half of what gzip begins with
  EXPECT_THAT(split_lines("\x1f\nb", "x"), ElementsAre("\x1f", "b"));
  expect_one_line_error([] { split_lines(gzip("a") + "\x1f", "t.gz"); }, "follow", "half of a member");
}

TEST(Lines, LimitOfALine) {
  const TextLimits limits{.max_line_characters = 5};
  EXPECT_THAT(split_lines("\u00e4\u00f6\u00fc\u00df\u6f22\r\nabcde\n", "x", limits),
              ElementsAre("\u00e4\u00f6\u00fc\u00df\u6f22", "abcde"));  // characters, not bytes
  EXPECT_THAT(split_lines("\xef\xbb\xbf"
                          "abcde",
                          "x", limits),
              ElementsAre("abcde"));
  for (const char* text : {"ab\nabcdef\n", "ab\nabcdef"}) {
    expect_one_line_error([&] { split_lines(text, "t", limits); },
                          "t: line 2 has more than 5 characters; break it up, or raise `max_line_characters`",
                          text);
  }
  EXPECT_EQ(split_lines(std::string(1'000'000, 'a'), "x").size(), 1u) << "the default takes a million";
  // Refused while it is unpacked: 50 MB of zeros would need their own size otherwise.
  const std::string bomb = gzip(std::string(50'000'000, '\0'));
  LineSplitter splitter("bomb.gz", {});
  std::vector<std::string> lines;
  expect_one_line_error([&] { splitter.feed(std::string_view(bomb).substr(0, bomb.size() / 10), lines); },
                        "bomb.gz: line 1 has more than 1000000 characters", "zeros");
}

TEST(Lines, GzipThatSaysHardlyAnythingIsRefusedEarly) {
  std::string letters(999, 'a');
  const std::string line = letters + "\n";
  std::string text;
  while (text.size() < 70'000'000) text += line;
  const std::string bomb = gzip(text);
  ASSERT_GT(text.size(), 400 * bomb.size());
  LineSplitter splitter("bomb.gz", {});
  const auto feed = [&](size_t begin, size_t end) {
    std::vector<std::string> lines;
    for (size_t at = begin; at < end; at += 2048) {
      lines.clear();
      splitter.feed(std::string_view(bomb).substr(at, std::min<size_t>(2048, end - at)), lines);
    }
  };
  feed(0, bomb.size() / 2);  // 35 MB: nobody minds
  expect_one_line_error(
      [&] { feed(bomb.size() / 2, bomb.size()); },
      "bomb.gz: its gzip data unpacks to more than 400 times its size, as no text does; unpack the",
      "letters");
}

TEST(Lines, ReadingEndsWhenTheCallerAsks) {
  const test::ScratchFolder folder;
  const std::string path = folder / "text";
  write_file_atomically(path, "a\nb\n");
  const StopScope scope([] { return true; });
  EXPECT_THROW(read_lines(path), Interrupted);
}

TEST(Lines, LimitOfWhatGzipUnpacksTo) {
  const std::string text = "abc\ndef\n", packed = gzip("abc\n") + gzip("def\n");
  EXPECT_EQ(split_lines(packed, "t", {.max_unpacked = 8}).size(), 2u);
  expect_one_line_error([&] { split_lines(packed, "t.gz", {.max_unpacked = 7}); },
                        "t.gz unpacks to more than 7 bytes; raise `max_unpacked` if that is meant",
                        "two members");
  EXPECT_EQ(split_lines(text, "t", {.max_unpacked = 1}).size(), 2u) << "of gzip alone";
}

/// A pipe whose other end the test writes to.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    end();
    ::close(ends_[0]);
  }
  void write(std::string_view bytes) const {
    EXPECT_EQ(::write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  int reading() const { return ends_[0]; }

 private:
  int ends_[2] = {-1, -1};
};

TEST(LineReader, GivesWhatAPipeHasByNow) {
  Pipe pipe;
  LineReader reader(pipe.reading(), "pipe");
  EXPECT_FALSE(reader.is_terminal());
  const LineBlock at_once{.wait = std::chrono::milliseconds(0)};
  pipe.write("one\ntw");
  EXPECT_THAT(reader.next(at_once), ElementsAre("one"));  // and the pipe is still open
  EXPECT_FALSE(reader.ended());
  pipe.write("o\nthree\n");
  EXPECT_THAT(reader.next(), ElementsAre("two", "three"));
  ASSERT_EQ(::fcntl(pipe.reading(), F_SETFL, O_NONBLOCK), 0);
  pipe.write("fo");
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the reader finds nothing at first
    pipe.write("ur");
    pipe.end();
  });
  EXPECT_THAT(reader.next(at_once), ElementsAre("four"));
  later.join();
  EXPECT_TRUE(reader.ended());
  EXPECT_THAT(reader.next(), IsEmpty());
}

TEST(LineReader, BlocksOfAFileMakeTheWhole) {
  const auto path = std::filesystem::temp_directory_path() / ("mh_blocks_" + std::to_string(::getpid()));
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * 7919) + "\n";
  const auto expected = split_lines(text, "x");
  for (const std::string& bytes : {text, gzip(text)}) {
    write_file_atomically(path, bytes);
    LineReader reader(path), by_bytes(path);
    std::vector<std::string> lines;
    while (!reader.ended()) {
      const auto block = reader.next({.max_lines = 100});
      EXPECT_TRUE(block.size() >= 100 || reader.ended());
      lines.insert(lines.end(), block.begin(), block.end());
    }
    EXPECT_EQ(lines, expected);
    EXPECT_LT(by_bytes.next({.max_bytes = 500}).size(), 3000u);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace mh
