// A process that holds a lock, as a training does that is just ending.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>

namespace mh::test {

class HoldingProcess {
 public:
  /// Returns when the lock is held; it is let go after this time, by the process's end.
  HoldingProcess(const std::filesystem::path& file, std::chrono::seconds time) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("cannot make a pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) {
      const int fd = ::open(file.c_str(), O_RDWR | O_CREAT, 0644);
      const bool held = fd >= 0 && ::flock(fd, LOCK_EX) == 0;
      if (::write(ready[1], held ? "y" : "n", 1) != 1) ::_exit(1);
      ::sleep(static_cast<unsigned>(time.count()));
      ::_exit(0);
    }
    ::close(ready[1]);
    char held = 'n';
    const bool told = ::read(ready[0], &held, 1) == 1;
    ::close(ready[0]);
    if (!told || held != 'y') throw std::runtime_error("cannot hold the lock");
  }
  ~HoldingProcess() { ::waitpid(pid_, nullptr, 0); }
  HoldingProcess(const HoldingProcess&) = delete;
  HoldingProcess& operator=(const HoldingProcess&) = delete;

 private:
  pid_t pid_ = -1;
};

}  // namespace mh::test
