#include "lab/studies/run_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/families/marian.h"
#include "multihead/io/config.h"
#include "multihead/io/lines.h"
#include "multihead/io/strict_json.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

constexpr const char* kTimesFile = "times.json";
/// What earlier versions kept of heads at each point of a curve, and this one does not read: a rotation of a head's values
/// changes it and no output of the model (telemetry.h).
constexpr const char* kNoLongerRead[] = {"subspace", "output", "effective"};

using nlohmann::json;
using nlohmann::ordered_json;

/// Settings, and the model as its folder's config.json has it.
ordered_json description(const RunSettings& settings, const TranslatorShape& model) {
  ordered_json all = ordered_json::parse(to_json_line(settings));
  all["model"] = ordered_json::parse(write_encoder_decoder_config(model, "multihead", {}, {}));
  return all;
}

const ordered_json& defaults() {
  static const ordered_json all = description(RunSettings{}, TranslatorShape{});
  return all;
}

ordered_json differences_of(const ordered_json& all, const ordered_json& usual) {
  ordered_json different = ordered_json::object();
  for (const auto& [name, value] : all.items()) {
    const auto known = usual.find(name);
    if (known != usual.end() && value == *known) continue;
    const bool inside = known != usual.end() && value.is_object() && known->is_object();
    different[name] = inside ? differences_of(value, *known) : value;
  }
  return different;
}

void put(ordered_json& all, const ordered_json& different) {
  for (const auto& [name, value] : different.items()) {
    ordered_json& own = all[name];
    if (value.is_object() && own.is_object()) {
      put(own, value);
    } else {
      own = value;
    }
  }
}

/// The defaults with these differences, in the order of the table.
ordered_json with_defaults(const ordered_json& different) {
  ordered_json all = defaults();
  put(all, different);
  return all;
}

/// Whatever the order of names was.
std::string sorted(const ordered_json& all) {
  return json::parse(all.dump()).dump();
}

std::string file_name(std::string_view arm, uint64_t seed) {
  std::string name;
  for (const char c : arm) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (plain || (!name.empty() && name.back() != '-')) name += plain ? c : '-';
  }
  if (name.ends_with('-')) name.pop_back();
  return fmt::format("{}-seed-{}", name.empty() ? "arm" : name, seed);
}

void leave_out_old_measures(json& curve) {
  for (json& point : curve) {
    if (!point.is_object() || !point.contains("heads") || !point["heads"].is_object()) continue;
    for (const char* name : kNoLongerRead) point["heads"].erase(name);
  }
}

}  // namespace

RunIdentity::RunIdentity(const RunSettings& settings, const TranslatorShape& model)
    // A model's own description may leave something out of the defaults.
    : all_(sorted(with_defaults(description(settings, model)))) {}

RunIdentity RunIdentity::parse(std::string_view differences, std::string_view where) {
  const json given = parse_json_strictly(differences, where);
  if (!given.is_object())
    throw FormatError(fmt::format("{}: expected an object, found {}", where, json_excerpt(given)));
  RunIdentity run;
  run.all_ = sorted(with_defaults(ordered_json::parse(given.dump())));
  return run;
}

std::string RunIdentity::differences() const {
  // In the order of the table, which is easier to read than the alphabet's.
  return differences_of(with_defaults(ordered_json::parse(all_)), defaults()).dump();
}

RunLog::RunLog(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (!std::filesystem::is_directory(folder_)) return;
  read_times();
  std::set<std::filesystem::path> files;  // in the order of their names
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    if (file.path().extension() == ".jsonl") files.insert(file.path());
  }
  for (const auto& file : files) {
    size_t number = 0;
    for (const std::string& line : read_lines(file.string())) {
      const std::string where = fmt::format("{} line {}", file.string(), ++number);
      json fields = parse_json_strictly(line, where);
      if (!fields.is_object() || !fields.contains("is") || !fields.contains("weights") ||
          !fields["weights"].is_string())
        throw FormatError(fmt::format("{}: expected a run, with \"is\" and \"weights\"", where));
      const RunIdentity run = RunIdentity::parse(fields["is"].dump(), where);
      weights_[run] = fields["weights"];
      fields.erase("is");
      fields.erase("weights");
      if (fields.contains("curve")) leave_out_old_measures(fields["curve"]);
      ArmRun result;
      from_json(result, fields.dump(), where);
      runs_.emplace(run, std::move(result));
    }
  }
}

