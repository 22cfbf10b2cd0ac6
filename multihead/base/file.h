// Reads whole files, and writes files so that a reader never finds half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// Returns the bytes of a file, or everything that a pipe gives until it ends. Throws FileError ("cannot
/// read FILE: No such file or directory; is the name right?"), also for a device, which may never end,
/// unless it is a terminal or /dev/null.
std::string read_file(const std::filesystem::path& path);
/// The same for the files of a model or checkpoint folder: refuses pipes and devices at once, since waiting
/// for a pipe would look as if the program hung.
std::string read_regular_file(const std::filesystem::path& path);
/// Whether anything has this name; false also where that cannot be found out.
bool is_there(const std::filesystem::path& path);
/// Opens a regular file and returns its descriptor, which the caller closes. Never waits. Throws FileError
/// as above.
int open_regular_file(const std::filesystem::path& path);
/// Throws the same FileError for code that reads a file in its own way; `code` is the errno.
[[noreturn]] void throw_cannot_read(std::string_view name, int code);
/// Reads an open descriptor to its end, e.g. 0 for standard input. Errors call it `name`.
std::string read_descriptor(int descriptor, std::string_view name);

/// Replaces a file in one step: writes under a temporary name beside `path`, syncs, renames. After a kill
/// the file has either its old contents or the new ones. Throws FileError (a full disk, an unwritable
/// folder); then `path` is unchanged and nothing is left beside it. A symbolic link stays, and the file
/// that it points to is replaced. A device or a pipe is written to directly.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
/// The same of a file that need not be in memory: pieces are asked for until an empty one comes. Throws also Interrupted when the
/// caller's StopScope (stop.h), which is asked before each piece, says so.
void write_pieces_atomically(const std::filesystem::path& path,
                             const std::function<std::string_view()>& next_piece);

/// Removes the temporary files .NAME.tmp.PID that killed processes left beside `path`. Both writers in this
/// file call it first. Files of processes that still run are kept.
void remove_leftovers(const std::filesystem::path& path);

/// Throws FileError when `folder` is a file, or holds a file for whose name `ours` returns false. Called
/// before a folder is replaced as a whole, so that nobody's own files are lost.
void refuse_foreign_files(const std::filesystem::path& folder,
                          const std::function<bool(std::string_view name)>& ours);

/// Throws FileError when a FolderWriter could not write `folder`; called before long work, whose result would be lost.
/// Nothing is left behind.
void check_can_write_folder(const std::filesystem::path& folder);
/// Throws FileError when write_file_atomically() could not write `path`. Its folder must exist. Nothing is
/// left behind, and what is no file (a device, a pipe) is not touched.
void check_can_write_file(const std::filesystem::path& path);

/// A folder that appears as a whole: files are added under a temporary name, and commit() syncs them, renames
/// the folder to its final name (replacing an older folder of that name) and syncs its parent. Folders above it
/// that are missing are made. Without commit() the destructor removes what was made.
class FolderWriter {
 public:
  explicit FolderWriter(const std::filesystem::path& folder);
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  /// Where files are written until commit().
  const std::filesystem::path& staging() const { return staging_; }
  /// Writes and syncs one file; a name such as "1_Pooling/config.json" makes the folder. Throws FileError, and Interrupted when
  /// the caller's StopScope (stop.h), which is asked before each piece, says so.
  void add(std::string_view name, std::string_view bytes);
  /// The same of a file that need not be in memory: pieces are asked for until an empty one comes.
  void add_pieces(std::string_view name, const std::function<std::string_view()>& next_piece);
  void commit();

 private:
  void end_if_stopped() const;
  void remove_parents();

  std::filesystem::path folder_;
  std::filesystem::path staging_;
  std::vector<std::filesystem::path> parents_;  // that were made for it, the uppermost first
  bool committed_ = false;
};

}  // namespace mh
