#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"
#include "multihead/models/families/family.h"

namespace mh {

// THE LIST: a line for each kNAMEFamily that a file of this folder defines.
#define MULTIHEAD_FAMILIES(LINE) \
  LINE(Bert)                     \
  LINE(DistilBert)               \
  LINE(Gpt2)                     \
  LINE(Llama)                    \
  LINE(Marian)                   \
  LINE(Multihead)                \
  LINE(Roberta)                  \
  LINE(XlmRoberta)

#define LINE(name) extern const Family k##name##Family;
MULTIHEAD_FAMILIES(LINE)
#undef LINE

std::span<const Family* const> families() {
#define LINE(name) &k##name##Family,
  static constexpr const Family* kFamilies[] = {MULTIHEAD_FAMILIES(LINE)};
#undef LINE
  return kFamilies;
}

FolderPlan read_plan(std::string_view json, std::string_view name) {
  const auto document = parse_json_strictly(json, name);
  if (!document.is_object())
    throw FormatError(fmt::format("{}: expected an object, got {}", name, json_excerpt(document)));
  const auto found = document.find("model_type");
  if (found == document.end())
    throw FormatError(fmt::format("{}: no \"model_type\"; is it the config.json of a model?", name));
  const std::string type = found->is_string() ? found->get<std::string>() : json_excerpt(*found);
  std::vector<std::string> known;
  for (const Family* family : families()) {
    if (family->model_type == type) return family->read(json, name);
    known.push_back(fmt::format("\"{}\" ({})", family->model_type, family->what));
  }
  throw FormatError(
      fmt::format("{}: model_type is \"{}\", expected one of {}", name, type, fmt::join(known, ", ")));
}

}  // namespace mh
