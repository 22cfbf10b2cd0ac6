// The keys that a struct's visit() reads from JSON, by name: for readers that compare a file's keys with them.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "multihead/io/config.h"

namespace mh {

/// Names of keys; those inside of an object begin with its own name and a dot: "rope_parameters.factor".
using KeyNames = std::set<std::string, std::less<>>;

namespace detail {
KeyNames keys_read(const VisitConfig& visit);
}  // namespace detail

/// Returns the keys of all fields that `config` visits, in structs, optional structs and lists of structs, too.
template <class Config>
KeyNames keys_of(Config config) {
  return detail::keys_read([&](ConfigVisitor& v) { v.object(config); });
}

}  // namespace mh
