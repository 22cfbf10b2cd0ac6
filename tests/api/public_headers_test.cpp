// The door of the library: what is public is listed, small, compiles as docs/api.md shows, and never aborts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "tests/support/places.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kSource = mh::source_folder();

/// multihead/*.h, from the project's root.
std::vector<std::string> public_headers() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kSource / "multihead")) {
    if (entry.path().extension() == ".h") found.push_back("multihead/" + entry.path().filename().string());
  }
  return found;
}

/// Most files that may be installed, one more for each report of `heads`. A header that a public one needs only the names of is
/// declared there.
constexpr size_t kMostInstalled = 145;

/// They and what they include.
std::set<std::string> installed_headers() {
  static const std::regex include_line(R"re(#include "([^"]+)")re");
  std::set<std::string> found;
  std::vector<std::string> pending = public_headers();
  while (!pending.empty()) {
    const std::string header = pending.back();
    pending.pop_back();
    if (!found.insert(header).second) continue;
    const std::string text = mh::read_file(kSource / header);
    for (std::sregex_iterator at(text.begin(), text.end(), include_line), end; at != end; ++at) {
      pending.push_back((*at)[1]);
    }
  }
  return found;
}

TEST(PublicHeaders, AreFewAndNeedFew) {
  EXPECT_GE(public_headers().size(), 8u);
  EXPECT_LE(public_headers().size(), 13u);
  const auto installed = installed_headers();
  EXPECT_LE(installed.size(), kMostInstalled);
  for (const std::string& header : installed) EXPECT_TRUE(header.starts_with("multihead/")) << header;
}

TEST(PublicHeaders, AreAllInTheOneAndOnThePage) {
  const std::string all = mh::read_file(kSource / "multihead/multihead.h"),
                    page = mh::read_file(kSource / "docs/api.md");
  for (const std::string& header : public_headers()) {
    if (header == "multihead/multihead.h") continue;
    EXPECT_THAT(all, HasSubstr("#include \"" + header + "\""));
    EXPECT_THAT(page, HasSubstr("[" + header + "](../" + header + ")"));
  }
  for (const auto& entry : fs::directory_iterator(kSource / "examples")) {
    if (entry.path().extension() != ".cpp") continue;
    EXPECT_THAT(page, HasSubstr("(../examples/" + entry.path().filename().string() + ")"));
  }
}

// A user who writes `using namespace mh` keeps the words that everybody uses.
TEST(PublicHeaders, TakeNoCommonWords) {
  static const std::regex function(
      R"re(\n(?:inline |constexpr |static )*[A-Za-z_:<>]+[A-Za-z_:<>,*& ]* [*&]?(add|block|check|copy|describe|fill|find|max|min|normal|print|problems|product|scale|shown|size|sum)\()re");
  for (const std::string& header : installed_headers()) {
    const std::string text = mh::read_file(kSource / header);
    std::smatch match;
    EXPECT_FALSE(std::regex_search(text, match, function)) << header << ": " << match[1];
  }
}

// Every block of C++ on the page is the body of a function that compiles; `folder` is loaded in the first.
TEST(SlowApiPage, ProgramsCompile) {
  const std::string page = mh::read_file(kSource / "docs/api.md");
  const fs::path file = fs::path(mh::build_folder()) / "api_page.cpp";
  std::ofstream out(file);
  out << "#include <atomic>\n#include <cstdio>\n#include <string>\n#include <vector>\n#include "
         "\"multihead/multihead.h\"\n";
  int blocks = 0;
  for (size_t at = 0; (at = page.find("```cpp\n", at)) != std::string::npos; ++blocks) {
    const size_t begin = at + 7, end = page.find("```", begin);
    const std::string block = page.substr(begin, end - begin);
    const bool loads = block.find("folder = ") != std::string::npos;
    out << "void block_" << blocks << "(" << (loads ? "" : "[[maybe_unused]] const mh::ModelFolder& folder")
        << ") {\n"
        << block << "}\n";
    at = end;
  }
  out.close();
  EXPECT_GE(blocks, 9);
  EXPECT_EQ(std::system(("c++ -std=c++20 -fsyntax-only -I" + kSource.string() + " " + file.string()).c_str()),
            0);
}

}  // namespace
