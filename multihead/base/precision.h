// How exactly a model computes (docs/precision.md): its products with weights, and what a key/value cache keeps. Attention, norms,
// softmax and sums over rows are float32 whatever these say.
#pragma once

#include <optional>

#include "multihead/base/enum_names.h"

namespace mh {

enum class Precision {
  kSame,  // float32 arithmetic on the numbers that the file has
  kNear,  // inputs of 16 bits: bfloat16, or two times 8 bits
  kFast,  // inputs of 8 bits
};

inline constexpr EnumNames<Precision> kPrecisionNames = {
    {"same", Precision::kSame}, {"near", Precision::kNear}, {"fast", Precision::kFast}};

/// What multiplies rows with weights. Each is made of some instructions, so a machine has only some of them
/// (kernels/product_kernels.h).
enum class ProductKernel {
  kFloat32,
  kBFloat16Dots,    // sums of two products of bfloat16 in one instruction, AVX-512 BF16
  kInt8Avx512Vnni,  // sums of four products of bytes in one instruction, AVX-512 VNNI
  kInt8Avx512,      // the same sums in several instructions of AVX-512
  kInt8AvxVnni,     // in one instruction, AVX-VNNI
  kInt8Avx2,        // in several instructions of AVX2
  kInt8Plain,       // in products of 32 bits, on other processors
};

inline constexpr EnumNames<ProductKernel> kProductKernelNames = {
    {"float32", ProductKernel::kFloat32},
    {"bfloat16-dots", ProductKernel::kBFloat16Dots},
    {"int8-avx512-vnni", ProductKernel::kInt8Avx512Vnni},
    {"int8-avx512", ProductKernel::kInt8Avx512},
    {"int8-avx-vnni", ProductKernel::kInt8AvxVnni},
    {"int8-avx2", ProductKernel::kInt8Avx2},
    {"int8-plain", ProductKernel::kInt8Plain}};

/// A contract, and the kernel that serves it where it can; without one a table chooses (kernels/product_kernels.h).
struct PrecisionChoice {
  Precision contract = Precision::kSame;
  std::optional<ProductKernel> kernel = {};

  PrecisionChoice() = default;
  PrecisionChoice(Precision of) : contract(of) {}  // NOLINT
  PrecisionChoice(Precision of, ProductKernel by) : contract(of), kernel(by) {}
  bool operator==(const PrecisionChoice&) const = default;
};

/// How the key/value cache of cached decoding keeps its numbers.
enum class CacheType {
  kFloat32,   // as they are computed
  kBFloat16,  // rounded to 16 bits, in half the memory
};

inline constexpr EnumNames<CacheType> kCacheTypeNames = {{"float32", CacheType::kFloat32},
                                                         {"bfloat16", CacheType::kBFloat16}};

}  // namespace mh
