#include "cli/geometry_flags.h"

#include <CLI/CLI.hpp>

#include "cli/options.h"
#include "multihead/models/named_geometry.h"

namespace mh::cli {

void add_geometry_flag(CLI::App& verb, std::string& geometry) {
  verb.add_option("--geometry", geometry,
                  "How heads read and write: a name (docs/verbs/ledger.md lists them), a file *.json, or "
                  "JSON such as '{\"scores\":\"merged\"}'")
      ->capture_default_str();
}

void add_geometry_flags(CLI::App& verb, GeometryFlags& flags) {
  add_geometry_flag(verb, flags.geometry);
  add_number(verb, "--d-model", flags.d_model, {.low = 1, .high = 65536}, "Width of a row");
  add_number(verb, "--heads", flags.heads, {.low = 1, .high = 65536}, "Heads of queries");
  add_size(verb, "--d-key", flags.d_key, 1024,
           "Size of a head's queries and keys; without: as the geometry says, or d_model / heads");
  add_size(verb, "--d-value", flags.d_value, 1024,
           "Size of a head's values; without: as the geometry says, or d_key");
  add_size(verb, "--key-heads", flags.key_heads, 65536,
           "Heads of keys and values, a divisor of --heads; without: as the geometry says");
  add_size(verb, "--d-out", flags.d_out, 65536, "Width of a row that W^O writes; without: --d-model");
}

HeadGeometry geometry_of(const GeometryFlags& flags) {
  HeadGeometry geometry = named_geometry(flags.geometry, flags.heads, flags.d_model);
  if (flags.d_key > 0) geometry.d_key = flags.d_key;
  if (flags.d_value > 0) geometry.d_value = flags.d_value;
  if (flags.key_heads > 0) geometry.key_heads = flags.key_heads;
  return geometry;
}

}  // namespace mh::cli
