// Files made to break the reader. Each must end in a one-line error, and no size in a file makes the reader
// take memory.
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "hostile.h"
#include "multihead/base/file.h"
#include "multihead/io/safetensors.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using test::expect_one_line_error;

std::string with_length(uint64_t length, std::string_view rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(rest);
}
std::string with_header(std::string_view header, size_t data) {
  return with_length(header.size(), std::string(header) + std::string(data, '\1'));
}
void read_all(const SafetensorsFile& file) {
  for (const auto& entry : file.entries()) file.bytes(entry.name);
}

struct Hostile {
  const char* header;
  size_t data;
  const char* part;  // of the message
};

TEST(HostileSafetensors, Headers) {
  // What a good one looks like, so that each of the others is wrong in one thing only.
  EXPECT_NO_THROW(SafetensorsFile::from_bytes(
      with_header(R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   )", 8), "good"));
  const Hostile hostile[] = {
      // not JSON, or not an object
      {"", 0, "begins with no {"},
      {" {}", 0, "begins with no {"},
      {"[]", 0, "begins with no {"},
      {"null", 0, "begins with no {"},
      {"{", 0, "not JSON"},
      {"{}}", 0, "not JSON"},
      {"{} x", 0, "not JSON"},
      {R"({"a":})", 0, "not JSON"},
      {R"({"a":NaN})", 0, "\"a\" is NaN or infinite; expected a finite number"},
      {"{\"a\xff\":1}", 0, "UTF-8"},
      {R"({"a":"\ud800"})", 0, "not JSON"},
      {R"({"a":[[[[[[[[]]]]]]]]})", 0, "nested"},
      {R"({"a":{"dtype":{"x":{"y":1}}}})", 0, "nested"},
      // entries
      {R"({"a":1})", 0, "expected an object"},
      {R"({"a":{}})", 0, "dtype is missing"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "data_offsets is missing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "shape is missing"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":0}})", 4, "unknown key"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype"},
      {R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype"},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype"},
      {R"({"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})", 4, "expected a list"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "expected a list"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "sizes of 0 and more"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "sizes of 0 and more"},
      {R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4, "sizes of 0 and more"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0,
       "sizes of 0 and more"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "two integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4, "two integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "two integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4.0]}})", 4, "two integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":{"0":0,"1":4}}})", 4, "two integers"},
      // sizes that lie
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "expected 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8, "expected 4 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "expected 4 bytes"},
      {R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,4]}})", 4, "expected 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,0]}})", 0, "expected 4 bytes"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "larger"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "larger"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0, "larger"},
      {R"({"a":{"dtype":"U8","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", 0, "larger"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}})", 4,
       "larger"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})", 4,
       "complete?"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551615,3]}})", 4, "expected 4 bytes"},
      // layout
      {R"({})", 1, "complete?"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "complete?"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "complete?"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "hole"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
       9, "hole"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "overlap"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       4, "overlap"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})", 0, "hole"},
      // names
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "twice"},
      {R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1, "twice"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "twice"},
      // metadata
      {R"({"__metadata__":[]})", 0, "__metadata__"},
      {R"({"__metadata__":null})", 0, "__metadata__"},
      {R"({"__metadata__":{"a":1}})", 0, "expected a text"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "expected a text"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "twice"},
  };
  for (const auto& [header, data, part] : hostile) {
    expect_one_line_error(
        [&, &header = header, &data = data] {
          read_all(SafetensorsFile::from_bytes(with_header(header, data), "m.safetensors"));
        },
        part, header);
  }
  std::string nul = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  nul += std::string("\0 ,", 3);
  expect_one_line_error([&] { SafetensorsFile::from_bytes(with_header(nul, 1), "m"); }, "NUL",
                        "NUL ends the JSON");
}

TEST(HostileSafetensors, LengthsOfTheHeader) {
  const auto open = [](std::string bytes) { SafetensorsFile::from_bytes(std::move(bytes), "m.safetensors"); };
  for (size_t size = 0; size < 8; ++size) {
    expect_one_line_error([&] { open(std::string(size, '\0')); }, "too few", "no length");
  }
  expect_one_line_error([&] { open(with_length(0, "")); }, "begins with no {", "empty header");
  expect_one_line_error([&] { open(with_length(3, "{}")); }, "cut short", "one too long");
  expect_one_line_error([&] { open(with_length(100'000'000, "{}")); }, "cut short",
                        "the longest allowed, not there");
  expect_one_line_error([&] { open(with_length(100'000'001, "{}")); }, "at most", "longer than allowed");
  expect_one_line_error([&] { open(with_length(~uint64_t{0}, "{}")); }, "at most", "2^64 - 1");
  expect_one_line_error([&] { open(with_length(~uint64_t{7}, "{}")); }, "at most", "8 + length wraps round");
  std::string deep(100'000, '[');
  expect_one_line_error([&] { open(with_header("{\"a\":" + deep, 0)); }, "nested", "deep nesting");
}

std::string golden() {
  return read_file(std::filesystem::path(goldens_folder()) / "io" / "all_types.safetensors");
}
size_t header_end(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  return 8 + length;
}

TEST(HostileSafetensors, TruncatedAtEveryByteOfTheHeader) {
  const std::string bytes = golden();
  for (size_t length = 0; length <= header_end(bytes) + 16; ++length) {
    expect_one_line_error([&] { SafetensorsFile::from_bytes(bytes.substr(0, length), "m"); },
                          "m: ", "cut short");
  }
  expect_one_line_error([&] { SafetensorsFile::from_bytes(bytes.substr(0, bytes.size() - 1), "m"); },
                        "complete?", "last byte gone");
  expect_one_line_error([&] { SafetensorsFile::from_bytes(bytes + "x", "m"); }, "complete?",
                        "a byte too many");
}

TEST(HostileSafetensors, EveryBitOfTheHeaderFlipped) {
  const std::string bytes = golden();
  int refused = 0, total = 0;
  for (size_t at = 0; at < header_end(bytes); ++at) {
    for (int bit = 0; bit < 8; ++bit, ++total) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      try {
        const auto file = SafetensorsFile::from_bytes(std::move(flipped), "m");
        read_all(file);  // a letter of a name changed, say: a good file of another content
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GT(refused, total / 2);
}

TEST(HostileSafetensors, AFileCutWhileItIsOpen) {
  const auto path =
      std::filesystem::temp_directory_path() / ("mh_cut_" + std::to_string(::getpid()) + ".safetensors");
  write_file_atomically(path, golden());
  const auto file = SafetensorsFile::open(path);
  EXPECT_NO_THROW(file.floats("f32"));
  std::filesystem::resize_file(path, 100);
  expect_one_line_error([&] { file.floats("f32"); }, "shorter", "cut while open");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace mh
