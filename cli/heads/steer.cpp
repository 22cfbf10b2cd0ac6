// multihead heads steer: a direction made of texts, what it does when it is added to a model's values, and what it breaks.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads/steer_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/reports/steer_json.h"

namespace mh::cli {
namespace {

struct SteerFlags {
  ReportFlags<SteerOptions> report = {};
  std::string toward = {}, away = {}, direction = {}, save = {};
  DirectionTexts texts = {};
  SteerQuestion question = {};
  std::string other = {}, other_target = {};
  std::vector<std::string> strengths = {};
  HeadChangeFlags changes = {};
  int head = 0;
};

/// The lines of a file that have words.
std::vector<std::string> lines_with_words(const std::string& file, const char* flag) {
  std::vector<std::string> lines = read_text(file);
  std::erase_if(lines,
                [](const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; });
  if (lines.empty()) throw FormatError(fmt::format("{} {}: no line has words", flag, file));
  return lines;
}

void check_flags(const SteerFlags& flags) {
  if (flags.direction.empty() == flags.toward.empty())
    throw UsageError("a direction is needed: give --toward FILE with --site SITE, or --direction FILE");
  if (!flags.toward.empty() && flags.texts.site.empty())
    throw UsageError("--toward: give --site, where the texts are read, such as decoder.12.output");
  if (flags.question.texts.empty() && flags.other.empty() && flags.save.empty())
    throw UsageError("nothing is asked: give --text and --answer, --other FILE, or --save FILE");
  for (const std::string& text : flags.question.texts) check_utf8(text, "--text");
  for (const std::string& answer : flags.question.answers) check_utf8(answer, "--answer");
  check_utf8(flags.question.prefix, "--prefix");
}

SteerDirection direction_of(const SteerFlags& flags, const ModelFolder& folder, DirectionOptions options) {
  if (!flags.direction.empty()) {
    SteerDirection read = read_direction(flags.direction);
    check_direction(read, folder);
    return read;
  }
  DirectionTexts texts = flags.texts;
  texts.toward = lines_with_words(flags.toward, "--toward");
  if (!flags.away.empty()) texts.away = lines_with_words(flags.away, "--away");
  Progress progress("read", "texts");
  options.progress = [&](int64_t done) { progress.show(done); };
  return make_direction(folder, texts, options);
}

void run_steer(SteerFlags& flags, const Verb& verb) {
  check_flags(flags);
  if (verb.get_option("--head")->count() > 0) flags.texts.head = flags.head;
  SteerOptions options = flags.report.settings.given();
  if (!flags.strengths.empty()) options.strengths.clear();
  for (const std::string& strength : flags.strengths)
    options.strengths.push_back(*number_in<double>(strength));
  ChangedHeads changed = changed_heads(flags.changes);
  const ScoredModel model = load_scored(flags.report.model_to_run());
  changed.check(model.folder());
  options.direction.sites = changed.sites();
  options.direction.remark = [](const std::string& line) { remark(line); };

  SteerReport found{.direction = direction_of(flags, model.folder(), options.direction)};
  if (!flags.save.empty()) write_text(flags.save, direction_file(found.direction));
  std::optional<FilesCorpus> other;
  if (!flags.other.empty())
    other.emplace(CorpusFiles{.input = flags.other, .target = flags.other_target, .limits = text_limits()});
  if (other || !flags.question.texts.empty()) {
    Progress progress("read", "strengths");
    options.progress = [&](int64_t done, int64_t all) {
      progress.expect(all);
      progress.show(done);
    };
    found = heads_steer(model, found.direction, flags.question, other ? &*other : nullptr, options);
    progress.clear();
  }
  flags.report.write(found, options, steer_json, steering_tables);
}

}  // namespace

void add_heads_steer(Verb& heads) {
  auto flags = std::make_shared<SteerFlags>();
  Verb* verb =
      heads.add_subcommand("steer", "Steering: a direction made of texts, what it does and what it breaks");
  flags->report.add(*verb, "Write JSON instead of a table");
  auto* toward = verb->add_option("--toward", flags->toward,
                                  "Texts, one a line, whose values the direction points to (their mean)")
                     ->type_name("FILE");
  auto* away = verb->add_option("--away", flags->away,
                                "Texts whose mean is subtracted; without: the direction is the mean itself")
                   ->type_name("FILE")
                   ->needs(toward);
  auto* site = verb->add_option("--site", flags->texts.site,
                                "The site whose values are read, e.g. decoder.12.output, or of a head "
                                "decoder.9.self_attention.contributions.4")
                   ->type_name("SITE")
                   ->needs(toward);
  auto* head =
      add_number(*verb, "--head", flags->head, {.low = 0},
                 "Of a site of heads side by side, such as decoder.9.self_attention.heads: which one")
          ->default_str("")
          ->needs(toward);
  auto* at =
      verb->add_option("--at", flags->texts.at,
                       "The site where the direction is added; without: --site, and of a head's contribution "
                       "the output of its attention")
          ->type_name("SITE")
          ->needs(toward);
  auto* direction =
      verb->add_option("--direction", flags->direction, "Take the direction of this file (--save)")
          ->type_name("FILE");
  for (Flag* flag : {toward, away, site, head, at}) direction->excludes(flag);
  add_output_flag(*verb, "--save", flags->save, "Write the direction to this file, which --steer takes")
      ->type_name("FILE")
      ->excludes(direction);
  auto* text =
      verb->add_option("--text", flags->question.texts,
                       "Text after which, or at whose mask, the answers are asked for; may be given again")
          ->again();
  auto* answer = verb->add_option("--answer", flags->question.answers,
                                  "Word whose log-probability is shown; may be given again")
                     ->again()
                     ->type_name("WORD")
                     ->needs(text);
  text->needs(answer);
  verb->add_option("--prefix", flags->question.prefix,
                   "Beginning of a translator's target, after which the answers come")
      ->needs(text);
  auto* other =
      verb->add_option("--other", flags->other, "Other text, one a line, whose perplexity shows the damage")
          ->type_name("FILE");
  verb->add_option("--other-target", flags->other_target,
                   "Of a translator: its translations; without: the model's own, without the direction")
      ->type_name("FILE")
      ->needs(other);
  auto* strength = verb->add_option("--strength", flags->strengths,
                                    "What the direction is multiplied by; may be given again")
                       ->again()
                       ->default_str("-4, -2, -1, 0, 1, 2 and 4");
  constexpr double kMost = std::numeric_limits<float>::max();
  check_number(strength, Rule<double>{.low = -kMost, .high = kMost});
  add_head_change_flags(*verb, flags->changes);
  add_limit_flags(*verb);
  group_flags(*verb, "Direction",
              {"--toward", "--away", "--site", "--head", "--at", "--rows", "--direction", "--save"});
  rare_flags(*verb, {"--head", "--at", "--other-target"});
  verb->footer(
      "Example:\n"
      "  multihead heads steer smollm2.gguf --toward good.txt --away bad.txt \\\n"
      "    --site decoder.12.output --save good.safetensors \\\n"
      "    --text 'The film was' --answer good --answer bad --other test.en\n"
      "  multihead heads steer smollm2.gguf --direction good.safetensors \\\n"
      "    --strength -8 --strength 8 --other test.en\n"
      "  multihead heads steer smollm2.gguf --toward capitals.txt \\\n"
      "    --site decoder.23.self_attention.contributions.4 --save capital.safetensors\n"
      "  multihead generate smollm2.gguf --prompt 'It was' --steer good.safetensors=4");
  verb->callback([flags, verb] { run_steer(*flags, *verb); });
}

}  // namespace mh::cli
