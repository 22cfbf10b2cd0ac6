// multihead generate: a prompt in, the text that a causal model continues it with out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/help_format.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"
#include "multihead/models/model_folder.h"
#include "multihead/recipes/generate_text.h"

namespace mh::cli {
namespace {

constexpr EnumNames<GenerationEnd> kEnds = {{"end_token", GenerationEnd::kEndToken},
                                            {"stop", GenerationEnd::kStopped},
                                            {"max_new_tokens", GenerationEnd::kMaxNewTokens},
                                            {"max_positions", GenerationEnd::kMaxPositions}};

struct GenerateFlags {
  std::string model, system;
  TextFlags text;
  std::vector<std::string> prompts, mute;
  GenerateTextOptions options;
  bool greedy = false, beam = false, json = false;
};

/// The prompts of the flags, a prompt a line of a file, or all of standard input as one.
std::vector<std::string> prompts_of(const GenerateFlags& flags) {
  if (!flags.prompts.empty()) {
    for (const std::string& prompt : flags.prompts) check_utf8(prompt, "--prompt");
    return flags.prompts;
  }
  std::vector<std::string> lines = read_text(flags.text.input);
  if (!flags.text.input.empty()) return lines;
  std::string all;
  for (size_t i = 0; i < lines.size(); ++i) all += (i > 0 ? "\n" : "") + lines[i];
  return {all};
}

nlohmann::ordered_json as_json(const std::string& prompt, const GeneratedText& found,
                               const ModelFolder& folder) {
  const Generated& generated = found.generated;
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  for (size_t i = 0; i < generated.tokens.size(); ++i) {
    nlohmann::ordered_json token;
    token["id"] = generated.tokens[i];
    token["token"] = folder.source_tokens().token_of(generated.tokens[i]);
    if (!generated.log_probabilities.empty()) token["log_probability"] = generated.log_probabilities[i];
    tokens.push_back(std::move(token));
  }
  nlohmann::ordered_json line;
  line["prompt"] = prompt;
  line["text"] = found.text;
  line["end"] = mh::name_of(generated.end, kEnds);
  line["log_probability"] = generated.log_probability;
  line["prompt_tokens"] = found.prompt;
  line["tokens"] = std::move(tokens);
  return line;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

void run(GenerateFlags& flags) {
  GenerateTextOptions& options = flags.options;
  if (flags.greedy) options.generate.next_token = NextToken::kGreedy;
  if (flags.beam) options.generate.next_token = NextToken::kBeam;
  if (!flags.system.empty()) options.system = flags.system;
  check_utf8(flags.system, "--system");
  for (const std::string& stop : options.stop) check_utf8(stop, "--stop");
  check_generate(options.generate);
  const Interventions muted = muted_heads(flags.mute);
  if (!muted.empty()) options.generate.interventions = &muted;

  const ModelFolder folder = load_model(flags.model);
  const std::vector<std::string> prompts = prompts_of(flags);
  if (!flags.text.input.empty()) options.from = {.name = flags.text.input};
  // The text of one prompt appears as it comes; several texts are written a line each.
  const bool streamed = prompts.size() == 1 && !flags.json && flags.text.output.empty();
  std::vector<std::string> later;  // remarks that would stand in the middle of a text
  bool begun = false;
  options.remark = [&](const std::string& line) { begun ? later.push_back(line) : remark(line); };
  if (streamed) {
    options.on_text = [&](size_t, std::string_view piece) {
      begun = true;
      write_text("", std::string(piece));
    };
  }
  const auto found = generate_text(folder, prompts, options);
  if (streamed) {
    write_text("", "\n");
    for (const std::string& line : later) remark(line);
    return;
  }
  std::string output;
  for (size_t i = 0; i < found.size(); ++i) {
    if (flags.json) {
      output += as_json(prompts[i], found[i], folder).dump() + "\n";
    } else {
      output += (found.size() == 1 ? found[i].text : one_line(found[i].text)) + "\n";
    }
  }
  write_text(flags.text.output, output);
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  GenerateOptions& options = flags->options.generate;
  LogitsFilterOptions& filters = options.filters;
  CLI::App* verb = app.add_subcommand("generate", "Continue texts with a causal model, or let it answer");
  add_model(*verb, flags->model)->required();
  auto* prompt =
      verb->add_option("--prompt", flags->prompts,
                       "The text to continue; may be given again. Without it standard input is the prompt")
          ->take_all()
          ->allow_extra_args(false);
  add_text_flags(*verb, flags->text);
  verb->get_option("--input")
      ->description("Read the prompts from this file (gzip or not), one a line")
      ->excludes(prompt);
  add_number(*verb, "--max-new-tokens", options.max_new_tokens, {.low = 1}, "Tokens in the longest text");
  auto* chat = verb->add_flag("--chat", flags->options.chat,
                              "The prompt is a message, which a model with a ChatML template answers");
  verb->add_option("--system", flags->system, "With --chat: the system message, in place of the template's")
      ->needs(chat);
  verb->add_option("--stop", flags->options.stop, "End a text before this string; may be given again")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--strict", flags->options.strict,
                 "Refuse a prompt that leaves no room for new tokens; its beginning is cut off otherwise");
  auto* greedy = verb->add_flag("--greedy", flags->greedy, "Take the most probable token each time");
  auto* beam = add_number(*verb, "--beam", options.beam_size, {.low = 1, .high = kLargestBeam},
                          "Search for the most probable text with this many hypotheses")
                   ->default_str("")
                   ->each([flags](const std::string&) { flags->beam = true; })
                   ->excludes(greedy);
  add_number(*verb, "--length-penalty", options.length_penalty.alpha, {.low = -100, .high = 100},
             "Exponent of --beam's length penalty; 0: none")
      ->needs(beam);
  const auto sampling = [&](CLI::Option* option) { option->excludes(greedy)->excludes(beam); };
  sampling(add_number(*verb, "--temperature", filters.temperature, {.low = 1e-6, .high = 1e6},
                      "Divide the logits by this; below 1: probable tokens get more probable"));
  sampling(add_number(*verb, "--top-k", filters.top_k, {.low = 0},
                      "Draw from the K most probable tokens; 0: from all"));
  sampling(add_number(*verb, "--top-p", filters.top_p, {.low = 0, .high = 1},
                      "Draw from the most probable tokens that have this probability together"));
  sampling(add_number(*verb, "--min-p", filters.min_p, {.low = 0, .high = 1},
                      "Draw from the tokens with this share of the best token's probability"));
  sampling(add_number(*verb, "--seed", options.seed, {},
                      "Seed of the draws; with the prompt's number it decides the text"));
  add_number(*verb, "--repetition-penalty", filters.repetition_penalty, {.low = 1e-6, .high = 1e6},
             "Above 1: what occurred before gets less probable")
      ->excludes(beam);
  add_mute_flag(*verb, flags->mute, "decoder.3.self_attention.1");
  verb->add_flag("--json", flags->json,
                 "Write a JSON object a line: text, why it ended, tokens with their log-probabilities");
  add_number(*verb, "--max-batch-tokens", options.max_batch_tokens, {.low = 1},
             "Most tokens of the prompts and texts that are generated at once");
  name_values(*verb, "TEXT", {"--prompt", "--stop", "--system"});
  group_flags(*verb, "Next token",
              {"--greedy", "--beam", "--length-penalty", "--temperature", "--top-k", "--top-p", "--min-p",
               "--repetition-penalty", "--seed"});
  rare_flags(*verb, {"--length-penalty", "--system", "--max-batch-tokens"});
  verb->footer(
      "Example:\n"
      "  multihead generate gpt2 --prompt 'The sky is' --max-new-tokens 20 --greedy\n"
      "  multihead generate gpt2 -i prompts.txt --temperature 0.8 --top-p 0.9 --seed 7\n"
      "  multihead generate smollm2 --chat --prompt 'Why is the sky blue?'\n"
      "  multihead generate gpt2 --prompt 'A list:' --stop '.' --json");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
