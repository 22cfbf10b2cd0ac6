#include "multihead/kernels/product_kernels.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "multihead/base/error.h"
#include "multihead/kernels/simd.h"

namespace mh {
namespace {

/// What cpuid says beside Highway's targets: leaf 7, subleafs 0 and 1; leaf 0 names the maker.
Features instructions() {
  Features found{};
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_AMD_ebx) found.add(Feature::kAmd);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  if ((c >> 11 & 1u) != 0) found.add(Feature::kAvx512Vnni);
  if (a < 1 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return found;
  if ((a >> 4 & 1u) != 0) found.add(Feature::kAvxVnni);
  if ((a >> 5 & 1u) != 0) found.add(Feature::kAvx512Bf16);
#endif
  return found;
}

bool serves(const KernelRule& rule, Precision contract, WeightsKind weights) {
  return rule.contract == contract && rule.weights == weights;
}

constexpr char kBetween = ':';  // the names of a contract and of a kernel

}  // namespace

Features processor_features() {
  static const Features known = instructions();
  Features found = known;
  const std::string target = dispatch_target();
  found.add(target == "AVX3" ? Feature::kAvx512 : target == "AVX2" ? Feature::kAvx2 : Feature::kOtherVectors);
  return found;
}

Features needs_of(ProductKernel kernel) {
  const auto* const found = std::find_if(std::begin(kKernelNeeds), std::end(kKernelNeeds),
                                         [&](const KernelNeeds& of) { return of.kernel == kernel; });
  MH_ASSERT(found != std::end(kKernelNeeds));
  return found->needs;
}

bool runs(ProductKernel kernel, Features processor) {
  return processor.has(needs_of(kernel));
}

std::vector<ProductKernel> kernels_of(Precision contract, std::optional<WeightsKind> weights,
                                      Features processor) {
  std::vector<ProductKernel> found;
  for (const KernelRule& rule : kKernelRules) {
    if (rule.contract == contract && (!weights || rule.weights == *weights) && runs(rule.kernel, processor) &&
        std::find(found.begin(), found.end(), rule.kernel) == found.end())
      found.push_back(rule.kernel);
  }
  return found;
}

ProductKernel kernel_for(PrecisionChoice choice, WeightsKind weights, Features processor) {
  for (const KernelRule& rule : kKernelRules) {
    if (choice.kernel && rule.kernel == *choice.kernel && serves(rule, choice.contract, weights)) {
      MH_ASSERT(runs(rule.kernel, processor));
      return rule.kernel;
    }
  }
  const auto* const taken =
      std::find_if(std::begin(kKernelRules), std::end(kKernelRules), [&](const KernelRule& rule) {
        return serves(rule, choice.contract, weights) && runs(rule.kernel, processor) &&
               processor.has(rule.taken_where);
      });
  MH_ASSERT(taken != std::end(kKernelRules));
  return taken->kernel;
}

bool is_here(PrecisionChoice choice) {
  if (!choice.kernel) return true;
  const std::vector<ProductKernel> here = kernels_of(choice.contract, std::nullopt, processor_features());
  return std::find(here.begin(), here.end(), *choice.kernel) != here.end();
}

std::string precision_name(PrecisionChoice choice) {
  std::string name = name_of(choice.contract, kPrecisionNames);
  return choice.kernel ? name + kBetween + name_of(*choice.kernel, kProductKernelNames) : name;
}

std::optional<PrecisionChoice> precision_named(std::string_view name) {
  const size_t between = name.find(kBetween);
  const auto contract = value_named(name.substr(0, between), kPrecisionNames);
  if (!contract || between == name.npos) return contract;
  const auto kernel = value_named(name.substr(between + 1), kProductKernelNames);
  if (!kernel || !is_here({*contract, *kernel})) return std::nullopt;
  return PrecisionChoice(*contract, *kernel);
}

std::string precisions_like(std::string_view text) {
  const size_t between = text.find(kBetween);
  const auto contract = value_named(text.substr(0, between), kPrecisionNames);
  if (!contract || between == text.npos) return names_listed(kPrecisionNames);
  std::string all = precision_name(*contract);
  for (const ProductKernel kernel : kernels_of(*contract, std::nullopt, processor_features()))
    all += "|" + precision_name({*contract, kernel});
  return all + " (the kernels that this machine has)";
}

}  // namespace mh
