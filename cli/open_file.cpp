#include "cli/open_file.h"

#include <cstdlib>

#include "cli/common.h"
#include "cli/shell_words.h"

namespace mh::cli {

void open_file(const std::string& path) {
#ifdef __APPLE__
  const std::string program = "open";
#else
  const std::string program = "xdg-open";
#endif
  const std::string name = path.starts_with('-') ? "./" + path : path;  // a file, no option of the program
  const std::string command = program + " " + shell_word(name) + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0)
    remark(path + " could not be opened (" + program + "); open it in a browser");
}

}  // namespace mh::cli
