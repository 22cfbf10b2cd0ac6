// Memory that detects accesses outside of it: after its end lies a page that must not be touched, and
// changes before its beginning are found.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace mh {

template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t size = 0, T value = T()) : size_(size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    mapped_ = (bytes + page - 1) / page * page + page;
    void* base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<unsigned char*>(base);
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    before_ = mapped_ - page - bytes;
    std::memset(base_, kBefore, before_);
    data_ = reinterpret_cast<T*>(base_ + before_);
    std::fill_n(data_, size, value);
  }
  ~Guarded() {
    if (base_) munmap(base_, mapped_);
  }
  Guarded(Guarded&& other) noexcept { swap(other); }
  Guarded& operator=(Guarded&& other) noexcept {
    swap(other);
    return *this;
  }

  T* data() const { return data_; }
  int64_t size() const { return size_; }
  std::span<T> span() const { return {data_, static_cast<size_t>(size_)}; }
  /// Whether what lies before the first element is as it was.
  bool clean_before() const {
    return std::all_of(base_, base_ + before_, [](unsigned char byte) { return byte == kBefore; });
  }

 private:
  static constexpr unsigned char kBefore = 0xA5;
  void swap(Guarded& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(before_, other.before_);
    std::swap(mapped_, other.mapped_);
  }

  unsigned char* base_ = nullptr;
  T* data_ = nullptr;
  int64_t size_ = 0;
  size_t before_ = 0, mapped_ = 0;
};

}  // namespace mh
