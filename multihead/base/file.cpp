#include "multihead/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/platform.h"
#include "multihead/base/stop.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

// By its numbers in Linux.
bool is_null_device(const struct stat& info) {
  return S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
}

std::string_view remedy_for(int code, std::string_view verb) {
  const bool reading = verb == "read", creating = verb == "create folder";
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space and run the same command again";
    case EACCES:
    case EROFS:
      return reading ? "; let this user read it" : "; choose a place this user may use";
    case ENOENT:
      if (creating) return "; choose another place";  // the folders above are made, too, where that can be
      return reading ? "; is the name right?" : "; make the folder first";
    case EISDIR:
      return "; name a file in it";
    default:
      return "";
  }
}

[[noreturn]] void fail(std::string_view verb, std::string_view name, int code) {
  throw FileError(fmt::format("cannot {} {}: {}{}", verb, name, std::strerror(code), remedy_for(code, verb)),
                  code);
}
[[noreturn]] void fail(std::string_view verb, const fs::path& path, int code) {
  fail(verb, std::string_view(path.native()), code);
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, mode_t mode = 0644)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void sync_folder(const fs::path& folder) {
  Descriptor fd(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
  if (fd.get() >= 0) ::fsync(fd.get());  // some file systems cannot; the rename is still atomic there
}

// Writes pieces until an empty one comes, and syncs; the caller names what a failure leaves behind.
void write_and_sync(const fs::path& path, const std::function<std::string_view()>& next_piece,
                    const fs::path& shown, int flags = O_CREAT | O_TRUNC) {
  Descriptor fd(path, O_WRONLY | flags);
  if (fd.get() < 0) fail("write", shown, errno);
  for (std::string_view piece = next_piece(); !piece.empty(); piece = next_piece()) {
    while (!piece.empty()) {
      const ssize_t n = ::write(fd.get(), piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write", shown, errno);
      piece.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Pipes, sockets and devices have nothing to sync.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) fail("write", shown, errno);
}

// The pieces of bytes that are all there.
std::function<std::string_view()> pieces_of(std::string_view bytes) {
  constexpr size_t kPiece = size_t{16} << 20;
  return [rest = bytes]() mutable {
    const std::string_view piece = rest.substr(0, kPiece);
    rest.remove_prefix(piece.size());
    return piece;
  };
}

std::string temporary_stem(const fs::path& path) {
  return fmt::format(".{}.tmp.", path.filename().string());
}
fs::path temporary_beside(const fs::path& path) {
  return path.parent_path() / fmt::format("{}{}", temporary_stem(path), ::getpid());
}

// The process that a temporary name belongs to, when it is one of `stem`.
std::optional<pid_t> writer_of(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return std::nullopt;
  name.remove_prefix(stem.size());
  pid_t writer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), writer);
  if (error != std::errc() || end != name.data() + name.size() || writer <= 0) return std::nullopt;
  return writer;
}

// What a link stands for, and that in turn, up to an open file (/proc/self/fd/1); it need not be there.
fs::path without_links(fs::path path) {
  constexpr int kMost = 40;  // as the kernel
  std::error_code code;
  for (int i = 0; i < kMost && fs::is_symlink(path, code); ++i) {
    const fs::path folder = fs::weakly_canonical(path.parent_path(), code);  // /dev/fd is a link, too
    if (folder.native().starts_with("/proc/")) return folder / path.filename();
    path = path.parent_path() / fs::read_symlink(path, code);
  }
  return path;
}

// The file whose place is taken when `path` is written; empty when `path` is written to as it is. Throws when
// it is a folder.
fs::path name_to_replace(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::is_directory(status)) fail("write", path, EISDIR);
  const fs::path final_name = without_links(path);
  // A rename would put a file in the place of /dev/null or of a named pipe, or, for /dev/stdout, of what the
  // shell has opened, perhaps to append to it.
  const bool opened = final_name != path && final_name.native().starts_with("/proc/");
  return opened || (fs::exists(status) && !fs::is_regular_file(status)) ? fs::path() : final_name;
}

fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

// Writes pieces to a temporary file and renames it to `path`. A device or a pipe is written to directly.
void replace_file(const fs::path& path, const std::function<std::string_view()>& next_piece) {
  const fs::path final_name = name_to_replace(path);
  if (final_name.empty()) return write_and_sync(path, next_piece, path, O_APPEND);
  remove_leftovers(final_name);
  const fs::path temporary = temporary_beside(final_name);
  try {
    write_and_sync(temporary, next_piece, path);
    if (::rename(temporary.c_str(), final_name.c_str()) != 0) fail("write", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(final_name.parent_path());
}

}  // namespace

void throw_cannot_read(std::string_view name, int code) {
  fail("read", name, code);
}

std::string read_descriptor(int descriptor, std::string_view name) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) fail("read", name, errno);
  if (S_ISDIR(info.st_mode)) fail("read", name, EISDIR);
  std::string bytes;
  if (info.st_size > 0) bytes.reserve(static_cast<size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(descriptor, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", name, errno);
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

std::string read_file(const fs::path& path) {
  Descriptor fd(path, O_RDONLY);
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) fail("read", path, errno);
  const bool device = S_ISBLK(info.st_mode) || S_ISCHR(info.st_mode);
  if (device && !is_null_device(info) && ::isatty(fd.get()) == 0) {
    throw FileError(
        fmt::format("cannot read {}: it is a device, not a regular file; name a file", path.string()));
  }
  return read_descriptor(fd.get(), path.native());
}

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

int open_regular_file(const fs::path& path) {
  // Without O_NONBLOCK the opening of a pipe waits for its writer. Regular files know no such waiting.
  Descriptor fd(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) fail("read", path, errno);
  if (S_ISDIR(info.st_mode)) fail("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw FileError(
        fmt::format("cannot read {}: not a regular file; put the file itself there", path.string()));
  }
  return fd.release();
}

