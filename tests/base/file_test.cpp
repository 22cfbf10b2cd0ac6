#include "multihead/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>

#include "multihead/base/error.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Files : public testing::Test {
 protected:
  static std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
  template <class Body>
  static std::string file_error(Body&& body) {
    try {
      body();
    } catch (const FileError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "no error";
  }

  const test::ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

// While it lives no file may grow beyond `bytes`: a disk that fills up in the middle of a write.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(Files, ReadsWhatWasWritten) {
  std::string bytes("a\0b\n\xff", 5);
  write_file_atomically(folder_ / "x", bytes);
  EXPECT_EQ(read_file(folder_ / "x"), bytes);
  for (int i = 0; i < 18; ++i) bytes += bytes;  // beyond any buffer
  write_file_atomically(folder_ / "x", bytes);
  EXPECT_EQ(read_file(folder_ / "x"), bytes);
  write_file_atomically(folder_ / "x", "");
  EXPECT_EQ(read_file(folder_ / "x"), "");
  EXPECT_THAT(names_in(folder_), ElementsAre("x"));
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // a file whose size says 0
}

TEST_F(Files, WritesBesideTheProgramToo) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("plain", "1");
  {
    FolderWriter writer("model/");
    writer.add("a", "1");
    writer.commit();
  }
  fs::current_path(before);
  EXPECT_THAT(names_in(folder_), ElementsAre("model", "plain"));
}

TEST_F(Files, NamesWhatCannotBeRead) {
  const auto path = (folder_ / "none").string();
  EXPECT_EQ(file_error([&] { read_file(path); }),
            "cannot read " + path + ": No such file or directory; is the name right?");
  EXPECT_THAT(file_error([&] { read_file(folder_); }), HasSubstr("Is a directory"));
}

TEST_F(Files, UnwritablePlaces) {
  EXPECT_THAT(file_error([&] { write_file_atomically(folder_ / "no" / "x", "1"); }),
              HasSubstr("no/x: No such file"));
  write_file_atomically(folder_ / "file", "1");
  EXPECT_THAT(file_error([&] { write_file_atomically(folder_ / "file" / "x", "1"); }),
              HasSubstr("Not a directory"));
  EXPECT_THAT(file_error([&] { write_file_atomically(folder_, "1"); }), HasSubstr(folder_.string()));
  EXPECT_THAT(file_error([&] { FolderWriter(folder_ / "file" / "model"); }), HasSubstr("Not a directory"));
  EXPECT_THAT(file_error([] { FolderWriter("/proc/model"); }), HasSubstr("/proc/model"));
  EXPECT_THAT(names_in(folder_), ElementsAre("file"));
  EXPECT_EQ(read_file(folder_ / "file"), "1");
}

TEST_F(Files, AFolderWithoutPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere; run as another user";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const std::string message = file_error([&] { write_file_atomically(folder_ / "x", "1"); });
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_THAT(message, HasSubstr("choose a place this user may use"));
  EXPECT_THAT(names_in(folder_), IsEmpty());
}

