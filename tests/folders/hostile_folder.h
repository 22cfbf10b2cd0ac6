// A model folder that tests damage; loading it must end in an error of one line.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/folders/save_folder.h"
#include "tests/folders/folder_case.h"
#include "tests/io/hostile.h"

namespace mh::test {

class HostileFolder : public testing::Test {
 protected:
  HostileFolder()
      : tokenizer(small_tokenizer()),
        model(folder_shape(tokenizer.size()).config()),
        folder(scratch / "model") {
    model.initialise(3);
    save_again();
  }
  void save_again() { save_model_folder(folder, model, {.tokenizer = &tokenizer}); }
  void expect_error(std::string_view part, std::string_view what) {
    expect_one_line_error([&] { load_model_folder(folder); }, part, what);
  }
  std::string message() {
    try {
      load_model_folder(folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  const ScratchFolder scratch;
  const Tokenizer tokenizer;
  EncoderDecoder model;
  const std::filesystem::path folder;
};

}  // namespace mh::test
