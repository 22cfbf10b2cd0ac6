// A corpus on which heads are looked at, as Python gives it: lists of lines, or files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/heads/corpus/corpus_files.h"

namespace mh::python {

struct Corpus {
  using Lines = std::vector<std::string>;
  /// In memory. Targets and pairs in memory belong to lines in memory.
  std::optional<Lines> targets = {}, pairs = {};
  /// `lines` of it are those in memory.
  CorpusFiles files = {};

  /// Throws FileError, and UsageError on lists beside files.
  std::unique_ptr<HeadsCorpus> open() const;
};

}  // namespace mh::python
