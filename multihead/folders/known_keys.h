// KnownKeys: what the reader of a JSON object knows about its keys. A file may say more than a reader looks for, and much of
// that changes nothing: a name, a version, what only training uses. But a key that changes what is computed must not be
// passed over. So each reader declares
//
//   - the keys that it obeys (those of a struct with visit(): keys_of(), io/config_keys.h),
//   - by rules, further keys: values that change nothing, and whether another value is refused or named in a remark.
//
// Every other key is named in a remark, too, unless it is null.
//
//   static constexpr KeyRule kRules[] = {
//       {.key = "initializer_range"},                                  // changes nothing
//       {.key = "pretraining_tp", .harmless = "[0, 1]"},               // other values: a remark
//       {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder"},
//   };
//   const KnownKeys keys{.obeyed = keys_of(Fields()), .rules = {std::begin(kRules), std::end(kRules)}};
//   const KeyFindings found = keys.look_at(json, "config.json");
//   found.throw_if_refused();                                          // FormatError
//   if (auto line = found.remark(); !line.empty()) remarks.push_back(line);
//
// The keys of a nested object have the object's name and a dot before them, and so may those of GGUF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "multihead/io/config_keys.h"

namespace mh {

/// A key that its reader knows but does not obey.
struct KeyRule {
  std::string_view key;  ///< with a * at its end: every key that begins so and has no rule of its own
  std::string_view harmless =
      {};  ///< a JSON list of the values that change nothing; empty: every value. null never does
  std::string_view refused =
      {};  ///< why another value is refused: "expected an encoder"; empty: a remark names the key
};

/// What was found in one file.
struct KeyFindings {
  std::string file = {};  ///< what messages call it
  std::vector<std::string> unused =
      {};  ///< keys, sorted, that the reader does not use and that might change something
  std::vector<std::string> refused = {};  ///< clauses: "is_decoder is true; expected an encoder"

  /// "config.json: x_y is not known here and was not used"; empty when all is known.
  std::string remark() const;
  /// The same with other words behind one key, or several. REQUIRES: some are unused.
  std::string with(std::string_view of_one, std::string_view of_several) const;
  /// Throws FormatError with all clauses on one line.
  void throw_if_refused() const;
};

struct KnownKeys {
  KeyNames obeyed = {};  ///< with a *: every key that begins so
  std::vector<KeyRule> rules =
      {};  ///< the first one that has the key counts, and those without * before those with

  /// Of an object. Throws FormatError that starts with `file` when it is not JSON or no object.
  KeyFindings look_at(std::string_view json, std::string_view file) const;
  /// Of an object that is parsed already. Json: nlohmann::json, which only inner headers show.
  template <class Json>
  KeyFindings look_at(const Json& object, std::string_view file) const
    requires requires { object.is_object(); };

  /// Adds what another reader of the same object knows.
  KnownKeys& add(const KnownKeys& other);
};

}  // namespace mh
