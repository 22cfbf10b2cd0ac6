#include "multihead/check/check_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/scratch_files.h"
#include "multihead/base/thread_pool.h"
#include "multihead/check/row_difference.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/io/safetensors.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

/// Those with which the script was tried.
constexpr std::array kTriedTransformers = {"4.57.6", "5.24.0"};

/// Uses so many threads while it lives.
class Threads {
 public:
  explicit Threads(int threads) { set_thread_count(threads); }
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = thread_count();
};

/// "decoder.3.self_attention.scores.5" -> "decoder.self_attention.scores".
std::string part_of(const std::string& site) {
  std::string part;
  size_t begin = 0;
  while (begin <= site.size()) {
    const size_t end = std::min(site.find('.', begin), site.size());
    const std::string word = site.substr(begin, end - begin);
    if (word.find_first_not_of("0123456789") != std::string::npos) part += (part.empty() ? "" : ".") + word;
    begin = end + 1;
  }
  return part;
}

/// Which text a row of a site is of, and which row of that text.
std::pair<size_t, int64_t> place_of(const std::vector<std::vector<int32_t>>& texts, size_t rows, size_t row) {
  if (rows == texts.size()) return {row, 0};
  size_t text = 0;
  while (text + 1 < texts.size() && row >= texts[text].size()) row -= texts[text++].size();
  return {text, static_cast<int64_t>(row)};
}

class Comparison {
 public:
  Comparison(const ModelFolder& folder, const SafetensorsFile& answer, CheckReport& report)
      : answer_(answer), report_(report) {
    for (const SiteShape& site : compared_sites(*folder.model)) {
      if (answer.contains("value." + site.name)) {
        report.sites.push_back({.site = site.name});
        rows_.push_back(site.rows);
      } else {
        report.not_compared.push_back(site.name);
      }
    }
    if (report.sites.empty()) throw FormatError("the answer has no site of this model");
  }

  void add(CheckedRun run, const RowsOfSites& rows) {
    for (size_t i = 0; i < report_.sites.size(); ++i) {
      const auto found = rows.find(report_.sites[i].site);
      if (found != rows.end()) add(run, found->second, rows_[i], report_.sites[i]);
    }
  }

 private:
  void add(CheckedRun run, const CheckedRows& rows, SiteRows whose, SiteDifference& site) const {
    const std::string name = "value." + site.site;
    const std::vector<int64_t>& shape = answer_.shape(name);
    size_t widest = 0;
    for (const auto& row : rows) widest = std::max(widest, row.size());
    if (shape.size() != 2 || shape[0] != static_cast<int64_t>(rows.size()) ||
        shape[1] < static_cast<int64_t>(widest)) {
      throw FormatError(fmt::format("{} has {} rows and {} columns here, and another shape in the answer",
                                    site.site, rows.size(), widest));
    }
    Tensor there(shape[0], shape[1]);
    answer_.read_floats(name, {there.data(), static_cast<size_t>(there.size())});
    const RowDifference found = row_difference(rows, there.view());
    if (!site.differences[static_cast<size_t>(run)].has_value() &&
        !(found.difference <= largest(site.differences))) {
      const bool source = whose != SiteRows::kTarget || report_.texts.targets.empty();
      std::tie(site.text, site.row) =
          place_of(source ? report_.texts.ids : report_.texts.targets, rows.size(), found.row);
    }
    site.differences[static_cast<size_t>(run)] = found.difference;
  }

  const SafetensorsFile& answer_;
  CheckReport& report_;
  std::vector<SiteRows> rows_;  // whose they are, of each site of the report
};

void sum_up(CheckReport& report) {
  for (const SiteDifference& site : report.sites) {
    const std::string name = part_of(site.site);
    auto part = std::find_if(report.parts.begin(), report.parts.end(),
                             [&](const PartDifference& one) { return one.part == name; });
    if (part == report.parts.end()) part = report.parts.insert(part, {.part = name});
    for (size_t run = 0; run < kCheckedRuns; ++run) {
      const std::optional<double>& of = site.differences[run];
      std::optional<double>& most = part->differences[run];
      if (of && !(*of <= most.value_or(-1))) most = of;
    }
    if (!report.first && !(largest(site.differences) <= report.options.tolerance)) report.first = site;
  }
}

