// The map of one head (attention_maps.h) as a matrix with a row for each query of all sequences, one after the other:
// [Nq, longest keys]. Column j is key j of the query's sequence; columns behind the last key of a sequence are 0.
#pragma once

#include "multihead/autograd/attention_maps.h"

namespace mh {

/// Of head `head` of the maps of these heads.
Var map_rows(Tape& tape, Var maps, const AttentionInputs& inputs, int head, HeadRange heads = {});
/// The maps with these rows in place of that head's; numbers behind the last key of a sequence count for nothing.
Var replace_map_rows(Tape& tape, Var maps, Var rows, const AttentionInputs& inputs, int head,
                     HeadRange heads = {});

}  // namespace mh
