// Files: whole reads, and writes that are either complete or not there at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace mh {

/// The bytes of a file. Throws FileError ("cannot read FILE: No such file or directory; is the name right?").
std::string read_file(const std::filesystem::path& path);
/// Throws that FileError for a reader of another kind; `code` is its errno.
[[noreturn]] void throw_cannot_read(std::string_view name, int code);
/// What there is still to read from an open descriptor, e.g. 0, standard input; `name` is what errors call
/// it.
std::string read_descriptor(int descriptor, std::string_view name);

/// Writes under a temporary name beside `path`, syncs, renames: after a kill the old contents or the new are
/// there. Throws FileError (a full disk, an unwritable folder); then `path` is as it was and nothing is left
/// beside it. A link stays one: the file it names is replaced. What is no file (a device, a pipe) is written
/// to as it is.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Removes what a process that was killed while it wrote `path` left beside it under its temporary name,
/// .NAME.tmp.PID. Both writers here begin with it. A process that lives keeps what it is writing.
void remove_leftovers(const std::filesystem::path& path);

/// Throws FileError when `folder` is a file, or holds a file that `ours` does not know by its name: who
/// replaces a folder as a whole must not cost anybody anything else.
void refuse_foreign_files(const std::filesystem::path& folder,
                          const std::function<bool(std::string_view name)>& ours);

/// A folder that appears as a whole: files are added under a temporary name, and commit() syncs them, renames
/// the folder to its final name (replacing an older folder of that name) and syncs its parent. Without
/// commit() the destructor removes what was written.
class FolderWriter {
 public:
  explicit FolderWriter(const std::filesystem::path& folder);
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  /// Where files are written until commit().
  const std::filesystem::path& staging() const { return staging_; }
  /// Writes and syncs one file. Throws FileError.
  void add(std::string_view name, std::string_view bytes);
  void commit();

 private:
  std::filesystem::path folder_;
  std::filesystem::path staging_;
  bool committed_ = false;
};

}  // namespace mh
