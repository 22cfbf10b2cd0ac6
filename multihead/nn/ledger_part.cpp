#include "multihead/nn/ledger_part.h"

#include "multihead/base/error.h"

namespace mh {
namespace {

[[noreturn]] void throw_too_large() {
  throw UsageError("the ledger's counts go beyond 2^63; give fewer tokens or smaller sizes");
}

template <class Join>
void for_fields(LedgerPart& part, const LedgerPart& other, const Join& join) {
  for (const auto field : {&LedgerPart::parameters, &LedgerPart::multiply_adds, &LedgerPart::other_flops,
                           &LedgerPart::exponentials, &LedgerPart::read_bytes, &LedgerPart::written_bytes,
                           &LedgerPart::kept_bytes}) {
    part.*field = join(part.*field, other.*field);
  }
}

}  // namespace

int64_t count_product(std::initializer_list<int64_t> factors) {
  int64_t all = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(all, factor, &all)) throw_too_large();
  }
  return all;
}

int64_t count_sum(int64_t a, int64_t b) {
  int64_t all = 0;
  if (__builtin_add_overflow(a, b, &all)) throw_too_large();
  return all;
}

LedgerPart& LedgerPart::operator+=(const LedgerPart& other) {
  for_fields(*this, other, count_sum);
  return *this;
}

LedgerPart LedgerPart::repeated(int64_t count) const {
  LedgerPart part{.name = name};
  for_fields(part, *this, [&](int64_t, int64_t value) { return count_product({count, value}); });
  return part;
}

void LedgerPart::add_moves(int64_t read, int64_t written) {
  read_bytes = count_sum(read_bytes, count_product({kFloatBytes, read}));
  written_bytes = count_sum(written_bytes, count_product({kFloatBytes, written}));
  kept_bytes = count_sum(kept_bytes, count_product({kFloatBytes, written}));
}

void LedgerPart::add_affine(int64_t rows, int64_t inputs, int64_t outputs, bool biased) {
  parameters = count_sum(parameters, count_sum(count_product({inputs, outputs}), biased ? outputs : 0));
  multiply_adds = count_sum(multiply_adds, count_product({rows, inputs, outputs}));
  if (biased) other_flops = count_sum(other_flops, count_product({rows, outputs}));
  add_moves(count_product({rows, inputs}), count_product({rows, outputs}));
}

}  // namespace mh
