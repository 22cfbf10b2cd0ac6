// The verbs of `multihead heads`, one file each.
#pragma once

namespace mh::cli {

class Verb;

void add_heads_alignment(Verb& heads);
void add_heads_attribution(Verb& heads);
void add_heads_circuit(Verb& heads);
void add_heads_circuits(Verb& heads);
void add_heads_compare(Verb& heads);
void add_heads_contributions(Verb& heads);
void add_heads_importance(Verb& heads);
void add_heads_lens(Verb& heads);
void add_heads_patch(Verb& heads);
void add_heads_prune(Verb& heads);
void add_heads_relations(Verb& heads);
void add_heads_retrieval(Verb& heads);
void add_heads_stats(Verb& heads);
void add_heads_steer(Verb& heads);
void add_heads_similar(Verb& heads);
void add_heads_where(Verb& heads);

}  // namespace mh::cli
