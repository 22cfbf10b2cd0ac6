#include "multihead/train/metrics_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The part of a line that says where it belongs.
struct LineHead {
  int64_t update = 0;
  template <class V>
  void visit(V& v) {
    v("update", update, {.low = 0, .required = true});
  }
};

bool belongs(std::string_view line, int64_t update) {
  try {
    LineHead head;
    from_json(head, line, "metrics.jsonl", UnknownKeys::kIgnore);
    return head.update <= update;
  } catch (const FormatError&) {
    return false;  // cut short by a kill
  }
}

void drop_lines_after(const fs::path& path, int64_t update) {
  if (!fs::exists(path)) return;
  const std::string before = read_regular_file(path);
  std::string after;
  for (size_t begin = 0; begin < before.size();) {
    const size_t end = before.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(before).substr(begin, end - begin);
    if (belongs(line, update)) after.append(line).push_back('\n');
    begin = end + 1;
  }
  if (after != before) write_file_atomically(path, after);
}

struct ValidationLine {
  std::string kind;
  Validation validation;
  template <class V>
  void visit(V& v) {
    v("kind", kind);
    validation.visit(v);
  }
};

std::FILE* open_to_append(const fs::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) {
    throw FileError(fmt::format("cannot write {}: {}; choose a `model` folder this user may write",
                                path.string(), std::strerror(errno)));
  }
  return file;
}

}  // namespace

MetricsLog::MetricsLog(const fs::path& folder, int64_t update) : lines_path_(folder / "metrics.jsonl") {
  remove_leftovers(lines_path_);
  drop_lines_after(lines_path_, update);
  lines_.reset(open_to_append(lines_path_));
  const double now = wall_time();
  events_path_ =
      folder / fmt::format("events.out.tfevents.{:010}.multihead.{}", static_cast<int64_t>(now), ::getpid());
  events_.reset(open_to_append(events_path_));
  write(events_, tf_record(version_event(now)) + tf_record(restart_event(now, update + 1)), events_path_);
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::write(const File& file, std::string_view bytes, const fs::path& path) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fflush(file.get()) != 0) {
    throw FileError(
        fmt::format("cannot write {}: {}; free some space and run the same command again: it goes on "
                    "from the last checkpoint",
                    path.string(), std::strerror(errno)));
  }
}

void MetricsLog::scalars(int64_t update, std::span<const Scalar> values) {
  write(events_, tf_record(scalars_event(wall_time(), update, values)), events_path_);
}

void MetricsLog::add(const TrainingLine& line) {
  write(lines_, to_json_line(line) + "\n", lines_path_);
  std::vector<Scalar> values = {
      {"train/loss", static_cast<float>(line.loss)},
      {"train/perplexity", static_cast<float>(line.perplexity)},
      {"train/learning_rate", static_cast<float>(line.learning_rate)},
      {"train/gradient_norm", static_cast<float>(line.gradient_norm)},
      {"train/target_tokens_per_second", static_cast<float>(line.target_tokens_per_second)}};
  if (line.head_similarity)
    values.push_back({"train/head_similarity", static_cast<float>(*line.head_similarity)});
  if (line.heads_open) values.push_back({"train/heads_open", static_cast<float>(*line.heads_open)});
  scalars(line.update, values);
}

void MetricsLog::add(const Validation& validation, std::string_view kind) {
  write(lines_, to_json_line(ValidationLine{std::string(kind), validation}) + "\n", lines_path_);
  const std::string prefix(kind);
  const std::string loss = prefix + "/loss", perplexity = prefix + "/perplexity", bleu = prefix + "/bleu";
  std::vector<Scalar> values = {{loss, static_cast<float>(validation.loss)},
                                {perplexity, static_cast<float>(validation.perplexity)}};
  if (validation.bleu) values.push_back({bleu, static_cast<float>(*validation.bleu)});
  scalars(validation.update, values);
}

}  // namespace mh
