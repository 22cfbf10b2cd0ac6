#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"

namespace mh::detail {
namespace {

using nlohmann::ordered_json;

// Builds JSON from what it is shown.
class ConfigWriter : public ConfigVisitor {
 public:
  std::string text(int indent) const { return root_.dump(indent); }

 protected:
  bool open_member(std::string_view name, bool) override {
    ordered_json& object = here();
    MH_ASSERT(!object.contains(std::string(name)));  // the same name for two fields
    places_.push_back(&(object[std::string(name)] = nullptr));
    return true;
  }
  void open_item(size_t index) override { places_.push_back(&here()[index]); }
  void close() override { places_.pop_back(); }
  bool begin_object() override {
    here() = ordered_json::object();
    return true;
  }
  void end_object() override {}
  size_t list(size_t size) override {
    here() = ordered_json::array();
    for (size_t i = 0; i < size; ++i) here().push_back(nullptr);
    return size;
  }
  bool has_value(bool has_value_now) override { return has_value_now; }
  void scalar(bool& value) override { here() = value; }
  void scalar(int64_t& value, int64_t, int64_t) override { here() = value; }
  void scalar(uint64_t& value, uint64_t, uint64_t) override { here() = value; }
  void scalar(double& value, double, double, bool single_precision) override {
    if (!std::isfinite(value)) throw FormatError(fmt::format("JSON has no number for {}", value));
    // The shortest digits that name this float, not the digits of the double nearest to it: 0.1, not
    // 0.10000000149.
    if (single_precision) {
      value = ordered_json::parse(fmt::format("{}", static_cast<float>(value))).get<double>();
    }
    here() = value;
  }
  void scalar(std::string& value) override { here() = value; }
  void choice(const std::vector<const char*>& names, size_t& chosen) override {
    if (chosen >= names.size()) {
      throw FormatError(
          fmt::format("JSON has no name for this value; it is none of \"{}\"", fmt::join(names, "\", \"")));
    }
    here() = names[chosen];
  }

 private:
  ordered_json& here() { return *places_.back(); }

  ordered_json root_;
  std::vector<ordered_json*> places_{&root_};
};

}  // namespace

std::string write_config(const VisitConfig& visit, int indent) {
  ConfigWriter writer;
  visit(writer);
  return writer.text(indent);
}

}  // namespace mh::detail
