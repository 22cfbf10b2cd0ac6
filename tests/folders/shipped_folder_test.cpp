// The model that comes with the library: `demo` from any folder, unless a model of that name lies there.
#include "multihead/folders/shipped_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

const fs::path kShippedFiles = fs::path(goldens_folder()) / "../../share/demo";

/// Of all parameters, in their order.
std::string bytes_of(const Model& model) {
  std::string bytes;
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    const Tensor& numbers = parameter.value.tensor();
    bytes += name;
    bytes.append(reinterpret_cast<const char*>(numbers.data()),
                 static_cast<size_t>(numbers.size()) * sizeof(float));
  }));
  return bytes;
}

/// The tests stand in an empty folder.
class ShippedFolder : public testing::Test {
 protected:
  void SetUp() override { fs::current_path(scratch_.path()); }
  void TearDown() override { fs::current_path(before_); }

 private:
  const test::ScratchFolder scratch_;
  const fs::path before_ = fs::current_path();
};

TEST_F(ShippedFolder, IsTheFilesOfShareDemo) {
  const ModelFolder shipped = load_model_folder("demo"),
                    files = load_model_folder(fs::absolute(kShippedFiles));
  EXPECT_TRUE(shipped.shipped);
  EXPECT_FALSE(files.shipped);
  EXPECT_EQ(shipped.remark(), "");
  EXPECT_EQ(shipped.model->parameter_count(), 630'688);
  EXPECT_TRUE(bytes_of(*shipped.model) == bytes_of(*files.model));
  const std::string sentence = "the small dog sees a cat .";
  EXPECT_EQ(load_tokenizer("demo").encode_ids(sentence), files.source_tokens().encode_ids(sentence));
}

TEST_F(ShippedFolder, IsNotHiddenByTheFolderThatTheDemoMakes) {
  fs::create_directories("demo/corpus");
  fs::copy(kShippedFiles, "demo/model", fs::copy_options::recursive);
  EXPECT_TRUE(load_model_folder("demo").shipped);
  EXPECT_FALSE(load_model_folder("demo/model").shipped);
}

TEST_F(ShippedFolder, ComesAfterAModelOfThatNameHere) {
  fs::copy(kShippedFiles, "demo", fs::copy_options::recursive);
  const ModelFolder here = load_model_folder("demo");
  EXPECT_FALSE(here.shipped);
  EXPECT_EQ(here.remark(), "demo is the folder here, not the translator demo that comes with multihead");
}

TEST_F(ShippedFolder, DoesNotHideADamagedModel) {
  for (const char* file :
       {"config.json", "model.safetensors", "model.safetensors.index.json", "modules.json"}) {
    fs::create_directory("demo");
    std::ofstream(fs::path("demo") / file) << "[]";
    EXPECT_FALSE(is_shipped("demo")) << file;
    EXPECT_ANY_THROW(load_model_folder("demo")) << file;
    fs::remove_all("demo");
  }
  fs::create_directories("demo/checkpoints");
  EXPECT_THAT([] { load_model_folder("demo"); },
              ThrowsMessage<FileError>(HasSubstr("the training there has made no checkpoint yet")));
}

TEST_F(ShippedFolder, HasThisNameAlone) {
  EXPECT_TRUE(is_shipped("demo"));
  for (const char* path : {"./demo", "demo/", "Demo", "demo.gguf", ""})
    EXPECT_FALSE(is_shipped(path)) << path;
}

}  // namespace
}  // namespace mh
