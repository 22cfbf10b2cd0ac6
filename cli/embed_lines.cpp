#include "cli/embed_lines.h"

#include <utility>

#include "cli/common.h"

namespace mh::cli {
namespace {

/// Lines of a block: their vectors are what is kept in memory when the output is not one file.
constexpr size_t kLinesAtOnce = 20'000;

}  // namespace

EmbedInput::EmbedInput(const std::string& path, const std::string& pairs)
    : reader_(text_reader(path, "Ctrl-D on an empty line ends the text")),
      pairs_file_(pairs),
      from_{.name = name_of(path)} {
  if (!pairs.empty()) pairs_ = read_text(pairs);
}

std::optional<EmbedBlock> EmbedInput::next() {
  if (reader_->ended()) return std::nullopt;
  EmbedBlock block{
      .lines = reader_->next({.max_lines = kLinesAtOnce}), .from = from_, .last = reader_->ended()};
  const size_t before = from_.first - 1, now = before + block.lines.size();
  if (!pairs_file_.empty()) {
    check_line_for_each(pairs_file_, pairs_.size(), {.name = from_.name, .count = now, .all = block.last});
    block.pairs.assign(pairs_.begin() + static_cast<std::ptrdiff_t>(before),
                       pairs_.begin() + static_cast<std::ptrdiff_t>(now));
  }
  from_.first += block.lines.size();
  if (block.lines.empty()) return std::nullopt;
  return block;
}

Embedder::Embedder(const SentenceModel& model, EmbedTextOptions options, const std::string& what_is_done)
    : model_(model), options_(std::move(options)), progress_(what_is_done, "sentences") {}

Tensor Embedder::vectors(const EmbedBlock& block) {
  options_.from = block.from;
  options_.pairs = block.pairs;
  if (block.last) progress_.expect(done_ + std::ssize(block.lines));
  options_.progress = [&](int64_t done) { progress_.show(done_ + done); };
  Tensor rows = embed_text(model_, block.lines, options_);
  done_ += std::ssize(block.lines);
  if (block.last) done_ = 0;
  progress_.clear();
  return rows;
}

}  // namespace mh::cli
