// See what heads do, and change it. The name of a head is that of its attention and its number, from 0:
// "encoder.3.self_attention.1". A pattern stands for several: "encoder.3.self_attention.*".
//
//   mh::Observation seen = mh::observe_text(folder, "two dogs run .");                 // every head's weights
//   mh::heat_map(seen.weights({"encoder.3.self_attention", 1}), rows, columns);        // a picture for the terminal
//   mh::HeadReport report = mh::inspect_heads(folder, {.sources = lines});             // statistics over a corpus
//   mh::SiteValues muted;
//   muted.mute("encoder.3.self_attention.1");                                          // its output times 0
//   mh::translate_text(folder, lines, {.sites = &muted});
//
//   const mh::HeadsText text{.sources = lines};                                        // or mh::FilesCorpus: files of any size
//   mh::TextCorpus corpus(text);
//   mh::heads_stats(folder, corpus);  // heads_relations, heads_alignment, heads_similar, heads_compare, heads_where, ... (docs/heads)
//   mh::heads_importance(mh::load_scored_model(path), corpus);  // which heads matter, ranked; pruning_curve: as they are muted
//   mh::heads_patch(folder, {.clean = a, .corrupt = b, .answer = "Paris", .wrong = "Rome"});  // which heads decide
//   muted.add(mh::read_direction("polite.safetensors").times(4));  // steered; heads_steer(): what that does and breaks
//
//   mh::heads_contributions(folder, {.text = a, .answer = "Paris", .wrong = "Rome"});  // what each adds to the logits
//
//   mh::heads_circuit(model, pairs, {.share = 0.8});  // which edges between heads decide, and proof
//   mh::heads_lens(folder, "The capital of France is", {.position = -1});  // what the model would say after each layer
//   mh::heads_attribution(folder, "two dogs run .");  // which tokens count for the last one; faithfulness() measures the methods
//
//   mh::heads_retrieval(folder, mh::RetrievalTexts());  // which heads fetch a fact from far back in a long text
//
// SiteValues keeps, replaces, adds to and differentiates any value inside a model (docs/sites.md).
// observe_corpus() shows the weights of a corpus batch by batch. examples/see_head.cpp and examples/mute_head.cpp are whole
// programs.
#pragma once

#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/circuit/heads_circuit.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/conversion/prune_heads.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/importance/pruning_curve.h"
#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/heads/measures/heads_compare.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/pictures/draw_heads.h"
#include "multihead/heads/reports/pictures/heat_map.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/site_gradients.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/heads/steering/heads_steer.h"
#include "multihead/model.h"
#include "multihead/nn/context.h"
#include "multihead/nn/head_name.h"
