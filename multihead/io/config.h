// Reads and writes structs as JSON. A struct lists its fields once, in visit(); the same list gives flags,
// help and the tables of the documentation.
//
//   struct ModelConfig {
//     int32_t d_model = 512;
//     Norm norm = Norm::kPost;
//     template <class V>
//     void visit(V& v) {
//       v("d_model", d_model, {.low = 1, .high = 65536, .required = true});
//       v("norm", norm, {{"post", Norm::kPost}, {"pre", Norm::kPre}});
//     }
//   };
//   write_file_atomically("config.json", to_json(config));
//   from_json(config, read_file("config.json"), "config.json");
//
// Fields may be bool, int32_t, int64_t, uint64_t, float, double, std::string, a type that holds a text, an enum with its
// names, another struct with a visit, std::optional of these (null or absent = empty) and std::vector of these.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"

namespace mh {

/// The range of a number, both ends included. `required`: reading fails when the key is missing.
template <class T>
struct Rule {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
  bool required = false;
};

/// A range in words: "an integer from 1 to 255", "a number of at least 0"; for int32_t, int64_t, uint64_t
/// (always with both ends; without limits these are the ends of the type), float and double.
template <class T>
std::string numbers_within(T low, T high);

/// The same for fields that are not numbers.
struct Presence {
  bool required = false;
};

/// What help and documentation say about a setting, besides its name, its range or names, and its default.
/// Files do not need it.
struct About {
  const char* group = "";      // the heading under which it is listed
  std::string help = {};       // one sentence, without the full stop
  const char* otherwise = "";  // shown as the default where the initial value is not it: "by preset"
  bool rare = false;           // left to --help-all
  const char* value = "";      // what stands for the value in help: "HEAD"; empty: by its type
};

namespace detail {
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsOptionalEnum : std::false_type {};
template <class T>
struct IsOptionalEnum<std::optional<T>> : std::is_enum<T> {};
/// Types that are made of a text and give it back, such as HeadPattern; in JSON they are that text.
template <class T>
concept HoldsText = requires(const T& value) {
                      { value.text() } -> std::convertible_to<const std::string&>;
                      requires std::constructible_from<T, const std::string&>;
                    };
template <class T>
constexpr bool kIsSeveralNames = false;
template <class T>
constexpr bool kIsSeveralNames<std::vector<T>> = kHasNames<T>;
template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
}  // namespace detail

/// The argument of a struct's visit(v). It reads or writes each field that visit() passes to it.
class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;

  /// Reads or writes a whole struct at the present place, which at first is the document.
  template <class T>
  void object(T& value) {
    if (!begin_object()) return;
    value.visit(*this);
    end_object();
  }

  /// A number, or numbers, within a rule: int32_t, int64_t, uint64_t, float, double; also optional and vector
  /// of them.
  template <class T>
    requires detail::kIsNumber<T>
  void operator()(std::string_view name, T& value, Rule<std::type_identity_t<T>> rule = {},
                  const About& = {}) {
    member(name, rule.required, [&] { this->value(value, rule); });
  }
  template <class T>
    requires detail::kIsNumber<T>
  void operator()(std::string_view name, std::optional<T>& value, Rule<std::type_identity_t<T>> rule = {},
                  const About& = {}) {
    member(name, rule.required, [&] { this->value(value, rule); });
  }
  template <class T>
    requires detail::kIsNumber<T>
  void operator()(std::string_view name, std::vector<T>& value, Rule<std::type_identity_t<T>> rule = {},
                  const About& = {}) {
    member(name, rule.required, [&] { this->value(value, rule); });
  }
  /// An enum, written by name.
  template <class E>
    requires kHasNames<E>
  void operator()(std::string_view name, E& value, EnumNames<std::type_identity_t<E>> names,
                  const About& = {}) {
    member(name, false, [&] { choose(value, names); });
  }
  template <class E>
    requires kHasNames<E>
  void operator()(std::string_view name, std::optional<E>& value, EnumNames<std::type_identity_t<E>> names,
                  const About& = {}) {
    member(name, false, [&] {
      if (!has_value(value.has_value())) {
        value.reset();
        return;
      }
      if (!value) value = names.begin()->second;
      choose(*value, names);
    });
  }
  /// Several values of an enum, each written by name.
  template <class E>
    requires kHasNames<E>
  void operator()(std::string_view name, std::vector<E>& values, EnumNames<std::type_identity_t<E>> names,
                  const About& = {}) {
    member(name, false, [&] {
      values.resize(list(values.size()), names.begin()->second);
      for (size_t i = 0; i < values.size(); ++i) {
        open_item(i);
        choose(values[i], names);
        close();
      }
    });
  }
  /// Anything else: bool, string, struct, optional or vector of them.
  template <class T>
    requires(!detail::kIsNumber<T> && !kHasNames<T>)
  void operator()(std::string_view name, T& value, Presence presence = {}, const About& = {}) {
    member(name, presence.required, [&] { this->value(value, NoRule{}); });
  }
  /// A required text that must be exactly this, e.g. literal("model_type", "marian").
  void literal(std::string_view name, const char* text) {
    member(name, true, [&] {
      size_t chosen = 0;
      choice({text}, chosen);
    });
  }

