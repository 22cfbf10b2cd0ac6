#include "cli/geometry_flags.h"

#include "cli/verb.h"
#include "multihead/models/named_geometry.h"

namespace mh::cli {

void GeometryFlags::add(Verb& verb) {
  verb.add_option("--geometry", geometry, about_geometries())->type_name("GEOMETRY")->group("Heads");
  flags_.add(verb, layer_);
  for (const std::string& name : flags_.names()) {
    const bool common = name == "--d-model" || name == "--heads" || name == "--d-key" || name == "--d-value";
    verb.get_option(name)->rare(!common);
  }
}

HeadGeometry GeometryFlags::described(const std::string& named) const {
  HeadGeometry described = named_geometry(named, layer_.heads, layer_.d_model);
  layer_.head_changes.apply(described);
  return described;
}

}  // namespace mh::cli
