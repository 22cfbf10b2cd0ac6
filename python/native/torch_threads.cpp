// The threads of a program that loops by OpenMP, as torch does: its runtime is in the process already, so it is asked by its
// names, and this module is linked without it.
#include <dlfcn.h>

#include "module_parts.h"
#include "multihead/base/executor.h"

namespace mh::python {
namespace {

using Parallel = void (*)(void (*work)(void*), void* data, unsigned threads, unsigned flags);

template <class Function>
Function named(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));  // NOLINT: POSIX says so
}

/// As `#pragma omp parallel num_threads(threads)` calls it, in the runtimes of gcc and of LLVM.
void run_in_openmp(int threads, void (*work)(void*), void* data) {
  static const auto parallel = named<Parallel>("GOMP_parallel");
  parallel(work, data, static_cast<unsigned>(threads), 0);
}

/// Where no OpenMP is in the process the pool stays.
void use_openmp_threads(bool use) {
  set_executor(use && named<Parallel>("GOMP_parallel") ? run_in_openmp : nullptr);
}

}  // namespace

void add_torch_threads(nanobind::module_& module) {
  module.def("use_openmp_threads", use_openmp_threads);
}

}  // namespace mh::python
