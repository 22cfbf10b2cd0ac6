#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "multihead/base/suggestions.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::json;

// Fills what it is shown from JSON and collects every problem on the way.
class ConfigReader : public ConfigVisitor {
 public:
  ConfigReader(std::string_view text, std::string_view file, UnknownKeys unknown)
      : file_(file), unknown_(unknown), root_(parse_json_strictly(text, file)) {}

  void finish() const {
    if (problems_.empty()) return;
    constexpr size_t kMost = 20;
    std::string text = fmt::format(
        "{}", fmt::join(problems_.begin(), problems_.begin() + std::min(kMost, problems_.size()), "; "));
    if (problems_.size() > kMost) text += fmt::format("; and {} more", problems_.size() - kMost);
    throw FormatError(fmt::format("{}: {}", file_, text));
  }

 protected:
  bool open_member(std::string_view name, bool required) override {
    known_.back().emplace(name);
    const json& object = here();
    const auto found = object.find(std::string(name));
    if (found == object.end()) {
      if (required) problems_.push_back(fmt::format("{}: missing", where(name)));
      return false;
    }
    places_.push_back(&*found);
    path_.emplace_back(name);
    return true;
  }
  void open_item(size_t index) override {
    places_.push_back(&here()[index]);
    path_.push_back(fmt::format("[{}]", index));
  }
  void close() override {
    places_.pop_back();
    path_.pop_back();
  }
  bool begin_object() override {
    if (!here().is_object()) {
      expected("an object");
      return false;
    }
    known_.emplace_back();
    return true;
  }
  void end_object() override {
    if (unknown_ == UnknownKeys::kRefuse) {
      for (const auto& [key, value] : here().items()) {
        if (known_.back().contains(key)) continue;
        const std::string place = where(),
                          meant = did_you_mean(key, {known_.back().begin(), known_.back().end()});
        problems_.push_back(fmt::format("{}{}unknown key {}{}{}", place, place.empty() ? "" : ": ",
                                        json_excerpt(key), meant.empty() ? "" : ", ", meant));
      }
    }
    known_.pop_back();
  }
  size_t list(size_t) override {
    if (here().is_array()) return here().size();
    expected("a list");
    return 0;
  }
  bool has_value(bool) override { return !here().is_null(); }

  void scalar(bool& value) override {
    if (!here().is_boolean()) return expected("true or false");
    value = here().get<bool>();
  }
  void scalar(int64_t& value, int64_t low, int64_t high) override {
    const json& found = here();
    bool fits = false;
    if (found.is_number_unsigned()) {
      fits = found.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    } else {
      fits = found.is_number_integer();
    }
    if (!fits || found.get<int64_t>() < low || found.get<int64_t>() > high) {
      return expected(numbers_within(low, high));
    }
    value = found.get<int64_t>();
  }
  void scalar(uint64_t& value, uint64_t low, uint64_t high) override {
    const json& found = here();
    if (!found.is_number_unsigned() || found.get<uint64_t>() < low || found.get<uint64_t>() > high) {
      return expected(numbers_within(low, high));
    }
    value = found.get<uint64_t>();
  }
  void scalar(double& value, double low, double high, bool single_precision) override {
    const json& found = here();
    if (!found.is_number() || !(found.get<double>() >= low && found.get<double>() <= high)) {
      return expected(single_precision ? numbers_within(static_cast<float>(low), static_cast<float>(high))
                                       : numbers_within(low, high));
    }
    value = found.get<double>();
  }
  void scalar(std::string& value) override {
    if (!here().is_string()) return expected("a text");
    value = here().get<std::string>();
  }
  void choice(const std::vector<const char*>& names, size_t& chosen) override {
    chosen = names.size();
    const json& found = here();
    for (size_t i = 0; i < names.size() && found.is_string(); ++i) {
      if (found.get_ref<const std::string&>() == names[i]) {
        chosen = i;
        return;
      }
    }
    expected(fmt::format("{}\"{}\"", names.size() == 1 ? "" : "one of ", fmt::join(names, "\", \"")));
  }

 private:
  const json& here() const { return *places_.back(); }
  std::string where(std::string_view name = {}) const {
    std::string text;
    for (const std::string& step : path_) {
      if (!text.empty() && !step.starts_with('[')) text += '.';
      text += step;
    }
    if (!name.empty() && !text.empty()) text += '.';
    text += name;
    return text;
  }
  void expected(const std::string& what) {
    const std::string place = where();
    problems_.push_back(
        fmt::format("{}{}expected {}, got {}", place, place.empty() ? "" : ": ", what, json_excerpt(here())));
  }

  std::string file_;
  UnknownKeys unknown_;
  json root_;
  std::vector<const json*> places_{&root_};
  std::vector<std::string> path_;                          // names on the way to the present place
  std::vector<std::set<std::string, std::less<>>> known_;  // per open object: its fields
  std::vector<std::string> problems_;
};

}  // namespace

template <class T>
std::string numbers_within(T low, T high) {
  const bool any_low = std::is_floating_point_v<T> && low == std::numeric_limits<T>::lowest();
  const bool any_high = std::is_floating_point_v<T> && high == std::numeric_limits<T>::max();
  const char* const kind = std::is_integral_v<T> ? "an integer" : "a number";
  if (any_low && any_high) return kind;
  if (any_high) return fmt::format("{} of at least {}", kind, low);
  if (any_low) return fmt::format("{} of at most {}", kind, high);
  return fmt::format("{} from {} to {}", kind, low, high);
}
template std::string numbers_within(int32_t, int32_t);
template std::string numbers_within(int64_t, int64_t);
template std::string numbers_within(uint64_t, uint64_t);
template std::string numbers_within(float, float);
template std::string numbers_within(double, double);

void detail::read_config(const VisitConfig& visit, std::string_view text, std::string_view file,
                         UnknownKeys unknown) {
  ConfigReader reader(text, file, unknown);
  visit(reader);
  reader.finish();
}

}  // namespace mh
