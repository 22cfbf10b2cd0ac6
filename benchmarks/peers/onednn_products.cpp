// oneDNN's side of products.py: the same command as product_speed, answered by dnnl_sgemm.
//
//   g++ -O2 -std=c++20 onednn_products.cpp -ldnnl -o onednn_products       (Debian: libdnnl-dev)
#include <dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

int main() {
  std::string what;
  int64_t m = 0, k = 0, n = 0;
  int calls = 0;
  while (std::cin >> what >> m >> k >> n >> calls) {
    const std::vector<float> a(static_cast<size_t>(m * k), 0.5f), b(static_cast<size_t>(k * n), 0.25f);
    std::vector<float> c(static_cast<size_t>(m * n));
    std::vector<double> seconds;
    for (int i = 0; i < calls; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if (dnnl_sgemm('N', 'N', m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n) != dnnl_success)
        return 1;
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    std::printf("%.9f\n", *middle);
    std::fflush(stdout);
  }
}