std::string read_regular_file(const fs::path& path) {
  const Descriptor fd(open_regular_file(path));
  return read_descriptor(fd.get(), path.native());
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  replace_file(path, pieces_of(bytes));
}

void write_pieces_atomically(const fs::path& path, const std::function<std::string_view()>& next_piece) {
  replace_file(path, [&] {
    if (stop_asked()) throw Interrupted(fmt::format("stopped; {} was not written", path.string()));
    const StopScope whole(nullptr);  // asked here alone, whose message names the file
    return next_piece();
  });
}

void check_can_write_file(const fs::path& path) {
  const fs::path final_name = name_to_replace(path);
  if (final_name.empty()) return;
  const fs::path probe = temporary_beside(final_name);
  const Descriptor fd(probe, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd.get() < 0) fail("write", path, errno);
  ::unlink(probe.c_str());
}

void remove_leftovers(const fs::path& path) {
  const std::string stem = temporary_stem(path);
  std::error_code code;
  std::vector<fs::path> left;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const auto writer = writer_of(entry->path().filename().native(), stem);
    if (writer && ::kill(*writer, 0) != 0 && errno == ESRCH) left.push_back(entry->path());
  }
  for (const fs::path& name : left) fs::remove_all(name, code);
}

void refuse_foreign_files(const fs::path& folder, const std::function<bool(std::string_view)>& ours) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) {
    throw FileError(fmt::format("cannot write the folder {}: it is a file; name a folder", folder.string()),
                    ENOTDIR);
  }
  fs::directory_iterator files(folder, error);
  if (error)
    throw FileError(fmt::format("cannot read {}: {}", folder.string(), error.message()), error.value());
  for (const auto& file : files) {
    const std::string name = file.path().filename().string();
    if (ours(name)) continue;
    throw FileError(fmt::format("cannot replace {}: it holds {}, which was not saved here; name a new folder",
                                folder.string(), name),
                    EEXIST);
  }
}

void check_can_write_folder(const fs::path& folder) {
  std::error_code code;
  if (fs::exists(folder, code) && !fs::is_directory(folder, code)) fail("write folder", folder, ENOTDIR);
  const FolderWriter probe(folder);
}

FolderWriter::FolderWriter(const fs::path& folder)
    : folder_(without_trailing_slash(folder)), staging_(temporary_beside(folder_)) {
  std::error_code code;
  for (fs::path above = folder_.parent_path(); !above.empty() && !fs::exists(above, code);
       above = above.parent_path()) {
    parents_.insert(parents_.begin(), above);
  }
  if (folder_.has_parent_path()) fs::create_directories(folder_.parent_path(), code);
  if (code) {
    remove_parents();
    fail("create folder", folder_, code.value());
  }
  remove_leftovers(folder_);
  fs::remove_all(staging_, code);
  if (::mkdir(staging_.c_str(), 0755) != 0) {
    const int why = errno;
    remove_parents();
    fail("create folder", folder_, why);
  }
}

FolderWriter::~FolderWriter() {
  if (committed_) return;
  std::error_code code;
  fs::remove_all(staging_, code);
  remove_parents();
}

void FolderWriter::remove_parents() {
  // rmdir leaves one alone into which somebody has put something meanwhile.
  for (auto above = parents_.rbegin(); above != parents_.rend(); ++above) ::rmdir(above->c_str());
}

void FolderWriter::end_if_stopped() const {
  if (stop_asked()) throw Interrupted(fmt::format("stopped; {} was not written", folder_.string()));
}

void FolderWriter::add(std::string_view name, std::string_view bytes) {
  add_pieces(name, pieces_of(bytes));
}

void FolderWriter::add_pieces(std::string_view name, const std::function<std::string_view()>& next_piece) {
  end_if_stopped();
  const fs::path file = staging_ / name;
  std::error_code code;
  if (file.parent_path() != staging_) fs::create_directories(file.parent_path(), code);
  if (code) fail("create folder", (folder_ / name).parent_path(), code.value());
  write_and_sync(
      file,
      [&] {
        end_if_stopped();
        const StopScope whole(nullptr);  // asked here alone, whose message names the folder
        return next_piece();
      },
      folder_ / name);
  if (file.parent_path() != staging_) sync_folder(file.parent_path());
}

void FolderWriter::commit() {
  end_if_stopped();
  sync_folder(staging_);
  if (::rename(staging_.c_str(), folder_.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) fail("write folder", folder_, errno);
    // A folder of that name exists. Swap the two in one step, so that there is always a complete one.
    if (const int failure = exchange_folders(staging_, folder_); failure != 0) {
      fail("replace folder", folder_, failure);
    }
    std::error_code code;
    fs::remove_all(staging_, code);  // now the older contents
  }
  committed_ = true;
  sync_folder(folder_.parent_path());
}

}  // namespace mh
