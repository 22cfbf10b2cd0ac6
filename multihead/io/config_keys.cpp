#include "multihead/io/config_keys.h"

#include <string_view>
#include <vector>

namespace mh {
namespace {

/// Enters everything there is, changes no scalar, and notes the names on the way.
class KeyCollector final : public ConfigVisitor {
 public:
  KeyNames keys;

 protected:
  bool open_member(std::string_view name, bool) override {
    path_.push_back(path_.empty() ? std::string(name) : path_.back() + "." + std::string(name));
    keys.insert(path_.back());
    return true;
  }
  void open_item(size_t) override { path_.push_back(path_.back()); }
  void close() override { path_.pop_back(); }
  bool begin_object() override { return true; }
  void end_object() override {}
  size_t list(size_t) override { return 1; }
  bool has_value(bool) override { return true; }
  void scalar(bool&) override {}
  void scalar(int64_t&, int64_t, int64_t) override {}
  void scalar(uint64_t&, uint64_t, uint64_t) override {}
  void scalar(double&, double, double, bool) override {}
  void scalar(std::string&) override {}
  void choice(const std::vector<const char*>& names, size_t& chosen) override { chosen = names.size(); }

 private:
  std::vector<std::string> path_;
};

}  // namespace

KeyNames detail::keys_read(const VisitConfig& visit) {
  KeyCollector collector;
  visit(collector);
  return std::move(collector.keys);
}

}  // namespace mh
