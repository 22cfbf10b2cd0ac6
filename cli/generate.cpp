// multihead generate: a prompt in, the text that a causal model continues it with out.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/comparison.h"
#include "cli/conversation.h"
#include "cli/head_changes.h"
#include "cli/live_text.h"
#include "cli/load_model.h"
#include "cli/mistyped.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/tasks/chat_file.h"
#include "multihead/tasks/generate_text.h"

namespace mh::cli {
namespace {

constexpr EnumNames<GenerationEnd> kEnds = {{"end_token", GenerationEnd::kEndToken},
                                            {"stop", GenerationEnd::kStopped},
                                            {"max_new_tokens", GenerationEnd::kMaxNewTokens},
                                            {"max_positions", GenerationEnd::kMaxPositions}};

struct GenerateFlags {
  ModelFlags model;
  std::string chat_file;
  TextFlags text;
  std::vector<std::string> prompts;
  HeadChangeFlags changes;
  GenerateTextOptions options;
  SettingFlags settings;
  bool greedy = false, json = false;

  Verb* verb = nullptr;
};

/// The prompts of the flags, the last message of a chat, a prompt a line of a file, or all of standard input as one.
/// What stands before the last message, and what errors call the prompts, is put into the options.
std::vector<std::string> prompts_of(GenerateFlags& flags) {
  GenerateTextOptions& options = flags.options;
  if (!flags.chat_file.empty()) {
    std::vector<ChatMessage> chat = parse_chat(read_text(flags.chat_file), flags.chat_file);
    options.from = {.name = flags.chat_file, .first = chat.size()};
    std::string last = std::move(chat.back().content);
    chat.pop_back();
    options.earlier = std::move(chat);
    return {std::move(last)};
  }
  if (!flags.text.input.empty()) options.from = {.name = flags.text.input};
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

/// --chat may stand without a file before the model: what was taken for its file is the model then.
void tell_chat_from_model(GenerateFlags& flags) {
  flags.options.chat = flags.verb->get_option("--chat")->count() > 0;
  if (flags.model.path.empty()) flags.model.path.swap(flags.chat_file);
  if (flags.model.path.empty()) throw UsageError(missing(*flags.verb, *flags.verb->get_option("--model")));
}

/// Without a prompt a terminal is where somebody types messages.
bool is_conversation(const GenerateFlags& flags) {
  return flags.options.chat && flags.prompts.empty() && flags.chat_file.empty() && flags.text.input.empty() &&
         isatty(STDIN_FILENO) == 1;
}

void check_chat(const GenerateFlags& flags) {
  if (!flags.chat_file.empty() && !(flags.prompts.empty() && flags.text.input.empty()))
    throw UsageError("--chat FILE has the message that is answered; leave out --prompt and --input");
  if (!is_conversation(flags)) return;
  for (const auto& [given, flag] : {std::pair{flags.json, "--json"},
                                    {flags.changes.compare, "--compare"},
                                    {!flags.text.output.empty(), "--output"}}) {
    if (given)
      throw UsageError(
          fmt::format("{} is not for a chat on the terminal; give --prompt or --chat FILE", flag));
  }
}

/// Each text with all heads and with changed ones, with the same seed.
std::string comparison_of(const ModelFolder& folder, const std::vector<std::string>& prompts,
                          const GenerateTextOptions& options) {
  GenerateTextOptions whole = options, other = options;
  whole.generate.sites = nullptr;
  other.remark = nullptr;  // the same prompts are cut
  const Compared<std::vector<GeneratedText>> found{generate_text(folder, prompts, whole),
                                                   generate_text(folder, prompts, other)};
  const auto text = [](const GeneratedText& of) -> TextComparison::Text {
    return {one_line(of.text), of.generated.log_probability};
  };
  TextComparison comparison("text");
  std::string output;
  for (size_t i = 0; i < prompts.size(); ++i) {
    output += comparison.add(fmt::format("{}: {}", options.from.at(i), one_line(prompts[i])),
                             {text(found.whole[i]), text(found.changed[i])});
  }
  return output + (comparison.empty() ? "nothing to continue\n" : comparison.summary());
}

void run(GenerateFlags& flags) {
  tell_chat_from_model(flags);
  check_chat(flags);
  GenerateTextOptions& options = flags.options;
  flags.settings.take(options);
  if (flags.greedy) options.generate.next_token = NextToken::kGreedy;
  if (flags.verb->get_option("--beam-size")->count() > 0) options.generate.next_token = NextToken::kBeam;
  check_utf8(options.system.value_or(""), "--system");
  for (const std::string& stop : options.stop) check_utf8(stop, "--stop");
  check_generate(options.generate);
  ChangedHeads changed = changed_heads(flags.changes);
  options.generate.sites = changed.sites();

  const ModelFolder folder = load_model(flags.model);
  changed.check(folder);
  if (is_conversation(flags)) return converse(folder, options);
  const std::vector<std::string> prompts = prompts_of(flags);
  options.remark = [](const std::string& line) { remark(line); };
  if (flags.changes.compare) return write_text(flags.text.output, comparison_of(folder, prompts, options));
  // The text of one prompt appears as it comes; several texts are written a line each.
  if (prompts.size() == 1 && !flags.json && flags.text.output.empty()) {
    LiveText text(options);
    generate_text(folder, prompts, options);
    return text.end();
  }
  const auto found = generate_text(folder, prompts, options);
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

void add_generate(Verb& app) {
  auto flags = std::make_shared<GenerateFlags>();
  Verb* verb = flags->verb =
      app.add_subcommand("generate", "Continue texts with a causal model, or let it answer");
  add_model(*verb, flags->model)->default_str("needed");  // which tell_chat_from_model() checks
  auto* prompt =
      verb->add_option("--prompt", flags->prompts,
                       "The text to continue; may be given again. Without it standard input is the prompt")
          ->again()
          ->type_name("TEXT");
  add_text_flags(*verb, flags->text);
  verb->get_option("--input")
      ->description("Read the prompts from this file (gzip or not), one a line")
      ->excludes(prompt);
  auto* chat = verb->add_option("--chat", flags->chat_file,
                                "The prompt is a message, which the model answers by its chat template; on a "
                                "terminal without a prompt each line is one. Of a FILE of messages, a JSON "
                                "object a line with role and content, the last is answered")
                   ->expected(0, 1)
                   ->type_name("FILE");
  auto* greedy = verb->add_flag("--greedy", flags->greedy, "Take the most probable token each time")
                     ->group(kNextTokenGroup);
  flags->settings.add(*verb, flags->options, {"search", "chat"});
  verb->get_option("--system")->needs(chat);
  auto* beam = verb->get_option("--beam-size")->default_str("")->excludes(greedy);
  for (const char* of_beam : {"--length-penalty", "--length-penalty-form"})
    verb->get_option(of_beam)->needs(beam);
  for (const char* of_draws : {"--temperature", "--top-k", "--top-p", "--min-p", "--seed"})
    verb->get_option(of_draws)->excludes(greedy)->excludes(beam);
  verb->get_option("--repetition-penalty")->excludes(beam);
  add_head_change_flags(*verb, flags->changes, "decoder.3.self_attention.1");
  auto* json =
      verb->add_flag("--json", flags->json,
                     "Write a JSON object a line: text, why it ended, tokens with their log-probabilities");
  verb->add_flag(
          "--compare", flags->changes.compare,
          "With changed heads: continue with all heads too, and show the texts that differ side by side")
      ->excludes(json);
  rare_flags(*verb, {"--length-penalty"});
  verb->footer(
      "Example:\n"
      "  multihead generate gpt2 --prompt 'The sky is' --max-new-tokens 20 --greedy\n"
      "  multihead generate gpt2 -i prompts.txt --temperature 0.8 --top-p 0.9 --seed 7\n"
      "  multihead generate smollm2 --chat --prompt 'Why is the sky blue?'\n"
      "  multihead generate smollm2 --chat (type a message, read the answer, go on)\n"
      "  multihead generate smollm2 --chat talk.jsonl\n"
      "  multihead generate smollm2 --chat --cache bfloat16\n"
      "  multihead generate gpt2 --prompt 'The sky is' --mute 'decoder.0.*' --compare\n"
      "  multihead generate gpt2 --prompt 'The sky is' --steer happy.safetensors=2\n"
      "  multihead generate gpt2 --prompt 'A list:' --stop '.' --json");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
