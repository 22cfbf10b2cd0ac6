// Devices made for a test to write to, so that a mistake cannot damage those of the machine.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

namespace mh::test {

enum class Device : unsigned { kNull = 3, kFull = 7 };  // minor numbers; Linux

/// Makes a device like /dev/null or /dev/full at `path`; false where this is not possible (only root may, and
/// not on every file system).
inline bool make_device(const std::filesystem::path& path, Device device) {
  constexpr unsigned kMemory = 1;  // the major number
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(kMemory, static_cast<unsigned>(device))) != 0)
    return false;
  const int fd = ::open(path.c_str(), O_WRONLY);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

}  // namespace mh::test
