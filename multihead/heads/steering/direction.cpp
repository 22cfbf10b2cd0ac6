#include "multihead/heads/steering/heads_steer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <locale>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

constexpr const char* kTensor = "direction";
constexpr const char* kFormat = "multihead direction";

constexpr const char* kMakeAnother =
    "make one with this model: multihead heads steer MODEL --toward FILE --away FILE --site SITE --save FILE";

/// The metadata of a key; empty where it is not there.
std::string text_of(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

/// The number that is all of the metadata of a key, from 0.
template <class T>
std::optional<T> number_of(const SafetensorsFile& file, const char* key, const std::string& name) {
  const std::string text = text_of(file, key);
  if (text.empty()) return std::nullopt;
  T number{};
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  in >> std::noskipws >> number;
  if (in.fail() || in.peek() != std::istringstream::traits_type::eof() || !(number >= 0))
    throw FormatError(
        fmt::format("{}: `{}` of its metadata is '{}'; expected a number from 0", name, key, text));
  return number;
}

}  // namespace

double SteerDirection::length() const {
  double sum = 0;
  for (int64_t i = 0; i < numbers.size(); ++i)
    sum += static_cast<double>(numbers.data()[i]) * static_cast<double>(numbers.data()[i]);
  return std::sqrt(sum);
}

SiteReplacement SteerDirection::times(float strength) const {
  return {.site = site, .head = head, .numbers = numbers, .strength = strength};
}

void check_direction(const SteerDirection& direction, const Model& model, const std::string& weights) {
  const std::vector<SiteShape> sites = model.sites();
  const auto site = std::find_if(sites.begin(), sites.end(),
                                 [&](const SiteShape& shape) { return shape.name == direction.site; });
  if (site == sites.end())
    throw UsageError(fmt::format("{} is for the site '{}', which this model does not have; {}",
                                 direction.name, direction.site, kMakeAnother));
  if (direction.head && (*direction.head < 0 || *direction.head >= site->blocks))
    throw UsageError(fmt::format("{} is for head {} of '{}', which has {}; {}", direction.name,
                                 *direction.head, direction.site, site->blocks, kMakeAnother));
  const int64_t columns = direction.head ? site->columns / site->blocks : site->columns;
  if (direction.numbers.rows() != 1 || direction.numbers.cols() != columns)
    throw UsageError(fmt::format("{} has {} numbers, and '{}' of this model {}; {}", direction.name,
                                 direction.numbers.size(), direction.site, columns, kMakeAnother));
  if (!direction.weights.empty() && !weights.empty() && direction.weights != weights)
    throw UsageError(
        fmt::format("{} was made with other weights (SHA-256 {:.12}..., this model's {:.12}...); {}",
                    direction.name, direction.weights, weights, kMakeAnother));
}

void check_direction(const SteerDirection& direction, const ModelFolder& folder) {
  check_direction(direction, *folder.model, weights_hash(folder));
}

std::string direction_file(const SteerDirection& direction) {
  std::map<std::string, std::string> metadata{{"format", kFormat},
                                              {"site", direction.site},
                                              {"weights_sha256", direction.weights},
                                              {"made", direction.made}};
  if (direction.head) metadata["head"] = fmt::format("{}", *direction.head);
  if (direction.row_length) metadata["row_length"] = fmt::format("{}", *direction.row_length);
  const NamedTensor tensor{.name = kTensor,
                           .shape = {direction.numbers.size()},
                           .data = std::span<const float>(direction.numbers.data(),
                                                          static_cast<size_t>(direction.numbers.size()))};
  return write_safetensors({&tensor, 1}, metadata);
}

SteerDirection read_direction(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  SteerDirection direction{.site = text_of(file, "site"),
                           .name = path.string(),
                           .weights = text_of(file, "weights_sha256"),
                           .made = text_of(file, "made")};
  if (text_of(file, "format") != kFormat || direction.site.empty() || !file.contains(kTensor))
    throw FormatError(
        fmt::format("{} is no direction; `multihead heads steer ... --save FILE` makes one", direction.name));
  const std::vector<int64_t>& shape = file.shape(kTensor);
  if (shape.size() != 1 || shape[0] == 0)
    throw FormatError(fmt::format("{}: '{}' has {} dimensions; expected one, of the columns of its site",
                                  direction.name, kTensor, shape.size()));
  direction.numbers = Tensor(1, shape[0]);
  file.read_floats(kTensor, {direction.numbers.data(), static_cast<size_t>(shape[0])});
  if (!all_finite(direction.numbers.view()))
    throw FormatError(fmt::format("{}: '{}' has a number that is not finite", direction.name, kTensor));
  direction.head = number_of<int>(file, "head", direction.name);
  direction.row_length = number_of<double>(file, "row_length", direction.name);
  return direction;
}

}  // namespace mh
