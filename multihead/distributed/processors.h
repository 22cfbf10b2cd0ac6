// Which processors the ranks of a group may use, and whether they are enough for their threads.
#pragma once

#include <string>

#include "multihead/distributed/process_group.h"

namespace mh {

/// Returns one line for the user when the ranks of a machine have more threads together than processors that they may
/// run on, with the remedy; else an empty text. `threads`: of this rank. Every rank calls it.
std::string too_many_threads(ProcessGroup& group, int threads);

}  // namespace mh