void compare_greedy(const ModelFolder& folder, const SafetensorsFile& answer, CheckReport& report) {
  if (report.texts.new_tokens.empty() || !answer.contains("greedy")) return;
  const std::vector<int64_t> there = answer.integers("greedy");
  const std::vector<float> margins = answer.floats("greedy_margins");
  const std::vector<GreedyIds> here = greedy_ids(folder, report.texts);
  const int32_t end = folder.model->facts().eos_id;
  size_t begin = 0;
  for (size_t text = 0; text < here.size(); ++text) {
    const auto count = static_cast<size_t>(report.texts.new_tokens[text]);
    if (begin + count > there.size() || margins.size() != there.size())
      throw FormatError("the answer has other greedy texts than were asked for");
    ++report.greedy_texts;
    const std::vector<int32_t>& ids = here[text].ids;
    for (size_t i = 0; i < count && i <= ids.size(); ++i) {
      const bool ends = i == ids.size();
      if (ends && !here[text].ended) break;
      const int64_t token = there[begin + i];
      if (token == (ends ? end : ids[i])) continue;
      const double margin = margins[begin + i];
      if (margin <= report.options.tolerance) {
        ++report.greedy_ties;
      } else if (!report.greedy) {
        report.greedy = {.text = text,
                         .token = i,
                         .here = ends ? std::nullopt : std::optional(ids[i]),
                         .there = static_cast<int32_t>(token),
                         .margin = margin};
      }
      break;
    }
    begin += count;
  }
}

void read_versions(const SafetensorsFile& answer, CheckReport& report) {
  const auto of = [&](const char* key) {
    const auto found = answer.metadata().find(key);
    return found == answer.metadata().end() ? std::string() : found->second;
  };
  report.python = of("python");
  report.executable = of("executable");
  report.torch = of("torch");
  report.transformers = of("transformers");
  report.numpy = of("numpy");
  report.transformers_class = of("class");
  if (std::find(kTriedTransformers.begin(), kTriedTransformers.end(), report.transformers) ==
      kTriedTransformers.end()) {
    report.remarks.push_back(fmt::format("transformers {} was not tried with this version; {} were",
                                         report.transformers, fmt::join(kTriedTransformers, " and ")));
  }
  const std::string apart = of("apart");
  if (!apart.empty() && !(std::stod(apart) <= 1e-5)) {
    report.remarks.push_back(
        fmt::format("the logits of transformers change by {} of the largest where values are read at sites; "
                    "trust its logits alone",
                    apart));
  }
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  int64_t kib = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return -1;
}

CheckReport compare(const ModelFolder& folder, const CheckOptions& options, CheckTexts texts,
                    const SafetensorsFile& answer) {
  CheckReport report{.model_type = folder.model_type,
                     .weights_hash = weights_hash(folder),
                     .multihead = MULTIHEAD_VERSION,
                     .options = options,
                     .texts = std::move(texts)};
  read_versions(answer, report);
  Comparison comparison(folder, answer, report);
  {
    RowsOfSites one;
    {
      const Threads threads(1);
      one = rows_of_sites(folder, report.texts, CheckedRun::kTogether);
    }
    comparison.add(CheckedRun::kTogether, one);
    const Threads threads(2);
    report.threads_agree = one == rows_of_sites(folder, report.texts, CheckedRun::kTogether);
  }
  for (const CheckedRun run : {CheckedRun::kAlone, CheckedRun::kCached})
    comparison.add(run, rows_of_sites(folder, report.texts, run));
  sum_up(report);
  compare_greedy(folder, answer, report);
  if (!report.not_compared.empty()) {
    report.remarks.push_back(fmt::format(
        "{} of {} sites were not compared: the modules of {} that compute them are not known here",
        report.not_compared.size(), report.not_compared.size() + report.sites.size(),
        report.transformers_class));
  }
  return report;
}

}  // namespace

double largest(const RunDifferences& differences) {
  double most = 0;
  for (const std::optional<double>& one : differences) {
    if (one && !(*one <= most)) most = *one;
    if (std::isnan(most)) break;
  }
  return most;
}

void check_memory(const ModelFolder& folder, int64_t available) {
  const auto gib = [](double bytes) { return bytes / (1 << 30); };
  const auto parameters = static_cast<double>(folder.model->parameter_count());
  const double needed = parameters * (sizeof(double) + sizeof(float));
  if (needed <= static_cast<double>(available)) return;
  throw Error(fmt::format(
      "the model has {:.3g} billion parameters: with 8 bytes each in transformers and 4 here they "
      "need {:.1f} GiB, and {:.1f} GiB are available",
      parameters / 1e9, gib(needed), gib(static_cast<double>(available))));
}

CheckReport check_model(const ModelFolder& folder, const CheckOptions& options,
                        const SafetensorsFile& answer) {
  return compare(folder, options, check_texts(folder, options.texts, options.new_tokens, options.languages),
                 answer);
}

CheckReport check_model(const ModelFolder& folder, const CheckOptions& options, const AskOracle& ask) {
  CheckTexts texts = check_texts(folder, options.texts, options.new_tokens, options.languages);
  const ScratchFiles scratch("multihead-check");
  const std::string request = check_request(folder, texts, thread_count());
  if (const int64_t available = available_memory(); available >= 0) check_memory(folder, available);
  write_file_atomically(scratch / "request.json", request);
  ask(scratch / "request.json", scratch / "answer.safetensors");
  const SafetensorsFile answer = SafetensorsFile::open(scratch / "answer.safetensors");
  return compare(folder, options, std::move(texts), answer);
}

}  // namespace mh
