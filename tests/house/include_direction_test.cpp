// The arrows of docs/architecture.md: a room includes only the rooms named here and what those may include, of a folder
// inside another room only the headers named here, and a public header includes only the standard library and our own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/places.h"

namespace {

namespace fs = std::filesystem;
using Rooms = std::set<std::string>;

const std::map<std::string, Rooms>& arrows() {
  static const std::map<std::string, Rooms> arrows = {
      {"base", {}},
      {"io", {"base"}},
      {"kernels", {"base"}},
      {"tensor", {"base"}},
      {"autograd", {"tensor", "kernels"}},
      {"batch", {"base"}},
      {"nn", {"autograd", "batch"}},
      {"text", {"base", "io"}},
      {"data", {"text", "batch"}},
      {"models", {"nn", "io"}},
      {"folders", {"generate"}},
      {"distributed", {"base"}},
      {"generate", {"models", "text"}},
      {"evaluate", {"models", "text"}},
      {"heads/sites", {"folders", "data", "generate"}},
      {"check", {"heads/sites"}},
      {"heads/corpus", {"heads/sites"}},
      {"heads/conversion", {"heads/sites"}},
      {"heads/measures", {"heads/corpus", "heads/conversion", "evaluate"}},
      {"heads/importance", {"heads/corpus"}},
      {"heads/attribution", {"heads/corpus"}},
      {"heads/patching", {"heads/sites"}},
      {"heads/contributions", {"heads/patching"}},
      {"heads/lens", {"heads/sites"}},
      {"heads/circuit", {"heads/patching"}},
      {"heads/retrieval", {"heads/sites"}},
      {"heads/steering", {"heads/importance", "heads/patching"}},
      {"heads/reports",
       {"heads/measures", "heads/attribution", "heads/contributions", "heads/lens", "heads/circuit",
        "heads/retrieval", "heads/steering"}},
      {"tasks", {"folders", "generate", "evaluate"}},
      {"train", {"folders", "data", "distributed", "generate", "evaluate"}},
      {"door", {"heads/reports", "tasks", "train"}},
      {"lab/grammar", {"data"}},
      {"lab/demo", {"heads/reports", "tasks", "train", "lab/grammar"}},
      {"lab/studies", {"heads/reports", "train", "lab/grammar", "lab/demo"}},
  };
  return arrows;
}

/// A folder inside a room, such as nn/geometries, is the room's own: nobody else includes its headers, but for these.
const std::set<std::string>& doors() {
  static const std::set<std::string> doors = {
      // Our own format, in which a training saves its translator and a study its runs.
      "multihead/folders/families/marian.h",
      // Pictures, which the tool and the studies draw with.
      "multihead/heads/reports/pictures/draw_heads.h",
      "multihead/heads/reports/pictures/draw_circuit.h",
      "multihead/heads/reports/pictures/draw_lens.h",
      "multihead/heads/reports/pictures/draw_similar.h",
      "multihead/heads/reports/pictures/heat_map.h",
      "multihead/heads/reports/pictures/heat_map_svg.h",
      "multihead/heads/reports/pictures/svg.h",
      // The page of heads, and a model's run on it.
      "multihead/heads/reports/page/heads_page.h",
      "multihead/heads/reports/page/live_model.h",
      "multihead/heads/reports/page/page_run.h",
      // A trace, and its files.
      "multihead/heads/reports/trace/trace.h",
      "multihead/heads/reports/trace/trace_files.h",
      // The training of a translator, alone and by ranks, its settings, and what the studies' own trainings share with it.
      "multihead/train/translator/train_translator.h",
      "multihead/train/translator/train_by_ranks.h",
      "multihead/train/translator/training_settings.h",
      "multihead/train/translator/translator_corpus.h",
      "multihead/train/translator/translator_validation.h",
  };
  return doors;
}

void add_reachable(const std::string& room, Rooms& reachable) {
  for (const std::string& next : arrows().at(room)) {
    if (reachable.insert(next).second) add_reachable(next, reachable);
  }
}

struct Include {
  std::string path;
  bool angled;
};

std::vector<Include> includes_of(const fs::path& file) {
  static const std::regex line_of_include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");
  std::vector<Include> found;
  std::ifstream in(file);
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_match(line, match, line_of_include)) found.push_back({match[2], match[1] == "<"});
  }
  return found;
}

/// "multihead/ROOM/..." -> "ROOM", "multihead/heads/ROOM/..." -> "heads/ROOM", "lab/ROOM/..." -> "lab/ROOM", also of a file in a folder
/// of the room;
/// "multihead/NAME.h" -> "door": the public headers, which may include every room and which no room includes.
std::string room_of(const fs::path& file) {
  auto part = std::next(file.begin());
  std::string room = *part;
  if (room.ends_with(".h")) return "door";
  if (room == "heads") room += "/" + (++part)->string();
  return *file.begin() == "lab" ? "lab/" + room : room;
}

bool is_ours(const std::string& include) {
  return include.starts_with("multihead/") || include.starts_with("lab/");
}

/// "multihead/nn", "multihead/heads/sites", "lab/studies", or the folder at the root: "cli", "python".
std::string folder_of_room(const fs::path& file) {
  const std::string top = *file.begin();
  if (top == "multihead") return "multihead/" + room_of(file);
  return top == "lab" ? room_of(file) : top;
}

/// Whether it is in a folder inside its room.
bool is_inside(const fs::path& file) {
  return std::next(file.begin()) != file.end() && file.parent_path() != file.begin()->string() &&
         file.parent_path() != folder_of_room(file);
}

