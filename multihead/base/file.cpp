#include "multihead/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "multihead/base/error.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view verb, const fs::path& path, int code) {
  std::string remedy;
  if (code == ENOSPC) remedy = "; free some space and run the same command again";
  if (code == EACCES || code == EROFS) remedy = "; choose a place this user may use";
  throw FileError(fmt::format("cannot {} {}: {}{}", verb, path.string(), std::strerror(code), remedy));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, mode_t mode = 0644)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void sync_folder(const fs::path& folder) {
  Descriptor fd(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
  if (fd.get() >= 0) ::fsync(fd.get());  // some file systems cannot; the rename is still atomic there
}

// Writes and syncs; the caller names what a failure leaves behind.
void write_and_sync(const fs::path& path, std::string_view bytes, const fs::path& shown) {
  Descriptor fd(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd.get() < 0) fail("write", shown, errno);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", shown, errno);
    done += static_cast<size_t>(n);
  }
  if (::fsync(fd.get()) != 0 && errno != EINVAL) fail("write", shown, errno);
}

fs::path temporary_beside(const fs::path& path) {
  return path.parent_path() / fmt::format(".{}.tmp.{}", path.filename().string(), ::getpid());
}

fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

std::string read_file(const fs::path& path) {
  Descriptor fd(path, O_RDONLY);
  if (fd.get() < 0) fail("read", path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail("read", path, errno);
  if (S_ISDIR(info.st_mode)) fail("read", path, EISDIR);
  std::string bytes;
  if (info.st_size > 0) bytes.reserve(static_cast<size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path, errno);
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  const fs::path temporary = temporary_beside(path);
  try {
    write_and_sync(temporary, bytes, path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("write", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

FolderWriter::FolderWriter(const fs::path& folder)
    : folder_(without_trailing_slash(folder)), staging_(temporary_beside(folder_)) {
  std::error_code code;
  if (folder_.has_parent_path()) fs::create_directories(folder_.parent_path(), code);
  if (code) fail("create folder", folder_.parent_path(), code.value());
  fs::remove_all(staging_, code);
  if (::mkdir(staging_.c_str(), 0755) != 0) fail("create folder", folder_, errno);
}

FolderWriter::~FolderWriter() {
  if (committed_) return;
  std::error_code code;
  fs::remove_all(staging_, code);
}

void FolderWriter::add(std::string_view name, std::string_view bytes) {
  write_and_sync(staging_ / name, bytes, folder_ / name);
}

void FolderWriter::commit() {
  sync_folder(staging_);
  if (::rename(staging_.c_str(), folder_.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) fail("write folder", folder_, errno);
    // A folder of that name exists. Swap the two in one step, so that there is always a complete one.
    if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE) != 0) {
      fail("replace folder", folder_, errno);
    }
    std::error_code code;
    fs::remove_all(staging_, code);  // now the older contents
  }
  committed_ = true;
  sync_folder(folder_.parent_path());
}

}  // namespace mh
