// A copy of a small folder that sentence-transformers wrote, for tests that change it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/io/lines.h"
#include "multihead/io/safetensors.h"
#include "multihead/tasks/embed_text.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh::test {

inline const std::filesystem::path kSentenceFolders = std::filesystem::path(goldens_folder()) / "sentences";

class SentenceFolder : public testing::Test {
 protected:
  /// folders: those of tests/goldens/sentences, or others with the same files beside them.
  explicit SentenceFolder(std::filesystem::path folders = kSentenceFolders) : goldens(std::move(folders)) {}

  /// A copy of a golden folder, to be changed.
  std::filesystem::path copy_of(const std::string& name) {
    const std::filesystem::path folder = scratch / (name + std::to_string(copies++));
    std::filesystem::copy(goldens / name, folder, std::filesystem::copy_options::recursive);
    return folder;
  }
  static void edit(const std::filesystem::path& file, const std::function<void(nlohmann::json&)>& change) {
    auto document = nlohmann::json::parse(read_file(file));
    change(document);
    write_file_atomically(file, document.dump());
  }
  Tensor vectors_of(const std::filesystem::path& folder, const EmbedTextOptions& options = {}) const {
    return embed_text(load_sentence_model(folder), read_lines(goldens / "sentences.txt"), options);
  }
  std::vector<float> golden(const std::string& name) const {
    return SafetensorsFile::open(goldens / "vectors.safetensors").floats(name);
  }
  /// Columns [first, first + found.cols()) of the golden vectors of `name`, which have `width`.
  void expect_near(const Tensor& found, const std::string& name, int64_t width, int64_t first = 0) const {
    const std::vector<float> expected = golden(name);
    ASSERT_EQ(static_cast<size_t>(found.rows() * width), expected.size());
    double most = 0, difference = 0;
    for (int64_t i = 0; i < found.rows(); ++i) {
      for (int64_t j = 0; j < found.cols(); ++j) {
        const double wanted = expected[static_cast<size_t>(i * width + first + j)];
        most = std::max(most, std::abs(wanted));
        difference = std::max(difference, std::abs(wanted - static_cast<double>(found(i, j))));
      }
    }
    EXPECT_LT(difference, within * most) << name << " from column " << first;
  }
  static void expect_refused(const std::filesystem::path& folder, const std::string& part) {
    try {
      load_sentence_model(folder);
      ADD_FAILURE() << "was not refused: " << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }

  const std::filesystem::path goldens;
  double within = 2e-6;  // of the largest number
  const ScratchFolder scratch;
  int copies = 0;
};

}  // namespace mh::test
