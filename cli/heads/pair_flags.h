// --clean, --corrupt, --answer, --wrong, --prefix and --token: the pair of texts between whose answers a model decides.
#pragma once

#include <array>

#include "cli/verb.h"
#include "multihead/heads/patching/patch_texts.h"

namespace mh::cli {

class PairFlags {
 public:
  void add(Verb& verb);
  /// Those that every pair needs: --clean, --corrupt, --answer and --wrong.
  const std::array<Flag*, 4>& needed() const { return needed_; }
  /// Throws UsageError on what is not UTF-8.
  PatchQuestion given() const;

 private:
  PatchQuestion question_ = {};
  int token_ = 0;
  std::array<Flag*, 4> needed_ = {};
  const Flag *prefix_ = nullptr, *of_token_ = nullptr;
};

}  // namespace mh::cli
