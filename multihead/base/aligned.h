// A buffer whose memory starts on a cache line and is kept when the buffer is resized.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace mh {

inline constexpr size_t kCacheLine = 64;

/// Memory for numbers: on a cache line, and on pages of 2 MiB where the system grants them, which saves the processor most
/// of the looking up of addresses in matrices that are read from memory.
std::byte* allocate_aligned(size_t bytes);
void free_aligned(std::byte* memory, size_t bytes);

/// A buffer of T that grows and never shrinks. resize() does not keep the contents and does not clear them.
/// REQUIRES: T needs neither constructor nor destructor.
template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) { resize(size); }
  AlignedBuffer(const AlignedBuffer& other) : AlignedBuffer(other.size_) {
    std::copy_n(other.data(), size_, data());
  }
  AlignedBuffer& operator=(const AlignedBuffer& other) {
    if (this == &other) return *this;
    resize(other.size_);
    std::copy_n(other.data(), size_, data());
    return *this;
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  void resize(int64_t size) {
    if (size > capacity_) {
      data_.reset();
      size_ = capacity_ = 0;  // what remains if the allocation below throws
      const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
      data_ = {reinterpret_cast<T*>(allocate_aligned(bytes)), Free{bytes}};
      capacity_ = size;
    }
    size_ = size;
  }
  /// Calls resize(size) and returns data(): for scratch memory that one call after another uses.
  T* get(int64_t size) {
    resize(size);
    return data();
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data(), static_cast<size_t>(size_)}; }
  std::span<const T> span() const { return {data(), static_cast<size_t>(size_)}; }

 private:
  struct Free {
    size_t bytes = 0;
    void operator()(T* p) const { free_aligned(reinterpret_cast<std::byte*>(p), bytes); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

}  // namespace mh
