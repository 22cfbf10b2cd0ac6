// The whole of multihead: Transformers' heads on the CPU, trained, run and looked into. Everything is in namespace mh.
// docs/api.md lists these headers with an example each.
#pragma once

#include "multihead/attention.h"  // the attention kernel on your own memory
#include "multihead/bleu.h"       // BLEU as sacreBLEU prints it
#include "multihead/errors.h"     // what is thrown; threads
#include "multihead/geometry.h"   // heads of your own description, and what they cost
#include "multihead/heads.h"      // see heads, mute them
#include "multihead/layer.h"      // one layer of multi-head attention, forward and backward
#include "multihead/model.h"      // load a model folder
#include "multihead/tokenizer.h"  // text to token ids and back
#include "multihead/train.h"      // train a translator
#include "multihead/translate.h"  // translate and score
