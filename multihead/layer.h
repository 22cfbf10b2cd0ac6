// One layer of multi-head attention, MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O (Vaswani et al. 2017,
// section 3.2.2), forward and backward. Rows [N, d_model] of all sequences lie end to end; nothing is padded.
//
//   mh::DropoutStreams streams;
//   mh::MultiHeadAttention layer("layer", {.d_model = 24, .geometry = {.heads = 3}}, streams);
//   mh::Tape tape(mh::Tape::Mode::kRecord);
//   mh::Context context{tape};
//   mh::Var y = layer.self(context, tape.constant(x), rows, mh::Mask::causal());   // [N, d_model]
//   tape.seed(y, dy);
//   tape.backward();                                                              // fills the parameters' gradients
//
// examples/one_layer.cpp is a whole program.
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/base/random.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"
