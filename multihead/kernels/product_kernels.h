// Which kernel multiplies rows with weights, by a table of what processors have. It depends neither on timing in the run nor on
// threads or rows, so results do not either. benchmarks/kernel_speed.cpp measures what the table rests on
// (benchmarks/results/kernels.json).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/precision.h"

namespace mh {

/// What the kernels see of a processor. Their vectors are those of AVX-512, of AVX2, or others, such as NEON's.
enum class Feature { kAvx512, kAvx2, kOtherVectors, kAvx512Vnni, kAvx512Bf16, kAvxVnni, kAmd };

inline constexpr EnumNames<Feature> kFeatureNames = {{"AVX-512", Feature::kAvx512},
                                                     {"AVX2", Feature::kAvx2},
                                                     {"neither AVX2 nor AVX-512", Feature::kOtherVectors},
                                                     {"AVX-512 VNNI", Feature::kAvx512Vnni},
                                                     {"AVX-512 BF16", Feature::kAvx512Bf16},
                                                     {"AVX-VNNI", Feature::kAvxVnni},
                                                     {"made by AMD", Feature::kAmd}};

class Features {
 public:
  constexpr Features(std::initializer_list<Feature> features) {
    for (const Feature feature : features) bits_ |= bit(feature);
  }
  constexpr void add(Feature feature) { bits_ |= bit(feature); }
  constexpr bool has(Feature feature) const { return (bits_ & bit(feature)) != 0; }
  constexpr bool has(Features all) const { return (bits_ & all.bits_) == all.bits_; }
  bool operator==(const Features&) const = default;

 private:
  static constexpr uint32_t bit(Feature feature) { return uint32_t{1} << static_cast<int>(feature); }
  uint32_t bits_ = 0;
};

/// Those of this machine, with the instruction set that the kernels use (kernels/simd.h).
Features processor_features();

/// How a file has weights: as numbers of float32, bfloat16 or float16, or as quantised blocks.
enum class WeightsKind { kNumbers, kBlocks };

inline constexpr EnumNames<WeightsKind> kWeightsKindNames = {{"numbers", WeightsKind::kNumbers},
                                                             {"blocks", WeightsKind::kBlocks}};

/// What a kernel needs to run.
struct KernelNeeds {
  ProductKernel kernel;
  Features needs;
};
inline constexpr KernelNeeds kKernelNeeds[] = {
    {ProductKernel::kFloat32, {}},
    {ProductKernel::kBFloat16Dots, {Feature::kAvx512, Feature::kAvx512Bf16}},
    {ProductKernel::kInt8Avx512Vnni, {Feature::kAvx512, Feature::kAvx512Vnni}},
    {ProductKernel::kInt8Avx512, {Feature::kAvx512}},
    {ProductKernel::kInt8AvxVnni, {Feature::kAvx2, Feature::kAvxVnni}},
    {ProductKernel::kInt8Avx2, {Feature::kAvx2}},
    {ProductKernel::kInt8Plain, {Feature::kOtherVectors}},
};

/// A kernel that can serve a contract for such weights, and what a processor must have, beside what the kernel needs, to take it
/// without being told.
struct KernelRule {
  Precision contract;
  WeightsKind weights;
  ProductKernel kernel;
  Features taken_where = {};
};
/// Of those of a contract and a kind the first that the processor meets is taken.
inline constexpr KernelRule kKernelRules[] = {
    {Precision::kSame, WeightsKind::kNumbers, ProductKernel::kFloat32},
    {Precision::kSame, WeightsKind::kBlocks, ProductKernel::kFloat32},
    // AMD's take half of float32's time; Intel's, on the processors met so far, as much: rounding would buy nothing.
    {Precision::kNear, WeightsKind::kNumbers, ProductKernel::kBFloat16Dots, {Feature::kAmd}},
    {Precision::kNear, WeightsKind::kNumbers, ProductKernel::kFloat32},
    {Precision::kNear, WeightsKind::kBlocks, ProductKernel::kInt8Avx512Vnni},
    {Precision::kNear, WeightsKind::kBlocks, ProductKernel::kInt8Avx512},
    {Precision::kNear, WeightsKind::kBlocks, ProductKernel::kInt8AvxVnni},
    {Precision::kNear, WeightsKind::kBlocks, ProductKernel::kInt8Avx2},
    {Precision::kNear, WeightsKind::kBlocks, ProductKernel::kInt8Plain},
    {Precision::kFast, WeightsKind::kNumbers, ProductKernel::kInt8Avx512Vnni},
    {Precision::kFast, WeightsKind::kNumbers, ProductKernel::kInt8Avx512},
    {Precision::kFast, WeightsKind::kNumbers, ProductKernel::kInt8AvxVnni},
    {Precision::kFast, WeightsKind::kNumbers, ProductKernel::kInt8Avx2},
    {Precision::kFast, WeightsKind::kNumbers, ProductKernel::kInt8Plain},
    {Precision::kFast, WeightsKind::kBlocks, ProductKernel::kInt8Avx512Vnni},
    {Precision::kFast, WeightsKind::kBlocks, ProductKernel::kInt8Avx512},
    {Precision::kFast, WeightsKind::kBlocks, ProductKernel::kInt8AvxVnni},
    {Precision::kFast, WeightsKind::kBlocks, ProductKernel::kInt8Avx2},
    {Precision::kFast, WeightsKind::kBlocks, ProductKernel::kInt8Plain},
};

/// Whether a kernel multiplies integers, and whether sums of their products are one instruction.
constexpr bool is_int8(ProductKernel kernel) {
  return kernel >= ProductKernel::kInt8Avx512Vnni;
}
constexpr bool has_byte_dots(ProductKernel kernel) {
  return kernel == ProductKernel::kInt8Avx512Vnni || kernel == ProductKernel::kInt8AvxVnni;
}

/// Of kKernelNeeds.
Features needs_of(ProductKernel kernel);
/// Whether such a processor can run it.
bool runs(ProductKernel kernel, Features processor);

/// The kernels that can serve a contract for weights of such a kind, or of either, on such a processor, each once.
std::vector<ProductKernel> kernels_of(Precision contract, std::optional<WeightsKind> weights,
                                      Features processor);

/// The kernel of such weights: the one chosen where it can serve them, else the table's. REQUIRES: is_here(choice).
ProductKernel kernel_for(PrecisionChoice choice, WeightsKind weights,
                         Features processor = processor_features());

/// Whether this machine has the kernel that is chosen, and the contract is one of its.
bool is_here(PrecisionChoice choice);

/// "fast", "fast:int8-avx2".
std::string precision_name(PrecisionChoice choice);
/// The choice of this name; none: it is no name, or this machine has no such kernel for the contract.
std::optional<PrecisionChoice> precision_named(std::string_view name);
/// What this machine takes in place of a text that is none of its names: "same|near|fast", or with the kernels of the contract that
/// the text begins with.
std::string precisions_like(std::string_view text);

}  // namespace mh
