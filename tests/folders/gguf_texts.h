// The texts of tests/oracles/gguf_goldens.py, whose ids the goldens have.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/io/safetensors.h"
#include "multihead/text/tokenizer.h"

namespace mh::test {

inline void expect_ids_of_texts(const Tokenizer& tokenizer, const SafetensorsFile& golden,
                                const std::string& prefix) {
  const std::vector<std::string> texts = {"The year 2024 had 366 days.",
                                          "don't you're we'll I'd  two spaces\n\n\tand a tab ",
                                          "<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n",
                                          "café, naïve, Ångström; 東京 и Москва ½ ² ٣",
                                          "",
                                          std::string(127, 'x')};
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<int64_t> expected = golden.integers(prefix + "text." + std::to_string(i));
    const std::vector<int32_t> found = tokenizer.encode_ids(texts[i]);
    EXPECT_EQ(std::vector<int64_t>(found.begin(), found.end()), expected) << texts[i];
    EXPECT_EQ(tokenizer.decode(found, false).ends_with(texts[i]), true) << texts[i];
  }
}

}  // namespace mh::test
