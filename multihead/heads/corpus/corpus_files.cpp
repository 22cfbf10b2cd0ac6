#include "multihead/heads/corpus/corpus_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/data/conllu.h"

namespace mh {
namespace {

/// How many there are still.
template <class Side>
size_t rest_of(Side& side) {
  size_t count = 0;
  while (const size_t more = side.next(kCorpusLines).size()) count += more;
  return count;
}

std::string counted(size_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::vector<std::string> texts_of(const std::vector<std::vector<Word>>& trees) {
  std::vector<std::string> lines;
  for (const auto& tree : trees) lines.push_back(text_of(tree));
  return lines;
}

}  // namespace

struct FilesCorpus::Readers {
  /// Lines of a file, or of memory, exactly as many at once as are asked for.
  class Lines {
   public:
    explicit Lines(const std::string& path, const TextLimits& limits)
        : path_(path), file_(std::in_place, path, limits) {}
    explicit Lines(std::vector<std::string> lines) : waiting_(std::move(lines)) {}

    std::vector<std::string> next(size_t most) {
      while (file_ && !file_->ended() && waiting_.size() - taken_ < most) {
        waiting_.erase(waiting_.begin(),
                       waiting_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, 0)));
        std::vector<std::string> more = file_->next({.max_lines = most});
        waiting_.insert(waiting_.end(), std::make_move_iterator(more.begin()),
                        std::make_move_iterator(more.end()));
      }
      const size_t last = std::min(taken_ + most, waiting_.size());
      std::vector<std::string> lines(waiting_.begin() + static_cast<std::ptrdiff_t>(taken_),
                                     waiting_.begin() + static_cast<std::ptrdiff_t>(last));
      taken_ = last;
      return lines;
    }
    const std::string& path() const { return path_; }

   private:
    std::string path_;
    std::optional<LineReader> file_ = std::nullopt;
    std::vector<std::string> waiting_ = {};
    size_t taken_ = 0;  // of these
  };

  class Trees {
   public:
    explicit Trees(const std::string& path) : path_(path), file_(path) {}

    std::vector<std::vector<Word>> next(size_t most) {
      std::vector<std::vector<Word>> trees;
      for (const ConlluSentence& sentence : file_.next(most)) {
        trees.push_back(sentence.tree());
        left_out_ += std::ssize(sentence.extras);
      }
      return trees;
    }
    const std::string& path() const { return path_; }
    /// Lines of multi-word tokens and empty nodes since the last call.
    int64_t take_left_out() { return std::exchange(left_out_, 0); }

   private:
    std::string path_;
    ConlluFileReader file_;
    int64_t left_out_ = 0;
  };

  std::optional<Lines> sources, targets, pairs, alignments;
  std::optional<Trees> source_trees, target_trees;
  size_t done = 0;  // source lines

  explicit Readers(const CorpusFiles& files) {
    const auto open = [&](std::optional<Lines>& lines, const std::string& path) {
      if (!path.empty()) lines.emplace(path, files.limits);
    };
    if (files.lines) {
      sources.emplace(*files.lines);
    } else {
      open(sources, files.input);
    }
    open(targets, files.target);
    open(pairs, files.pairs);
    open(alignments, files.alignment);
    if (!files.conllu.empty()) source_trees.emplace(files.conllu);
    if (!files.target_conllu.empty()) target_trees.emplace(files.target_conllu);
  }
};

FilesCorpus::FilesCorpus(CorpusFiles files) : files_(std::move(files)) {
  if (files_.input.empty() && !files_.lines && files_.conllu.empty())
    throw UsageError("a corpus needs its lines, or trees whose words are the lines");
  restart();
}
FilesCorpus::~FilesCorpus() = default;

void FilesCorpus::restart() {
  readers_ = std::make_unique<Readers>(files_);
}

std::string FilesCorpus::name() const {
  if (files_.lines) return files_.name;
  return files_.input.empty() ? files_.conllu : files_.input;
}

HeadsText FilesCorpus::next() {
  Readers& from = *readers_;
  HeadsText text{.sources = {}, .alignments_name = files_.alignment.empty() ? "alignment" : files_.alignment};
  if (from.source_trees) text.source_trees = from.source_trees->next(kCorpusLines);
  text.sources = from.sources ? from.sources->next(kCorpusLines) : texts_of(text.source_trees);
  const size_t lines = text.sources.size();

  // Of what belongs to the source lines: one for each.
  const auto check = [&](auto& side, size_t found, const char* one) {
    const bool last = lines < kCorpusLines;
    if (found == lines && !last) return;
    const size_t more = rest_of(side);
    if (found == lines && more == 0) return;
    const size_t all_lines = from.done + lines + (from.sources ? rest_of(*from.sources) : 0);
    throw FormatError(fmt::format("{} has {}, but {} has {}; there must be one for each", side.path(),
                                  counted(from.done + found + more, one), name(),
                                  counted(all_lines, "line")));
  };
  if (from.source_trees && from.sources) check(*from.source_trees, text.source_trees.size(), "sentence");
  if (from.target_trees) {
    text.target_trees = from.target_trees->next(std::max<size_t>(lines, 1));
    check(*from.target_trees, text.target_trees.size(), "sentence");
    if (!from.targets) text.targets = texts_of(text.target_trees);
  }
  const auto read = [&](std::optional<Readers::Lines>& side, std::vector<std::string>& to) {
    if (!side) return;
    to = side->next(std::max<size_t>(lines, 1));
    check(*side, to.size(), "line");
  };
  read(from.targets, text.targets);
  read(from.pairs, text.pairs);
  std::vector<std::string> alignments;
  read(from.alignments, alignments);
  for (const std::string& line : alignments)
    text.alignments.push_back(parse_pharaoh(line, files_.alignment, from.done + text.alignments.size() + 1));
  for (auto* trees : {&from.source_trees, &from.target_trees}) {
    if (*trees) text.lines_left_out += (*trees)->take_left_out();
  }
  from.done += lines;
  return text;
}

}  // namespace mh
