// BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018), equal to the printed digit, and whether the
// difference of two systems is significant (paired bootstrap, Koehn 2004).
//
//   mh::BleuScore score = mh::corpus_bleu(hypotheses, references);
//   score.line();        // "BLEU = 41.02 72.3/48.5/34.1/24.0 (BP = 0.991 ...)"
//
// examples/score_bleu.cpp is a whole program.
#pragma once

#include "multihead/evaluate/bleu.h"
#include "multihead/evaluate/bootstrap.h"
