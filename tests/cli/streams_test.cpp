// Nothing is lost when standard streams are closed, full or end early, or when a place cannot be written.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/small_folder.h"
#include "tests/support/device.h"

namespace mh {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Streams : public SmallFolder {
 protected:
  std::string verb(const std::string& name) const {
    return "\"$MULTIHEAD\" " + name + " --model '" + folder + "' ";
  }
  const std::string input = "'" + scratch.write("source", "a cat\nthe dog\n") + "'";
};

TEST_F(Streams, AFullOrClosedOutputIsAnError) {
  const std::string info = "\"$MULTIHEAD\" info '" + folder + "'";
  const std::string score = verb("score") + "--source " + input + " --target " + input;
  for (const std::string& command :
       {verb("translate") + "--max-length 3", verb("tokenize"), score, info,
        "\"$MULTIHEAD\" heads '" + folder + "'", std::string("\"$MULTIHEAD\" --help"),
        std::string("\"$MULTIHEAD\" train --dump-config"), std::string("\"$MULTIHEAD\" --version")}) {
    for (const char* where : {" >/dev/full", " >&-"}) {
      expect_error(run_shell(command + where, "a cat\n"), 1, "cannot write to standard output");
    }
  }
}

TEST_F(Streams, WithoutStandardErrorTheWorkGoesOn) {
  const std::string command = verb("translate") + "--max-length 3 --token-ids";
  std::string ids;
  for (int i = 0; i < 30; ++i) ids += "7 ";  // too long: there is something to say
  const ToolResult said = run_shell(command, ids);
  EXPECT_THAT(said.err, HasSubstr("cut to"));
  for (const char* where : {" 2>/dev/full", " 2>&-"}) {
    const ToolResult result = run_shell(command + where, ids);
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.out, said.out);
  }
}

TEST_F(Streams, AClosedInputIsNoEmptyOne) {
  expect_error(run_shell(verb("translate") + "<&-"), 1, "cannot read standard input: Bad file descriptor");
  expect_error(run_shell(verb("tokenize") + "</"), 1, "cannot read standard input: Is a directory");
  EXPECT_EQ(run_shell(verb("translate")).status, 0);
}

TEST_F(Streams, AReaderThatHasSeenEnoughIsNoError) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "the small dog sees a cat\n";
  const ToolResult result = run_shell(verb("tokenize") + "| head -n 1", many);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(Streams, WhatTheShellHasOpenedIsAppendedTo) {
  const std::string log = scratch.write("log", "before\n"), link = scratch / "link";
  std::filesystem::create_symlink("/dev/stdout", link);
  const std::string pieces = run_shell(verb("tokenize"), "a cat\n").out;
  for (const std::string& name : {std::string("/dev/stdout"), std::string("/dev/fd/1"), link}) {
    EXPECT_EQ(run_shell(verb("tokenize") + "-o " + name + " | cat", "a cat\n").out, pieces);
    EXPECT_EQ(run_shell(verb("tokenize") + "-o " + name + " >>'" + log + "'", "a cat\n").status, 0);
  }
  EXPECT_EQ(scratch.read("log"), "before\n" + pieces + pieces + pieces);
}

TEST_F(Streams, DevicesAreWrittenToAndNotReplaced) {
  const std::string full = scratch / "full";
  if (!test::make_device(full, test::Device::kFull)) GTEST_SKIP() << "cannot make devices here";
  expect_error(run_shell(verb("tokenize") + "-o '" + full + "'", "a cat\n"), 1, "cannot write " + full);
  EXPECT_TRUE(std::filesystem::is_character_file(full));
}

TEST_F(Streams, AnotherUserGetsOneLineAndLosesNothing) {
  if (run_shell("setpriv --reuid 65534 --regid 65534 --clear-groups true").status != 0) {
    GTEST_SKIP() << "cannot become another user here";
  }
  namespace fs = std::filesystem;
  fs::permissions(scratch.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const std::string nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
  if (run_shell(nobody + "test -x \"$MULTIHEAD\"").status != 0) GTEST_SKIP() << "others may not run the tool";
  const std::string old = scratch.write("old", "kept\n");
  expect_error(run_shell(nobody + verb("tokenize") + "-o '" + old + "'", "a\n"), 1,
               "old: Permission denied; choose a place this user may use");
  EXPECT_EQ(scratch.read("old"), "kept\n");
  fs::permissions(old, fs::perms::owner_read);
  expect_error(run_shell(nobody + verb("tokenize") + "-i '" + old + "'"), 1,
               "old: Permission denied; let this user read it");
  expect_error(
      run_shell(nobody + "\"$MULTIHEAD\" data grammar --train 2 --out '" + (scratch / "corpus") + "'"), 1,
      "corpus: Permission denied");
  const std::string train = nobody + "\"$MULTIHEAD\" train --train-source " + input + " --train-target " +
                            input + " --updates 1 --model '";
  expect_error(run_shell(train + (scratch / "made") + "'"), 1,
               "made/checkpoints: Permission denied; choose a --model");
  fs::permissions(folder, fs::perms::owner_all);  // others may not even look
  expect_error(run_shell(nobody + verb("translate")), 1,
               "config.json: Permission denied; let this user read it");
  EXPECT_THAT(run_shell(train + folder + "'").status, AnyOf(1, 2));
}

}  // namespace
}  // namespace mh