TEST_F(Files, AFailedWriteLeavesTheOldContents) {
  write_file_atomically(folder_ / "x", "old");
  std::string message;
  {
    FullDisk full(100'000);
    message = file_error([&] { write_file_atomically(folder_ / "x", std::string(300'000, 'n')); });
  }
  EXPECT_THAT(message, HasSubstr("cannot write " + (folder_ / "x").string()));
  EXPECT_EQ(read_file(folder_ / "x"), "old");
  EXPECT_THAT(names_in(folder_), ElementsAre("x"));
}

TEST_F(Files, ADiskThatIsReallyFull) {
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "cannot mount a small file system here: " << std::strerror(errno);
  }
  write_file_atomically(folder_ / "x", "old");
  const std::string message =
      file_error([&] { write_file_atomically(folder_ / "x", std::string(200'000, 'n')); });
  const std::string kept = read_file(folder_ / "x");
  const std::string folder_message = file_error([&] {
    FolderWriter writer(folder_ / "model");
    writer.add("weights", std::string(200'000, 'n'));
    writer.commit();
  });
  const auto left = names_in(folder_);
  ::umount(folder_.c_str());
  EXPECT_THAT(message, HasSubstr("free some space"));
  EXPECT_EQ(kept, "old");
  EXPECT_THAT(folder_message, HasSubstr("model/weights"));
  EXPECT_THAT(left, ElementsAre("x"));
}

TEST_F(Files, AFolderAppearsAsAWhole) {
  const fs::path model = folder_ / "deep" / "er" / "model";
  FolderWriter writer(model);
  writer.add("config.json", "{}");
  writer.add("weights", "123");
  EXPECT_FALSE(fs::exists(model));
  EXPECT_EQ(read_file(writer.staging() / "weights"), "123");
  writer.commit();
  EXPECT_THAT(names_in(model), ElementsAre("config.json", "weights"));
  EXPECT_THAT(names_in(model.parent_path()), ElementsAre("model"));
}

TEST_F(Files, AFolderReplacesAnOlderOne) {
  const fs::path model = folder_ / "model";
  for (const std::string round : {"1", "2", "3"}) {
    FolderWriter writer(model);
    writer.add("only_in_" + round, round);
    writer.add("same", round);
    writer.commit();
    EXPECT_EQ(read_file(model / "same"), round);
    EXPECT_THAT(names_in(model), ElementsAre("only_in_" + round, "same"));
    EXPECT_THAT(names_in(folder_), ElementsAre("model"));
  }
  fs::create_directories(folder_ / "empty");
  FolderWriter writer(folder_ / "empty");
  writer.add("a", "1");
  writer.commit();
  EXPECT_THAT(names_in(folder_ / "empty"), ElementsAre("a"));
}

TEST_F(Files, AnUnfinishedFolderLeavesNothing) {
  const fs::path model = folder_ / "model";
  { FolderWriter(model).add("a", "1"); }
  EXPECT_THAT(names_in(folder_), IsEmpty());
  {
    FolderWriter writer(model);
    writer.add("a", "old");
    writer.commit();
  }
  std::string message;
  {
    FolderWriter writer(model);
    writer.add("a", "new");
    FullDisk full(1'000);
    message = file_error([&] { writer.add("b", std::string(5'000, 'b')); });
  }
  EXPECT_THAT(message, HasSubstr("model/b"));
  EXPECT_EQ(read_file(model / "a"), "old");
  EXPECT_THAT(names_in(folder_), ElementsAre("model"));
}

TEST_F(Files, AFolderDoesNotReplaceAFile) {
  write_file_atomically(folder_ / "model", "a file");
  EXPECT_THAT(file_error([&] {
                FolderWriter writer(folder_ / "model");
                writer.add("a", "1");
                writer.commit();
              }),
              HasSubstr("Not a directory"));
  EXPECT_EQ(read_file(folder_ / "model"), "a file");
  EXPECT_THAT(names_in(folder_), ElementsAre("model"));
}

TEST_F(Files, AKilledWriterIsTidiedUpAfterAndALivingOneIsNot) {
  const pid_t gone = ::fork();
  ASSERT_GE(gone, 0);
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const std::string dead = std::to_string(gone), alive = std::to_string(::getppid());
  const auto put = [&](const std::string& name) { std::ofstream(folder_ / name) << "half"; };
  put(".out.tmp." + dead);
  put(".out.tmp." + alive);
  put(".other.tmp." + dead);  // another's business
  put(".out.tmp.notes");
  put(".out.tmp.");
  fs::create_directories(folder_ / (".model.tmp." + dead) / "deep");
  write_file_atomically(folder_ / "out", "whole");
  {
    FolderWriter writer(folder_ / "model");
    writer.add("a", "1");
    writer.commit();
  }
  EXPECT_THAT(names_in(folder_),
              testing::UnorderedElementsAre(".out.tmp." + alive, ".other.tmp." + dead, ".out.tmp.notes",
                                            ".out.tmp.", "model", "out"));
}

TEST_F(Files, WhatIsNoFileIsWrittenToAndStays) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "through");
  EXPECT_EQ(read_descriptor(reader, "the pipe"), "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));

  const fs::path null = folder_ / "null", full = folder_ / "full";
  if (!test::make_device(null, test::Device::kNull) || !test::make_device(full, test::Device::kFull)) {
    GTEST_SKIP() << "cannot make devices here";
  }
  write_file_atomically(null, "nothing");
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_THAT(file_error([&] { write_file_atomically(full, "x"); }),
              HasSubstr("cannot write " + full.string() + ": No space left"));
  EXPECT_TRUE(fs::is_character_file(full));
}

TEST_F(Files, ALinkStaysALink) {
  fs::create_directories(folder_ / "elsewhere");
  write_file_atomically(folder_ / "elsewhere" / "real", "old");
  fs::create_symlink("elsewhere/real", folder_ / "link");
  fs::create_symlink("elsewhere/to_come", folder_ / "dangling");
  write_file_atomically(folder_ / "link", "new");
  write_file_atomically(folder_ / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(read_file(folder_ / "elsewhere" / "real"), "new");
  EXPECT_EQ(read_file(folder_ / "elsewhere" / "to_come"), "made");
  EXPECT_THAT(names_in(folder_ / "elsewhere"), ElementsAre("real", "to_come"));
}

TEST_F(Files, ADescriptorThatIsNotOpenIsAnError) {
  EXPECT_EQ(file_error([] { read_descriptor(-1, "standard input"); }),
            "cannot read standard input: Bad file descriptor");
}

// A pipe that nobody writes into would be waited for without an end, and a device may have none.
TEST_F(Files, PipesAndDevicesAreNoRegularFiles) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero"), fs::path("/dev/null")}) {
    EXPECT_THAT(file_error([&] { read_regular_file(path); }),
                HasSubstr("cannot read " + path.string() + ": not a regular file"));
  }
  EXPECT_THAT(file_error([&] { read_regular_file(folder_); }), HasSubstr("Is a directory"));
  EXPECT_THAT(file_error([&] { read_regular_file(folder_ / "none"); }), HasSubstr("is the name right?"));
  write_file_atomically(folder_ / "file", "1");
  fs::create_symlink("file", folder_ / "link");
  EXPECT_EQ(read_regular_file(folder_ / "link"), "1");

  EXPECT_THAT(file_error([] { read_file("/dev/zero"); }), HasSubstr("a device, not a regular file"));
  EXPECT_EQ(read_file("/dev/null"), "");
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    std::ofstream(pipe) << "through";
    ::_exit(0);
  }
  EXPECT_EQ(read_file(pipe), "through");
  ::waitpid(writer, nullptr, 0);
}

TEST_F(Files, PlacesToWriteAreCheckedBeforeAndNothingIsLeft) {
  write_file_atomically(folder_ / "file", "1");
  const auto before = names_in(folder_);
  EXPECT_NO_THROW(check_can_write_folder(folder_ / "new"));
  EXPECT_NO_THROW(check_can_write_folder(folder_ / "deep" / "er" / "new/"));
  EXPECT_THAT(file_error([&] { check_can_write_folder(folder_ / "file"); }), HasSubstr("Not a directory"));
  EXPECT_THAT(file_error([&] { check_can_write_folder(folder_ / "file" / "new"); }),
              HasSubstr("Not a directory"));
  EXPECT_THAT(file_error([] { check_can_write_folder("/proc/new"); }), HasSubstr("/proc/new"));
  EXPECT_THAT(file_error([] { check_can_write_folder("/proc/deep/new"); }), HasSubstr("/proc/deep"));

  EXPECT_NO_THROW(check_can_write_file(folder_ / "new"));
  EXPECT_NO_THROW(check_can_write_file(folder_ / "file"));
  EXPECT_NO_THROW(check_can_write_file("/dev/null"));
  EXPECT_THAT(file_error([&] { check_can_write_file(folder_ / "none" / "new"); }),
              HasSubstr("make the folder first"));
  EXPECT_THAT(file_error([&] { check_can_write_file(folder_); }), HasSubstr("Is a directory"));
  EXPECT_EQ(names_in(folder_), before);
  EXPECT_EQ(read_file(folder_ / "file"), "1");
}

// The folders above a new one are made with it, and go with it.
TEST_F(Files, AnUnfinishedFolderTakesTheFoldersAboveWithIt) {
  { FolderWriter(folder_ / "deep" / "er" / "model").add("a", "1"); }
  EXPECT_THAT(names_in(folder_), IsEmpty());
  {
    FolderWriter writer(folder_ / "deep" / "er" / "model");
    write_file_atomically(folder_ / "deep" / "somebody's", "1");
  }
  EXPECT_THAT(names_in(folder_ / "deep"), ElementsAre("somebody's"));
}

}  // namespace
}  // namespace mh
