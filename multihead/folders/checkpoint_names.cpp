#include "multihead/folders/checkpoint_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUpdatePrefix = "update-";

std::optional<int64_t> update_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kUpdatePrefix)) return std::nullopt;
  int64_t update = 0;
  const char* end = name.data() + name.size();
  const auto [stop, code] = std::from_chars(name.data() + kUpdatePrefix.size(), end, update);
  if (code != std::errc() || stop != end || update < 0) return std::nullopt;
  return update;
}

}  // namespace

fs::path checkpoints_of(const fs::path& model) {
  return model / "checkpoints";
}

fs::path checkpoint_of(const fs::path& model, int64_t update) {
  return checkpoints_of(model) / fmt::format("{}{}", kUpdatePrefix, update);
}

std::vector<int64_t> checkpoint_updates(const fs::path& model) {
  std::vector<int64_t> updates;
  std::error_code code;
  for (fs::directory_iterator entry(checkpoints_of(model), code), end; !code && entry != end;
       entry.increment(code)) {
    if (const auto update = update_of(entry->path())) updates.push_back(*update);
  }
  std::sort(updates.begin(), updates.end());
  return updates;
}

}  // namespace mh
