// What ranks settle by ProcessGroup::agree(): whether all are well, and whether all have the same settings.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/distributed/process_group.h"

namespace mh {

/// What a rank has that all must have alike, by name: a setting, a version, the fingerprint of a text.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// A failure of another rank is thrown as an error of the class that it was there, and as this one: all ranks know of
/// it already.
class AgreedFailure {
 public:
  virtual ~AgreedFailure() = default;
};

/// group.agree() for work that may fail on one rank alone. When a rank has told a failure instead, throws that
/// error on every other rank: of the same class and AgreedFailure, its message beginning with the rank that failed.
std::vector<std::string> agree_or_fail(ProcessGroup& group, std::string_view mine);

/// Tells all other ranks, which wait in agree_or_fail() or come there, why this one cannot go on. A rank calls it for
/// an error that is no AgreedFailure, once, and nothing of the group afterwards. When all ranks fail alike, all call it.
void tell_failure(ProcessGroup& group, const std::exception& failure);

/// Whether `mine` is true on any rank.
bool any_rank(ProcessGroup& group, bool mine);

/// Returns what rank 0 gave.
std::string of_first_rank(ProcessGroup& group, std::string_view mine);

/// Throws UsageError on every rank unless all have the same values, naming the first rank that differs from
/// rank 0 and all that differs. `where` names a rank's machine.
void check_same(ProcessGroup& group, const NamedValues& mine);

}  // namespace mh