 protected:
  // open_member() and open_item() go into a place of the document, close() leaves it again.
  virtual bool open_member(std::string_view name, bool required) = 0;  // false: absent, nothing opened
  virtual void open_item(size_t index) = 0;
  virtual void close() = 0;
  // At the present place:
  virtual bool begin_object() = 0;  // false: it is no object (reported), skip its fields
  virtual void end_object() = 0;
  virtual size_t list(size_t size) = 0;            // the number of items it has now
  virtual bool has_value(bool has_value_now) = 0;  // for optionals
  virtual void scalar(bool& value) = 0;
  virtual void scalar(int64_t& value, int64_t low, int64_t high) = 0;
  virtual void scalar(uint64_t& value, uint64_t low, uint64_t high) = 0;
  virtual void scalar(double& value, double low, double high, bool single_precision) = 0;
  virtual void scalar(std::string& value) = 0;
  virtual void choice(const std::vector<const char*>& names, size_t& chosen) = 0;

 private:
  struct NoRule {};

  template <class Body>
  void member(std::string_view name, bool required, Body&& body) {
    if (!open_member(name, required)) return;
    body();
    close();
  }
  template <class E>
  void choose(E& value, EnumNames<E> names) {
    std::vector<const char*> allowed;
    size_t chosen = names.size();
    for (const auto& [text, meaning] : names) {
      if (meaning == value && chosen == names.size()) chosen = allowed.size();
      allowed.push_back(text);
    }
    choice(allowed, chosen);
    if (chosen < allowed.size()) value = (names.begin() + chosen)->second;
  }
  template <class T, class R>
  void value(T& field, const R& rule) {
    if constexpr (detail::IsOptional<T>::value) {
      if (!has_value(field.has_value())) {
        field.reset();
        return;
      }
      if (!field) field.emplace();
      value(*field, rule);
    } else if constexpr (detail::IsVector<T>::value) {
      static_assert(!std::is_same_v<T, std::vector<bool>>, "vector<bool> has no references to its items");
      field.resize(list(field.size()));
      for (size_t i = 0; i < field.size(); ++i) {
        open_item(i);
        value(field[i], rule);
        close();
      }
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
      scalar(field);
    } else if constexpr (detail::HoldsText<T>) {
      std::string text = field.text();
      scalar(text);
      if (text != field.text()) field = T(text);
    } else if constexpr (detail::kIsNumber<T>) {
      number(field, [&] {
        if constexpr (std::is_same_v<R, NoRule>) {
          return Rule<T>{};
        } else {
          return rule;
        }
      }());
    } else {
      object(field);
    }
  }
  template <class T>
  void number(T& field, const Rule<T>& rule) {
    if constexpr (std::is_floating_point_v<T>) {
      double wide = field;
      scalar(wide, rule.low, rule.high, std::is_same_v<T, float>);
      field = static_cast<T>(wide);
    } else if constexpr (std::is_signed_v<T>) {
      int64_t wide = field;
      scalar(wide, rule.low, rule.high);
      field = static_cast<T>(wide);
    } else {
      uint64_t wide = field;
      scalar(wide, rule.low, rule.high);
      field = static_cast<T>(wide);
    }
  }
};

/// What to do with a key in the file that is no field: refuse it as a typo (the default), or ignore it, as
/// in Hugging Face's config.json, which has keys that we do not use.
enum class UnknownKeys { kRefuse, kIgnore };

namespace detail {
using VisitConfig = std::function<void(ConfigVisitor&)>;
/// Returns the JSON of the fields that `visit` passes on; indent < 0: all on one line.
std::string write_config(const VisitConfig& visit, int indent);
/// Fills the fields that `visit` passes on. Throws FormatError with all problems on one line.
void read_config(const VisitConfig& visit, std::string_view text, std::string_view file, UnknownKeys unknown);
}  // namespace detail

/// Returns the struct as JSON on one line without a line end: for files with one JSON value a line.
template <class Config>
std::string to_json_line(const Config& config, int indent = -1) {
  // visit() serves reading too, so it is not const; writing changes nothing.
  return detail::write_config([&](ConfigVisitor& v) { v.object(const_cast<Config&>(config)); }, indent);
}

/// Returns the struct as JSON, with its fields in the order of visit(), indented by two, and a line end.
template <class Config>
std::string to_json(const Config& config) {
  return to_json_line(config, 2) + "\n";
}

/// Reads `text` into `config`; a missing key leaves its field as it is (unless required). Throws FormatError
/// that starts with `file` and lists all problems: wrong types, values out of range, unknown keys; `config`
/// is then unchanged.
template <class Config>
void from_json(Config& config, std::string_view text, std::string_view file,
               UnknownKeys unknown = UnknownKeys::kRefuse) {
  Config result = config;
  detail::read_config([&](ConfigVisitor& v) { v.object(result); }, text, file, unknown);
  config = std::move(result);
}

}  // namespace mh
