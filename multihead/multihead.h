// Includes all of multihead, which trains, runs and inspects the heads of Transformers on the CPU. Everything is in
// namespace mh. docs/api.md lists these headers with an example each.
#pragma once

#include "multihead/attention.h"  // the attention kernel on your own memory
#include "multihead/bleu.h"       // BLEU as sacreBLEU prints it
#include "multihead/embed.h"      // sentences to vectors
#include "multihead/errors.h"     // the exceptions, and the number of threads
#include "multihead/generate.h"   // continue texts with a causal model
#include "multihead/geometry.h"   // describe heads of your own, and count what they cost
#include "multihead/heads.h"      // see what heads do, mute them
#include "multihead/layer.h"      // one layer of multi-head attention, forward and backward
#include "multihead/model.h"      // load a model folder
#include "multihead/tokenizer.h"  // text to token ids and back
#include "multihead/train.h"      // train a translator
#include "multihead/translate.h"  // translate and score