template <class Visit>
void for_each_source(Visit visit, const std::vector<const char*>& roots = {"multihead", "lab"},
                     size_t least = 26) {
  for (const char* root : roots) {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(mh::source_folder()) / root)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      ++files;
      visit(entry.path(), room_of(fs::relative(entry.path(), mh::source_folder())));
    }
    EXPECT_GE(files, least) << "the sources of " << root << " were not found";
  }
}

TEST(House, IncludesPointOneWay) {
  for_each_source([](const fs::path& file, const std::string& room) {
    ASSERT_TRUE(arrows().count(room)) << file << ": the room is not in the list of arrows";
    Rooms allowed = {room};
    add_reachable(room, allowed);
    for (const Include& include : includes_of(file)) {
      if (!is_ours(include.path)) continue;
      const std::string other = room_of(include.path);
      EXPECT_TRUE(allowed.count(other))
          << file << " includes " << include.path << ", which " << room << " may not";
    }
  });
}

// Tests look inside: they mirror the folders.
TEST(House, FoldersInsideOfRoomsAreIncludedThroughTheirDoors) {
  std::set<std::string> used;
  for_each_source(
      [&](const fs::path& source, const std::string&) {
        const fs::path file = fs::relative(source, mh::source_folder());
        for (const Include& include : includes_of(source)) {
          const bool foreign = (is_ours(include.path) || include.path.starts_with("cli/")) &&
                               folder_of_room(include.path) != folder_of_room(file);
          if (!foreign || !is_inside(include.path)) continue;
          used.insert(include.path);
          EXPECT_TRUE(doors().count(include.path))
              << file << " includes " << include.path << ", which is for " << folder_of_room(include.path)
              << " alone";
        }
      },
      {"multihead", "lab", "cli", "python", "web", "examples", "benchmarks"}, 1);
  for (const std::string& door : doors())
    EXPECT_TRUE(used.count(door)) << "nobody outside its room includes " << door;
}

// A folder and one inside of it neither: of cli and cli/heads, cli/heads includes the other.
TEST(House, NoTwoFoldersIncludeEachOther) {
  std::map<std::pair<std::string, std::string>, std::string> includes;  // of two folders; by which file
  for_each_source(
      [&](const fs::path& source, const std::string&) {
        const fs::path file = fs::relative(source, mh::source_folder());
        for (const Include& include : includes_of(source)) {
          const std::string from = file.parent_path(), to = fs::path(include.path).parent_path();
          if (include.angled || to.empty() || from == to) continue;
          includes.insert({{from, to}, file.string() + " includes " + include.path});
        }
      },
      {"multihead", "lab", "cli", "python"}, 20);
  EXPECT_GT(includes.size(), 100u);
  for (const auto& [folders, file] : includes) {
    const auto back = includes.find({folders.second, folders.first});
    if (back != includes.end()) ADD_FAILURE() << file << ", but " << back->second;
  }
}

TEST(House, EveryArrowIsOfAnInclude) {
  std::set<std::pair<std::string, std::string>> used;
  for_each_source([&](const fs::path& file, const std::string& room) {
    for (const Include& include : includes_of(file)) {
      if (include.path.find('/') != std::string::npos) used.insert({room, room_of(include.path)});
    }
  });
  for (const auto& [room, others] : arrows()) {
    for (const std::string& other : others) {
      EXPECT_TRUE(used.count({room, other})) << "no file of " << room << " includes one of " << other;
    }
  }
}

/// mh_room(NAME ROOMS a b NEEDS ...) and mh_lab_room(NAME ROOMS a lab_b ...), whose rooms are lab/NAME.
TEST(House, TheBuildHasTheSameArrows) {
  std::ifstream in(fs::path(mh::source_folder()) / "CMakeLists.txt");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  static const std::regex call(R"re(\nmh_(lab_)?room\(([\w/]+)([^)]*)\))re");
  std::map<std::string, Rooms> built;
  for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
    Rooms& rooms = built[((*match)[1].matched ? "lab/" : "") + (*match)[2].str()];
    std::istringstream words((*match)[3]);
    bool named = false;
    for (std::string word; words >> word;) {
      if (word == "ROOMS" || word == "NEEDS") {
        named = word == "ROOMS";
      } else if (named) {
        rooms.insert(word.starts_with("lab_") ? "lab/" + word.substr(4) : word);
      }
    }
  }
  built["door"] = {"heads/reports", "tasks", "train"};  // headers alone: no library of their own
  EXPECT_EQ(built, arrows());
}

TEST(House, PublicHeadersNeedNobodyElse) {
  for_each_source([](const fs::path& file, const std::string&) {
    const std::string name = file.filename();
    const bool internal = name.size() > 6 && name.substr(name.size() - 6) == "-inl.h";
    const bool shows_json = name == "strict_json.h" || name == "json_node.h" || name == "json_parts.h" ||
                            name == "gguf_architecture.h" || name == "gguf_rope.h" ||
                            name == "int8_matrices.h";  // they say for whom
    if (file.extension() != ".h" || internal || shows_json) return;
    for (const Include& include : includes_of(file)) {
      if (!include.angled) {
        EXPECT_TRUE(is_ours(include.path)) << file << " includes " << include.path << ", not from the root";
      } else {
        EXPECT_EQ(include.path.find_first_of("/."), std::string::npos)
            << file << " includes <" << include.path << ">, which is not of the standard library";
      }
    }
  });
}

}  // namespace
