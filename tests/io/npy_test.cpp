#include "multihead/io/npy.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <limits>
#include <numeric>

#include "hostile.h"
#include "multihead/base/file.h"
#include "tests/io/io_goldens.h"

namespace mh {
namespace {

using test::expect_one_line_error;
using testing::ElementsAre;

std::string with_header(std::string_view dictionary, std::string_view data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size() & 0xFF);
  bytes += static_cast<char>(dictionary.size() >> 8);
  bytes += dictionary;
  bytes += data;
  return bytes;
}

TEST(Npy, ReadsWhatNumpyWrote) {
  const NpyArray floats = read_npy(read_file(kIoGoldens / "float.npy"), "float.npy");
  EXPECT_THAT(floats.shape, ElementsAre(3, 5));
  EXPECT_EQ(std::get<std::vector<float>>(floats.data), numbers(15));
  const NpyArray ints = read_npy(read_file(kIoGoldens / "int.npy"), "int.npy");
  EXPECT_THAT(std::get<std::vector<int32_t>>(ints.data), ElementsAre(-3, -2, -1, 0, 1, 2, 3));
  const NpyArray single = read_npy(read_file(kIoGoldens / "long.npy"), "long.npy");
  EXPECT_TRUE(single.shape.empty());
  EXPECT_THAT(std::get<std::vector<int64_t>>(single.data), ElementsAre(int64_t{1} << 40));
  const NpyArray none = read_npy(read_file(kIoGoldens / "none.npy"), "none.npy");
  EXPECT_THAT(none.shape, ElementsAre(0, 3));
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  std::vector<int64_t> counted(210);
  std::iota(counted.begin(), counted.end(), 0);
  const std::vector<int32_t> small{-3, -2, -1, 0, 1, 2, 3};
  const std::vector<int64_t> single{int64_t{1} << 40};
  using Shape = std::vector<int64_t>;
  const std::pair<const char*, std::string> files[] = {
      {"float.npy", write_npy(Shape{3, 5}, numbers(15))},
      {"int.npy", write_npy(Shape{7}, small)},
      {"long.npy", write_npy(Shape{}, single)},
      {"none.npy", write_npy(Shape{0, 3}, std::vector<float>{})},
      {"deep.npy", write_npy(Shape{1, 2, 3, 5, 7}, counted)},
  };
  std::filesystem::create_directories(kWritten);
  for (const auto& [name, bytes] : files) {
    EXPECT_EQ(bytes, read_file(kIoGoldens / name)) << name;
    write_file_atomically(kWritten / name, bytes);  // for tests/oracles/io_goldens.py --check
  }
}

TEST(Npy, RefusesWhatIsNotWhole) {
  const std::string good = read_file(kIoGoldens / "float.npy");
  for (size_t length = 0; length < good.size(); ++length) {
    expect_one_line_error([&] { read_npy(good.substr(0, length), "a.npy"); }, "a.npy", "cut short");
  }
  expect_one_line_error([&] { read_npy(good + "x", "a.npy"); }, "expected 60 bytes of elements, got 61",
                        "too long");
}

TEST(Npy, ReadsDoublesAsFloats) {
  const std::vector<double> numbers = {0.1, -3e200, 7};
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), 3 * sizeof(double));
  const NpyArray array =
      read_npy(with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", bytes), "a");
  EXPECT_EQ(std::get<std::vector<float>>(array.data),
            (std::vector<float>{0.1f, -std::numeric_limits<float>::infinity(), 7}));
}

// What np.save writes of np.array([[True, False, True]]), but for the spaces that it appends to the header.
TEST(Npy, ReadsBooleans) {
  const std::string header = "{'descr': '|b1', 'fortran_order': False, 'shape': (1, 3), }\n";
  const NpyArray array = read_npy(with_header(header, std::string_view("\1\0\1", 3)), "a");
  EXPECT_THAT(array.shape, ElementsAre(1, 3));
  EXPECT_THAT(std::get<std::vector<bool>>(array.data), ElementsAre(true, false, true));
  expect_one_line_error([&] { read_npy(with_header(header, std::string(12, '\1')), "a.npy"); },
                        "expected 3 bytes of elements, got 12", "four bytes each");
}

TEST(Npy, RefusesHostileHeaders) {
  const std::string four(4, '\0');
  EXPECT_EQ(read_npy(with_header("{'shape':(1,),'fortran_order':False,\"descr\":\"<f4\"}\n", four), "a")
                .shape.size(),
            1u);
  const std::pair<const char*, const char*> hostile[] = {
      {"", "header"},
      {"{}\n", "missing"},
      {"[1, 2]\n", "header"},
      {"{'descr': '<f4', 'fortran_order': False}\n", "missing"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", "twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}\n", "twice"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}\n", "Fortran"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}\n", "<f4"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}\n", "expected 8 bytes"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n", "<f4"},
      {"{'descr': '|i1', 'fortran_order': False, 'shape': (4,)}\n", "<f4, <f8, <i4, <i8 or |b1, got |i1"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}\n", "shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}\n", "comma"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n", "expected 8 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}\n", "shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}\n", "larger"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}\n", "larger"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "line end"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x\n", "line end"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}\n", "True"},
      {"{'descr: '<f4', 'fortran_order': False, 'shape': (1,)}\n", "header"},
      {"{'descr': '<f4", "header"},
  };
  for (const auto& [header, part] : hostile) {
    expect_one_line_error([&, &header = header] { read_npy(with_header(header, four), "a.npy"); }, part,
                          header);
  }
  std::string version = read_file(kIoGoldens / "float.npy");
  version[6] = 3;
  expect_one_line_error([&] { read_npy(version, "a.npy"); }, "version 1.0", "version 3");
}

}  // namespace
}  // namespace mh
