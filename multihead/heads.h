// See what heads do, and change it. The name of a head is that of its attention and its number, from 0:
// "encoder.3.self_attention.1". A pattern stands for several: "encoder.3.self_attention.*".
//
//   mh::SentenceWeights seen = mh::sentence_weights(folder, "two dogs run .");         // every head's weights
//   mh::heat_map(seen.attentions[0].heads[1].view(), rows, columns);                   // a picture for the terminal
//   mh::HeadReport report = mh::inspect_heads(folder, {.sources = lines});             // statistics over a corpus
//   mh::Interventions muted;
//   muted.mute("encoder.3.self_attention.1");                                          // its output times 0
//   mh::translate_text(folder, lines, {.interventions = &muted});
//
// SiteValues keeps, replaces and differentiates any value inside a model (docs/sites.md).
// An Observer gets the weights of every attention during a forward pass; observe_corpus() runs a model over a corpus
// for it. examples/see_head.cpp and examples/mute_head.cpp are whole programs.
#pragma once

#include "multihead/analysis/heat_map.h"
#include "multihead/analysis/observe_corpus.h"
#include "multihead/model.h"
#include "multihead/nn/context.h"
#include "multihead/nn/head_name.h"
#include "multihead/nn/site_values.h"
#include "multihead/recipes/draw_heads.h"
#include "multihead/recipes/inspect_heads.h"
