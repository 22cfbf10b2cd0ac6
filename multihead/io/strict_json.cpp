#include "multihead/io/strict_json.h"

#include <fmt/format.h>

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
  StrictBuilder(int deepest, size_t size) : deepest_(deepest), size_(size) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return add(value) != nullptr; }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool start_object(size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto [place, is_new] = open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
    if (!is_new) return refuse(fmt::format("the key {} stands twice in one object", json_excerpt(name)));
    member_ = &place->second;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    if (position > size_)
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
  json* add(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }
  bool open(json container) {
    if (static_cast<int>(open_.size()) >= deepest_)
      return refuse(fmt::format("nested deeper than {}", deepest_));
    open_.push_back(add(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  int deepest_;
  size_t size_;
  json root_;
  std::vector<json*> open_;  // a container is not added to while one inside it is open, so the pointers stay
  json* member_ = nullptr;   // where the value of the last key goes
  std::string problem_;
};

}  // namespace

json parse_json_strictly(std::string_view text, std::string_view name, int deepest) {
  // The parser takes a NUL byte for the end and would not look at what follows.
  if (text.find('\0') != std::string_view::npos)
    throw FormatError(fmt::format("{}: not JSON: a NUL byte in it", name));
  const size_t broken = first_invalid_utf8(text);
  if (broken != std::string_view::npos)
    throw FormatError(fmt::format("{}: byte {} is not UTF-8", name, broken));
  StrictBuilder builder(deepest, text.size());
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
