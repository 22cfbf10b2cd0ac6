// The speed of products of matrices C [M, N] = A [M, K] B [K, N] beside a peer (benchmarks/peers/products.py).
//
//   peak                    -> GFLOP/s in a loop of multiply-adds on every thread at once
//   product M K N CALLS     B is packed once -> median seconds of a call
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "benchmarks/peak.h"
#include "multihead/kernels/gemm.h"

namespace {

double product(std::istringstream& rest) {
  int64_t m = 0, k = 0, n = 0;
  int calls = 0;
  if (!(rest >> m >> k >> n >> calls)) throw mh::UsageError("product: M, K, N and calls, please");
  const std::vector<float> a(static_cast<size_t>(m * k), 0.5f), b(static_cast<size_t>(k * n), 0.25f);
  std::vector<float> c(static_cast<size_t>(m * n));
  mh::PackedMatrix packed;
  packed.pack(mh::ConstMatrixView(b.data(), k, n));
  std::vector<double> seconds;
  for (int i = 0; i < calls; ++i) {
    const mh::Stopwatch watch;
    mh::multiply(mh::ConstMatrixView(a.data(), m, k), packed, mh::MatrixView(c.data(), m, n));
    seconds.push_back(watch.seconds());
  }
  return mh::median(std::move(seconds));
}

int run(int, char**) {
  return mh::answer_commands([](const std::string& what, std::istringstream& rest) {
    if (what != "peak" && what != "product") throw mh::UsageError("unknown command: " + what);
    return what == "peak" ? mh::peak_gflops() : product(rest);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("product_speed", run, argc, argv);
}
