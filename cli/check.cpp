// multihead check: is a model computed right? Everything inside it beside what transformers computes in double precision.
#include <memory>
#include <string>

#include "cli/check_report.h"
#include "cli/common.h"
#include "cli/failure.h"
#include "cli/load_model.h"
#include "cli/run_python.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/check/check_json.h"
#include "multihead/check/check_model.h"
#include "multihead/io/safetensors.h"

namespace mh::cli {
namespace {

constexpr int kDiffers = 1;

struct CheckFlags {
  std::string model, json, request, answer, python = "python3";
  SettingFlags settings = {};
};

CheckReport report_of(const CheckFlags& flags, const ModelFolder& folder, const CheckOptions& options) {
  if (!flags.answer.empty()) return check_model(folder, options, SafetensorsFile::open(flags.answer));
  return check_model(
      folder, options, [&](const std::filesystem::path& request, const std::filesystem::path& answer) {
        run_python(flags.python, site_oracle(), {request.string(), answer.string()}, request.parent_path());
      });
}

void run_check(const CheckFlags& flags) {
  CheckOptions options;
  flags.settings.take(options);
  const ModelFolder folder = load_model(flags.model);
  if (!flags.request.empty()) {
    const CheckTexts texts = check_texts(folder, options.texts, options.new_tokens, options.languages);
    write_file_atomically(flags.request, check_request(folder, texts, thread_count()));
    return;
  }
  const CheckReport report = report_of(flags, folder, options);
  for (const std::string& one : report.remarks) remark(one);
  write_text("", check_table(report));
  if (!flags.json.empty()) write_text(flags.json, check_json(report, flags.model));
  if (!report.right()) throw AlreadyTold(kDiffers);
}

}  // namespace

void add_check(Verb& app) {
  auto flags = std::make_shared<CheckFlags>();
  Verb* verb = app.add_subcommand(
      "check",
      "Is a model computed right? Compare every site, the logits and the greedy text with what transformers "
      "computes in double precision");
  add_model(*verb, flags->model)->required();
  add_output_flag(*verb, "--json", flags->json, "Write a report to this file")->type_name("FILE");
  verb->add_option("--python", flags->python, "The Python that has torch and transformers");
  add_output_flag(*verb, "--request", flags->request,
                  "Write what transformers is asked to this file, and stop: where it runs on another machine")
      ->type_name("FILE");
  verb->add_option("--answer", flags->answer, "Compare with what transformers answered there")
      ->type_name("FILE");
  name_values(*verb, "PATH", {"--python"});
  rare_flags(*verb, {"--request", "--answer"});
  flags->settings.add(*verb, CheckOptions());
  verb->footer(
      "The texts are read by both, here in one batch, one by one, and token by token\n"
      "with a cache. The tool runs the Python; it needs torch and transformers, and\n"
      "for a GGUF file gguf.\n"
      "Exit status 0: right; 1: something differs, or it could not be checked.\n\n"
      "Example:\n"
      "  multihead check model\n"
      "  multihead check model --python venv/bin/python --json report.json");
  verb->callback([flags] { run_check(*flags); });
}

}  // namespace mh::cli
