// The verbs of `multihead heads`, one file each.
#pragma once

namespace CLI {
class App;
}

namespace mh::cli {

void add_heads_alignment(CLI::App& heads);
void add_heads_relations(CLI::App& heads);
void add_heads_stats(CLI::App& heads);

}  // namespace mh::cli
