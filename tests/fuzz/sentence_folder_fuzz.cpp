// The entry point of the fuzzer for the small files of sentence-transformers; scripts/fuzz builds and runs it. The
// bytes stand in the place of one file after the other in a small folder, which is then a model whose vectors can be
// computed, or an error of one line.
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/io/strict_json.h"
#include "multihead/nn/context.h"
#include "tests/fuzz/one_line.h"
#include "tests/support/places.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFiles = {"modules.json",
                               "1_Pooling/config.json",
                               "2_Dense/config.json",
                               "3_Normalize/config.json",
                               "sentence_bert_config.json",
                               "config_sentence_transformers.json"};

/// A copy of a small model for each of the files.
std::vector<fs::path> make_folders() {
  const fs::path all = fs::path(build_folder()) / "sentence_folders";
  fs::remove_all(all);
  fs::create_directories(all);
  std::vector<fs::path> folders;
  for (size_t i = 0; i < kFiles.size(); ++i) {
    folders.push_back(all / std::to_string(i));
    fs::copy(fs::path(goldens_folder()) / "sentences/dense", folders.back(), fs::copy_options::recursive);
  }
  return folders;
}

void run(const SentenceModel& model) {
  static Tape tape;  // keeps its memory
  tape.clear();
  Context context{.tape = tape};
  const Batch batch(std::vector<std::vector<int32_t>>{{0, 1, 2}, {}, {3}});
  model.vectors(context, batch.view());
}

}  // namespace
}  // namespace mh

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<mh::fs::path> folders = mh::make_folders();
  // What is no JSON is refused in every place alike: the first, modules.json, is read before any model.
  const bool json = mh::reads([&] {
    mh::parse_json_strictly({reinterpret_cast<const char*>(data), size}, "fuzzed");
  });
  for (size_t i = 0; i < (json ? folders.size() : 1); ++i) {
    std::ofstream(folders[i] / mh::kFiles[i], std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    std::optional<mh::SentenceModel> model;
    mh::reads([&] { model.emplace(mh::load_sentence_model(folders[i])); });
    if (model) mh::run(*model);
  }
  return 0;
}
