#include "multihead/io/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "multihead/io/strict_json.h"

namespace mh {

using nlohmann::json;
using nlohmann::ordered_json;

// ---- writing

struct ConfigWriter::State {
  ordered_json root;
  std::vector<ordered_json*> places{&root};
  ordered_json& here() { return *places.back(); }
};

ConfigWriter::ConfigWriter() : state_(std::make_unique<State>()) {}
ConfigWriter::~ConfigWriter() = default;

std::string ConfigWriter::text(int indent) const {
  return state_->root.dump(indent);
}

bool ConfigWriter::open_member(std::string_view name, bool) {
  ordered_json& object = state_->here();
  MH_ASSERT(!object.contains(std::string(name)));  // the same name for two fields
  state_->places.push_back(&(object[std::string(name)] = nullptr));
  return true;
}
void ConfigWriter::open_item(size_t index) {
  state_->places.push_back(&state_->here()[index]);
}
void ConfigWriter::close() {
  state_->places.pop_back();
}
bool ConfigWriter::begin_object() {
  state_->here() = ordered_json::object();
  return true;
}
void ConfigWriter::end_object() {}
size_t ConfigWriter::list(size_t size) {
  state_->here() = ordered_json::array();
  for (size_t i = 0; i < size; ++i) state_->here().push_back(nullptr);
  return size;
}
bool ConfigWriter::has_value(bool has_value_now) {
  return has_value_now;
}
void ConfigWriter::scalar(bool& value) {
  state_->here() = value;
}
void ConfigWriter::scalar(int64_t& value, int64_t, int64_t) {
  state_->here() = value;
}
void ConfigWriter::scalar(uint64_t& value, uint64_t, uint64_t) {
  state_->here() = value;
}
void ConfigWriter::scalar(double& value, double, double, bool single_precision) {
  if (!std::isfinite(value)) throw FormatError(fmt::format("JSON has no number for {}", value));
  // The shortest digits that name this float, not the digits of the double nearest to it: 0.1, not
  // 0.10000000149.
  if (single_precision) {
    const std::string digits = fmt::format("{}", static_cast<float>(value));
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  state_->here() = value;
}
void ConfigWriter::scalar(std::string& value) {
  state_->here() = value;
}
void ConfigWriter::choice(const std::vector<const char*>& names, size_t& chosen) {
  MH_ASSERT(chosen < names.size());  // a value of the enum that has no name
  state_->here() = names[chosen];
}

// ---- reading

struct ConfigReader::State {
  std::string file;
  UnknownKeys unknown;
  json root;
  std::vector<const json*> places{&root};
  std::vector<std::string> path;                          // names on the way to the present place
  std::vector<std::set<std::string, std::less<>>> known;  // per open object: its fields
  std::vector<std::string> problems;

  const json& here() const { return *places.back(); }
  std::string where(std::string_view name = {}) const {
    std::string text;
    for (const std::string& step : path) {
      if (!text.empty() && !step.starts_with('[')) text += '.';
      text += step;
    }
    if (!name.empty() && !text.empty()) text += '.';
    text += name;
    return text;
  }
  void expected(const std::string& what) {
    const std::string place = where();
    problems.push_back(fmt::format("{}{}expected {}, found {}", place, place.empty() ? "" : ": ", what,
                                   json_excerpt(here())));
  }
};

namespace {

template <class T>
std::string numbers_between(std::string_view kind, T low, T high) {
  const bool any_low = low == std::numeric_limits<T>::lowest(),
             any_high = high == std::numeric_limits<T>::max();
  if (any_low && any_high) return std::string(kind);
  if (any_high) return fmt::format("{} of at least {}", kind, low);
  if (any_low) return fmt::format("{} of at most {}", kind, high);
  return fmt::format("{} from {} to {}", kind, low, high);
}

}  // namespace

ConfigReader::ConfigReader(std::string_view text, std::string_view file, UnknownKeys unknown)
    : state_(std::make_unique<State>()) {
  state_->file = file;
  state_->unknown = unknown;
  state_->root = parse_json_strictly(text, file);
}
ConfigReader::~ConfigReader() = default;

void ConfigReader::finish() const {
  const auto& problems = state_->problems;
  if (problems.empty()) return;
  constexpr size_t kMost = 20;
  std::string text = fmt::format(
      "{}", fmt::join(problems.begin(), problems.begin() + std::min(kMost, problems.size()), "; "));
  if (problems.size() > kMost) text += fmt::format("; and {} more", problems.size() - kMost);
  throw FormatError(fmt::format("{}: {}", state_->file, text));
}

bool ConfigReader::open_member(std::string_view name, bool required) {
  state_->known.back().emplace(name);
  const json& object = state_->here();
  const auto found = object.find(std::string(name));
  if (found == object.end()) {
    if (required) state_->problems.push_back(fmt::format("{}: missing", state_->where(name)));
    return false;
  }
  state_->places.push_back(&*found);
  state_->path.emplace_back(name);
  return true;
}
void ConfigReader::open_item(size_t index) {
  state_->places.push_back(&state_->here()[index]);
  state_->path.push_back(fmt::format("[{}]", index));
}
void ConfigReader::close() {
  state_->places.pop_back();
  state_->path.pop_back();
}
bool ConfigReader::begin_object() {
  if (!state_->here().is_object()) {
    state_->expected("an object");
    return false;
  }
  state_->known.emplace_back();
  return true;
}
void ConfigReader::end_object() {
  if (state_->unknown == UnknownKeys::kRefuse) {
    for (const auto& [key, value] : state_->here().items()) {
      if (state_->known.back().contains(key)) continue;
      const std::string place = state_->where();
      state_->problems.push_back(
          fmt::format("{}{}unknown key {}", place, place.empty() ? "" : ": ", json_excerpt(key)));
    }
  }
  state_->known.pop_back();
}
size_t ConfigReader::list(size_t) {
  if (state_->here().is_array()) return state_->here().size();
  state_->expected("a list");
  return 0;
}
bool ConfigReader::has_value(bool) {
  return !state_->here().is_null();
}

void ConfigReader::scalar(bool& value) {
  if (!state_->here().is_boolean()) return state_->expected("true or false");
  value = state_->here().get<bool>();
}
void ConfigReader::scalar(int64_t& value, int64_t low, int64_t high) {
  const json& found = state_->here();
  bool fits = false;
  if (found.is_number_unsigned()) {
    fits = found.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  } else {
    fits = found.is_number_integer();
  }
  if (!fits || found.get<int64_t>() < low || found.get<int64_t>() > high) {
    return state_->expected(numbers_between("an integer", low, high));
  }
  value = found.get<int64_t>();
}
void ConfigReader::scalar(uint64_t& value, uint64_t low, uint64_t high) {
  const json& found = state_->here();
  if (!found.is_number_unsigned() || found.get<uint64_t>() < low || found.get<uint64_t>() > high) {
    const bool any = low == 0 && high == std::numeric_limits<uint64_t>::max();
    return state_->expected(any ? "an integer of at least 0" : numbers_between("an integer", low, high));
  }
  value = found.get<uint64_t>();
}
void ConfigReader::scalar(double& value, double low, double high, bool single_precision) {
  const json& found = state_->here();
  if (!found.is_number() || !(found.get<double>() >= low && found.get<double>() <= high)) {
    return state_->expected(
        single_precision ? numbers_between("a number", static_cast<float>(low), static_cast<float>(high))
                         : numbers_between("a number", low, high));
  }
  value = found.get<double>();
}
void ConfigReader::scalar(std::string& value) {
  if (!state_->here().is_string()) return state_->expected("a text");
  value = state_->here().get<std::string>();
}
void ConfigReader::choice(const std::vector<const char*>& names, size_t& chosen) {
  chosen = names.size();
  const json& found = state_->here();
  for (size_t i = 0; i < names.size() && found.is_string(); ++i) {
    if (found.get_ref<const std::string&>() == names[i]) {
      chosen = i;
      return;
    }
  }
  state_->expected(fmt::format("{}\"{}\"", names.size() == 1 ? "" : "one of ", fmt::join(names, "\", \"")));
}

}  // namespace mh
