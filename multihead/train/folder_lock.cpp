#include "multihead/train/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "multihead/base/error.h"

namespace mh {

FolderLock::FolderLock(const std::filesystem::path& file, const std::filesystem::path& model,
                       const LockWait& wait)
    : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_ < 0) {
    throw FileError(fmt::format("cannot write {}: {}; choose a `model` folder this user may write",
                                file.string(), std::strerror(errno)));
  }
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{20};
  const auto begin = Clock::now();
  bool told = false;
  while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;  // a file system without locks
    if (Clock::now() - begin >= wait.longest) {
      ::close(file_);
      throw Error(fmt::format("another process is training in {}; wait for it or choose another `model`",
                              model.string()));
    }
    if (!told && wait.remark)
      wait.remark(fmt::format("another process holds {}; waiting for it to end", model.string()));
    told = true;
    std::this_thread::sleep_for(kPause);
  }
}

FolderLock::~FolderLock() {
  ::close(file_);
}

}  // namespace mh
