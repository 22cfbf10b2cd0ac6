// The speed of sentence vectors beside a peer (benchmarks/peers/embed.py): embed_speed MODEL, and then
//
//   peak                    -> GFLOP/s in a loop of multiply-adds on every thread at once
//   lines FILE              the sentences, one a line -> how many tokens they have
//   precision NAME          -> 0; products are of this precision from now on (docs/precision.md)
//   all                     -> seconds for all of them
//   alone COUNT             -> median seconds of a sentence by itself, over the first COUNT
//   write FILE              writes the vectors: float32, row by row -> 0
//   memory                  -> MiB this process held at most
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "benchmarks/peak.h"
#include "benchmarks/precision_command.h"
#include "multihead/base/file.h"
#include "multihead/embed.h"
#include "multihead/io/lines.h"

namespace {

class Speed {
 public:
  explicit Speed(const char* model) : model_(mh::load_sentence_model(model)) {}

  double answer(const std::string& what, std::istringstream& rest) {
    std::string file;
    int count = 0;
    if (what == "peak") return mh::peak_gflops();
    if (what == "memory") return mh::peak_mebibytes();
    if (what == "precision") return mh::use_precision_named(*model_.folder.model, rest);
    if (what == "lines" && rest >> file) return read(file);
    if (what == "all") {
      const mh::Stopwatch watch;
      rows_ = mh::embed_text(model_, lines_);
      return watch.seconds();
    }
    if (what == "alone" && rest >> count) return alone(static_cast<size_t>(count));
    if (what == "write" && rest >> file) {
      mh::write_file_atomically(file, {reinterpret_cast<const char*>(rows_.data()),
                                       static_cast<size_t>(rows_.size()) * sizeof(float)});
      return 0;
    }
    throw mh::UsageError("unknown command: " + what);
  }

 private:
  double read(const std::string& file) {
    lines_ = mh::read_lines(file);
    int64_t tokens = 0;
    for (const std::string& line : lines_)
      tokens += std::min<int64_t>(model_.longest, std::ssize(model_.folder.source_tokens().encode_ids(line)));
    return static_cast<double>(tokens);
  }
  double alone(size_t count) {
    std::vector<double> seconds;
    for (size_t i = 0; i < std::min(count, lines_.size()); ++i) {
      const std::vector<std::string> one = {lines_[i]};
      const mh::Stopwatch watch;
      mh::embed_text(model_, one);
      seconds.push_back(watch.seconds());
    }
    return mh::median(std::move(seconds));
  }

  mh::SentenceModel model_;
  std::vector<std::string> lines_;
  mh::Tensor rows_;
};

int run(int argc, char** argv) {
  if (argc != 2) throw mh::UsageError("usage: embed_speed MODEL");
  Speed speed(argv[1]);
  return mh::answer_commands(
      [&](const std::string& what, std::istringstream& rest) { return speed.answer(what, rest); });
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("embed_speed", run, argc, argv);
}
