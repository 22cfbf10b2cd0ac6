// The page of the demonstration's translator: what `multihead view --live` would write of it, with the corpus's trees and
// alignments.
#pragma once

#include <filesystem>
#include <string>

#include "lab/demo/demo.h"

namespace mh {

struct DemoPage {
  std::filesystem::path file;  // folder/heads.html
  std::string title;           // "Encoder 1, head 1: article → noun, 97 %"
};

/// Throws FileError.
DemoPage write_demo_page(const DemoSettings& settings, const DemoResult& result);

}  // namespace mh
