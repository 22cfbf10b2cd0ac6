// The JSON of `multihead heads retrieval` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/retrieval/heads_retrieval.h"

namespace mh {

std::string retrieval_json(const RetrievalReport& retrieval, const std::string& model);

}  // namespace mh
