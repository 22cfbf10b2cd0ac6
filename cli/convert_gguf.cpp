#include "cli/convert_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/common.h"
#include "cli/stop_signals.h"
#include "multihead/base/error.h"
#include "multihead/folders/gguf_folder.h"

namespace mh::cli {

void refuse_head_flags(const CLI::App& verb) {
  constexpr std::array<std::string_view, 3> kAllowed = {"--model", "--out", "--json"};
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();  // "--model" of "model,--model"
    if (option->count() > 0 && std::find(kAllowed.begin(), kAllowed.end(), name) == kAllowed.end())
      throw UsageError(fmt::format(
          "{} has no meaning with a .gguf file, which becomes a folder as it is; leave it out", name));
  }
}

void write_gguf_as_folder(const std::string& file, const std::string& out, bool json) {
  const int64_t parameters =
      StopSignals::stoppable([&](const auto& stop) { return convert_gguf(file, out, stop); });
  if (json) {
    const nlohmann::ordered_json document{{"model", file}, {"out", out}, {"parameters", parameters}};
    return write_text("", document.dump(2) + "\n");
  }
  write_text(
      "", fmt::format("{}: the model of {} as a folder that Transformers opens, {} parameters in F32\n", out,
                      file, parameters));
}

}  // namespace mh::cli
