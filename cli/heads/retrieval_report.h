// The tables of `multihead heads retrieval`, for 80 columns.
#pragma once

#include <string>

#include "multihead/heads/retrieval/heads_retrieval.h"

namespace mh::cli {

/// What the model answers, the heads that copy most, and of limited heads those without whose text most is lost.
std::string retrieval_tables(const RetrievalReport& retrieval);

}  // namespace mh::cli
