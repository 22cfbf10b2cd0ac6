#include "multihead/distributed/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "multihead/distributed/message.h"

namespace mh {
namespace {

// The first byte of what a rank gives: it is well, or the class of the error that ended it.
constexpr char kWell = '+', kUsage = 'u', kFile = 'f', kFormat = 'F', kShape = 's', kInternal = 'i',
               kStopped = 'S', kOther = 'e';

char class_of(const std::exception& failure) {
  const auto is = [&](auto* type) {
    return dynamic_cast<std::remove_reference_t<decltype(*type)>*>(&failure) != nullptr;
  };
  if (is(static_cast<const UsageError*>(nullptr))) return kUsage;
  if (is(static_cast<const FileError*>(nullptr))) return kFile;
  if (is(static_cast<const FormatError*>(nullptr))) return kFormat;
  if (is(static_cast<const ShapeError*>(nullptr))) return kShape;
  if (is(static_cast<const InternalError*>(nullptr))) return kInternal;
  if (is(static_cast<const Interrupted*>(nullptr))) return kStopped;
  return kOther;
}

template <class E>
class Agreed : public E, public AgreedFailure {
 public:
  using E::E;
};

[[noreturn]] void throw_as(char kind, const std::string& message) {
  switch (kind) {
    case kUsage:
      throw Agreed<UsageError>(message);
    case kFile:
      throw Agreed<FileError>(message);
    case kFormat:
      throw Agreed<FormatError>(message);
    case kShape:
      throw Agreed<ShapeError>(message);
    case kInternal:
      throw Agreed<InternalError>(message);
    case kStopped:
      throw Agreed<Interrupted>(message);
    default:
      throw Agreed<Error>(message);
  }
}

}  // namespace

std::vector<std::string> agree_or_fail(ProcessGroup& group, std::string_view mine) {
  std::vector<std::string> all = group.agree(std::string(1, kWell) + std::string(mine));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    MH_ASSERT(!all[rank].empty());
    const char kind = all[rank][0];
    all[rank].erase(0, 1);
    if (kind != kWell) throw_as(kind, rank == 0 ? all[rank] : fmt::format("rank {}: {}", rank, all[rank]));
  }
  return all;
}

void tell_failure(ProcessGroup& group, const std::exception& failure) {
  if (group.size() == 1) return;
  const bool memory = dynamic_cast<const std::bad_alloc*>(&failure) != nullptr;
  group.agree(std::string(1, class_of(failure)) + (memory ? "out of memory" : failure.what()));
}

bool any_rank(ProcessGroup& group, bool mine) {
  if (group.size() == 1) return mine;
  const std::vector<std::string> all = agree_or_fail(group, mine ? "1" : "0");
  return std::find(all.begin(), all.end(), "1") != all.end();
}

std::string of_first_rank(ProcessGroup& group, std::string_view mine) {
  return agree_or_fail(group, group.rank() == 0 ? mine : std::string_view()).front();
}

void check_same(ProcessGroup& group, const NamedValues& mine) {
  MessageWriter message;
  for (const auto& [name, value] : mine) message.add(name), message.add(value);
  const std::vector<std::string> all = agree_or_fail(group, message.bytes());
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    std::vector<std::string> clauses;
    MessageReader first(all[0]), other(all[rank]);
    while (!first.empty() && !other.empty()) {
      const std::string_view name = first.text(), value = first.text(), other_name = other.text(),
                             other_value = other.text();
      if (name != other_name) break;  // of another version, which the first value says
      if (value != other_value) {
        const auto shown = [](std::string_view text) { return text.empty() ? "not given" : text; };
        clauses.push_back(fmt::format("{} is {} on rank {} and {} on rank 0", name, shown(other_value), rank,
                                      shown(value)));
      }
    }
    throw UsageError(fmt::format("{}; all ranks need the same", fmt::join(clauses, "; ")));
  }
}

}  // namespace mh
