#include "multihead/io/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"

namespace mh {
namespace {

using nlohmann::json;

// Builds the value from the parser's events, which (unlike its own builder) lets us see every key as it
// comes.
class StrictBuilder : public nlohmann::json_sax<json> {
 public:
  StrictBuilder(std::string_view text, JsonLimits limits, const JsonLists& lists)
      : text_(text), limits_(limits), lists_(lists) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return add(value) != nullptr; }
  bool string(string_t& value) override {
    return take_memory(kText + value.size()) && add(std::move(value)) != nullptr;
  }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool start_object(size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!take_memory(kMember + name.size())) return false;
    if (in_list()) {
      item_key_ = name;
      return true;
    }
    key_ = name;
    const auto [place, is_new] = open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
    if (!is_new) return refuse(fmt::format("the key {} stands twice in one object", json_excerpt(name)));
    member_ = &place->second;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // As Python's json writes numbers that are not finite: NaN, Infinity, -Infinity.
    const std::string_view there = text_.substr(std::min(text_.size(), std::max<size_t>(position, 1) - 1));
    if (there.starts_with("NaN") || there.starts_with("Infinity"))
      return refuse(fmt::format("{} is NaN or infinite; expected a finite number",
                                key_.empty() ? std::string("a number") : json_excerpt(key_)));
    if (position > text_.size())
      return refuse("not JSON: cut short, it ends in the middle; copy the whole file again");
    std::string message = error.what();
    const size_t id_end = message.find("] ");
    if (id_end != std::string::npos) message.erase(0, id_end + 2);
    if (message.starts_with("parse error"))
      message = "not JSON:" + message.substr(std::string("parse error").size());
    return refuse(message);
  }

  json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool refuse(std::string problem) {
    constexpr size_t kLongest = 240;
    if (problem.size() > kLongest) {
      size_t end = kLongest;
      while (end > 0 && (static_cast<unsigned char>(problem[end]) & 0xC0) == 0x80) --end;  // whole characters
      problem = problem.substr(0, end) + "...";
    }
    for (char& c : problem) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    problem_ = std::move(problem);
    return false;
  }
  /// Counts memory that is about to be taken.
  bool take_memory(size_t bytes) {
    taken_ += bytes;
    return taken_ <= limits_.memory ||
           refuse(fmt::format("its values would take more than {} bytes of memory", limits_.memory));
  }
  /// Returns where the value stands now; null when it was refused.
  json* add(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (in_list()) {
      item_ = std::move(value);
      if (!item_.is_structured()) hand_over();
      return &item_;
    }
    if (open_.back()->is_array()) {
      if (!take_memory(kItem)) return nullptr;
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }
  bool open(json container) {
    if (static_cast<int>(open_.size()) >= limits_.deepest)
      return refuse(fmt::format("nested deeper than {}", limits_.deepest));
    json* const place = take_memory(kContainer) ? add(std::move(container)) : nullptr;
    if (place == nullptr) return false;
    open_.push_back(place);
    if (list_ == nullptr) find_list();
    return true;
  }
  bool close() {
    if (open_.back() == list_) list_ = nullptr;
    open_.pop_back();
    if (in_list()) hand_over();
    return true;
  }

  bool in_list() const { return list_ != nullptr && open_.back() == list_; }
  /// Sees whether the container just opened is a list to hand over.
  void find_list() {
    const size_t depth = open_.size();
    if (depth < 2 || depth > 3 || !open_[depth - 2]->is_object()) return;
    if (depth == 2) outer_key_ = key_;
    const std::string path = depth == 2 ? key_ : outer_key_ + "." + key_;
    const auto found = std::find(lists_.paths.begin(), lists_.paths.end(), path);
    if (found == lists_.paths.end()) return;
    list_ = open_.back();
    list_index_ = static_cast<size_t>(found - lists_.paths.begin());
    taken_before_ = taken_;
  }
  void hand_over() {
    lists_.take({.list = list_index_, .key = list_->is_object() ? &item_key_ : nullptr, .value = item_});
    item_ = nullptr;
    taken_ = taken_before_;
  }

  // Bytes of values, as nlohmann and malloc keep them; a list that grows leaves holes behind.
  static constexpr size_t kItem = 64, kMember = 96, kText = 64, kContainer = 64;

  std::string_view text_;
  JsonLimits limits_;
  const JsonLists& lists_;
  size_t taken_ = 0;
  json root_;
  std::vector<json*> open_;  // a container is not added to while one inside it is open, so the pointers stay
  json* member_ = nullptr;   // where the value of the last key goes
  std::string key_, outer_key_;  // the last key, and the root's
  const json* list_ = nullptr;   // the list to hand over that is open
  size_t list_index_ = 0, taken_before_ = 0;
  std::string item_key_;
  json item_;
  std::string problem_;
};

/// Whether a text, a number, or all between two of them, is longer than `most`. The parser copies what it reads,
/// from one text or number to the next, and gives back no memory.
bool has_long_token(std::string_view text, size_t most) {
  constexpr std::string_view kNumber = "0123456789+-.eE";
  size_t begin = 0;  // where the parser began its copy
  bool in_number = false, in_text = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_text) {
      if (c == '\\') ++at;
      in_text = c != '"';
      continue;
    }
    const bool number_before = std::exchange(in_number, kNumber.find(c) != std::string_view::npos);
    in_text = c == '"';
    if (!in_text && (!in_number || number_before)) continue;
    if (at - begin > most) return true;
    begin = at;
  }
  return text.size() > begin + most;
}

}  // namespace

json parse_json_strictly(std::string_view text, std::string_view name, JsonLimits limits,
                         const JsonLists& lists) {
  // The parser takes a NUL byte for the end and would not look at what follows.
  if (text.find('\0') != std::string_view::npos)
    throw FormatError(fmt::format("{}: not JSON: a NUL byte in it", name));
  const size_t broken = first_invalid_utf8(text);
  if (broken != std::string_view::npos)
    throw FormatError(fmt::format("{}: byte {} is not UTF-8", name, broken));
  if (text.size() > limits.token && has_long_token(text, limits.token))
    throw FormatError(
        fmt::format("{}: a text, a number or its space has more than {} bytes", name, limits.token));
  StrictBuilder builder(text, limits, lists);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    throw FormatError(fmt::format("{}: {}", name, builder.problem()));
  }
  return builder.take();
}

std::string json_excerpt(const json& value) {
  constexpr size_t kLongest = 40;
  if (value.is_object()) return value.empty() ? "{}" : "an object";
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace mh
