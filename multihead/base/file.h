// Reads whole files, and writes files so that a reader never finds half of one.
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
/// Reads an open descriptor to its end, e.g. 0 for standard input. Errors call it `name`.
std::string read_descriptor(int descriptor, std::string_view name);

/// Replaces a file in one step: writes under a temporary name beside `path`, syncs, renames. After a kill
/// the file has either its old contents or the new ones. Throws FileError (a full disk, an unwritable
/// folder); then `path` is unchanged and nothing is left beside it. A symbolic link stays, and the file
/// that it points to is replaced. A device or a pipe is written to directly.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Removes the temporary files .NAME.tmp.PID that killed processes left beside `path`. Both writers in this
/// file call it first. Files of processes that still run are kept.
void remove_leftovers(const std::filesystem::path& path);

/// Throws FileError when `folder` is a file, or holds a file for whose name `ours` returns false. Called
/// before a folder is replaced as a whole, so that nobody's own files are lost.
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