void RunLog::read_times() {
  const std::filesystem::path file = folder_ / kTimesFile;
  if (!std::filesystem::exists(file)) return;
  const json groups = parse_json_strictly(read_file(file), file.string());
  try {
    for (const json& group : groups) {
      TimesTogether together{.processor = group.at("processor"), .arms = {}};
      for (const json& arm : group.at("arms")) {
        const double seconds = arm.at("seconds");
        if (!(seconds > 0)) throw FormatError(fmt::format("{}: expected seconds above 0", file.string()));
        together.arms.push_back(
            {arm.at("arm"), RunIdentity::parse(arm.at("is").dump(), file.string()), seconds});
      }
      times_.push_back(std::move(together));
    }
  } catch (const json::exception&) {
    throw FormatError(file.string() +
                      ": expected a list of {\"processor\", \"arms\": [{\"arm\", \"is\", \"seconds\"}]}");
  }
}

std::optional<std::vector<double>> RunLog::find_times(const std::vector<UpdateTime>& times) const {
  const std::lock_guard lock(mutex_);
  for (const TimesTogether& together : times_) {
    std::vector<double> seconds;
    for (const UpdateTime& asked : times) {
      const auto found = std::ranges::find(together.arms, asked.run, &UpdateTime::run);
      if (found != together.arms.end()) seconds.push_back(found->seconds);
    }
    if (seconds.size() == times.size()) return seconds;
  }
  return std::nullopt;
}

void RunLog::keep_times(const std::vector<UpdateTime>& times, const std::string& processor) {
  const std::lock_guard lock(mutex_);
  times_.push_back({processor, times});
  std::vector<std::string> lines;
  for (const TimesTogether& together : times_) {
    ordered_json arms = ordered_json::array();
    for (const UpdateTime& one : together.arms) {
      arms.push_back(
          {{"arm", one.arm}, {"seconds", one.seconds}, {"is", ordered_json::parse(one.run.differences())}});
    }
    lines.push_back(ordered_json{{"processor", together.processor}, {"arms", std::move(arms)}}.dump());
  }
  write_file_atomically(folder_ / kTimesFile, fmt::format("[\n{}\n]\n", fmt::join(lines, ",\n")));
}

std::optional<ArmRun> RunLog::find(const RunIdentity& run) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? std::nullopt : std::optional(found->second);
}

std::filesystem::path RunLog::weights_of(const RunIdentity& run, const ArmRun& about) {
  const std::lock_guard lock(mutex_);
  std::string& name = weights_[run];
  const std::string plain = file_name(about.arm, about.seed);
  for (int other = 1; name.empty(); ++other) {
    const std::string wanted = (other == 1 ? plain : fmt::format("{}-{}", plain, other)) + ".safetensors";
    if (std::ranges::count(weights_, wanted, &decltype(weights_)::value_type::second) == 0) name = wanted;
  }
  return folder_ / name;
}

void RunLog::keep(const std::string& study, const RunIdentity& run, const ArmRun& result) {
  const std::string weights = weights_of(run, result).filename().string();
  const std::lock_guard lock(mutex_);
  if (!runs_.emplace(run, result).second) return;
  ordered_json line{{"arm", result.arm}, {"is", ordered_json::parse(run.differences())}};
  const ordered_json fields = ordered_json::parse(to_json_line(result));
  for (const auto& [name, value] : fields.items()) {
    if (name != "curve") line[name] = value;
  }
  line["weights"] = weights;
  line["curve"] = fields["curve"];
  // The whole file again, so that a kill leaves no half of a line.
  const std::filesystem::path file = folder_ / (study + ".jsonl");
  const std::string before = std::filesystem::exists(file) ? read_file(file) : std::string();
  write_file_atomically(file, before + line.dump() + "\n");
}

}  // namespace mh
