// One process at a time: a lock on a file that lives as long as its holder.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

namespace mh {

/// A run that was just killed may hold its folder for a moment longer.
struct LockWait {
  std::chrono::milliseconds longest{5000};
  std::function<void(const std::string&)> remark = {};  // told once when there is something to wait for
};

class FolderLock {
 public:
  /// Locks `file`, which is made when it is not there. The system takes the lock back when this process ends,
  /// however it ends. Throws FileError when the file cannot be written, and Error when another process still
  /// holds it after the wait; both call the folder `model`.
  FolderLock(const std::filesystem::path& file, const std::filesystem::path& model, const LockWait& wait);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace mh
