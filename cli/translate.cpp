// multihead translate: a line in, its translation out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/comparison.h"
#include "cli/head_changes.h"
#include "cli/load_model.h"
#include "cli/model_text.h"
#include "cli/progress.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/folders/alignment_heads.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/translate_into.h"

namespace mh::cli {
namespace {

struct TranslateFlags {
  ModelFlags model;
  std::string prefix;
  TextFlags text;
  TranslateOptions options;
  AlignOptions align;
  SettingFlags search, alignment_of;
  const Flag* n_best = nullptr;
  std::string alignment_by = {};  // "auto", or empty
  const Flag* alignment = nullptr;
  bool greedy = false, token_ids = false, strict = false, to_column = false;
  HeadChangeFlags changes;

  bool aligns() const { return alignment->count() > 0; }
  bool chooses_heads() const { return !alignment_by.empty(); }
  bool best_only() const { return n_best->count() == 0; }
};

std::string alignment_text(const Hypothesis& hypothesis) {
  std::string text;
  for (const AlignmentPoint& point : hypothesis.alignment) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", point.source, point.target);
  }
  return text;
}

// The lines of one sentence; a sentence of no tokens is an empty line.
std::string output_of(const std::vector<Hypothesis>& hypotheses, size_t number, const ModelText& text,
                      const TranslateFlags& flags) {
  static const std::vector<Hypothesis> kEmpty{Hypothesis{}};
  std::string lines;
  for (const Hypothesis& hypothesis : hypotheses.empty() ? kEmpty : hypotheses) {
    const std::string translation = hypothesis.tokens.empty() ? "" : text.text(hypothesis.tokens);
    if (!flags.best_only()) {
      lines += fmt::format("{} ||| {} ||| {:.6f} {:.6f}", number, translation, hypothesis.score,
                           hypothesis.log_probability);
    } else {
      lines += translation;
    }
    if (flags.aligns() && (!flags.best_only() || !hypotheses.empty()))
      lines += " ||| " + alignment_text(hypothesis);
    lines += '\n';
  }
  return lines;
}

/// The given beginnings of the translations, line by line; none without --prefix.
class Prefixes {
 public:
  Prefixes(const TranslateFlags& flags, ModelText& text) : file_(flags.prefix), input_(flags.text.input) {
    if (!file_.empty()) all_ = text.targets(read_text(file_), {.name = file_});
  }

  /// Those of lines [first, first + count); `last`: no line comes after them. Throws FormatError when there
  /// are not as many as lines.
  std::span<const std::vector<int32_t>> of(size_t first, size_t count, bool last) const {
    if (file_.empty()) return {};
    check_line_for_each(file_, all_.size(), {.name = name_of(input_), .count = first + count, .all = last});
    return std::span(all_).subspan(first, count);
  }

 private:
  std::string file_, input_;
  ModelText::Ids all_;
};

/// Some lines of the input, and what stands before and after them.
struct Block {
  std::vector<std::string> lines;
  ModelText::Ids sources;
  std::vector<int32_t> targets = {};  // the codes of --to-column
  std::span<const std::vector<int32_t>> prefixes;
  size_t first = 0;  // lines before
  bool last = false;
};

/// Reads, translates and writes block by block, so that a line is answered before the next one is typed and
/// the input may be endless.
class Run {
 public:
  Run(TranslateFlags& flags, const ModelFolder& folder, const LanguagePair& languages, Sites* changed)
      : flags_(flags),
        folder_(folder),
        text_(text_or_ids(folder, flags.token_ids, flags.strict, languages,
                          flags.options.source_prefix.value_or(""))),
        reader_(
            text_reader(flags.text.input, "each line is translated at once; Ctrl-D on an empty line ends")),
        prefixes_(flags, text_),
        translator_(folder.translator()),
        changed_(changed) {}

  void all() {
    LineBlock usual;
    if (reader_->is_terminal()) usual.wait = std::chrono::milliseconds(0);
    LineBlock wanted = must_choose() ? lines_to_choose_from(usual) : usual;
    Block block;
    while (!reader_->ended()) {
      block.first += block.lines.size();
      block.lines = reader_->next(wanted);
      block.last = reader_->ended();
      block.prefixes = prefixes_.of(block.first, block.lines.size(), block.last);
      if (block.lines.empty()) break;
      const LinesFrom from{.name = name_of(flags_.text.input), .first = block.first + 1};
      if (flags_.to_column) block.targets = take_target_column(folder_, block.lines, from);
      block.sources = text_.sources_to_translate(block.lines, from);
      if (reader_->is_terminal()) tell_unknown(text_);
      if (must_choose()) {
        choose_heads(block);
        wanted = usual;
      }
      write(translated(block));
    }
    tell_unknown(text_);
    if (flags_.changes.compare) write(comparison_.empty() ? "nothing to translate\n" : comparison_.summary());
    if (!flags_.text.output.empty()) write_text(flags_.text.output, whole_);
  }

 private:
  bool must_choose() const { return flags_.chooses_heads() && !flags_.options.align; }

  /// Of a pipe they are waited for, so that the choice depends on the lines alone.
  LineBlock lines_to_choose_from(const LineBlock& usual) const {
    if (alignment_heads_of(folder_)) return usual;
    if (reader_->is_terminal()) {
      throw UsageError(
          "--alignment auto chooses heads by the first lines, which a terminal has not yet; let "
          "`multihead heads alignment --no-gold --save` write them into the model's folder");
    }
    return {.max_lines = kLinesToChooseFrom, .wait = std::chrono::hours(24)};
  }

  void choose_heads(const Block& block) {
    const bool blank = std::all_of(block.sources.begin(), block.sources.end(),
                                   [](const std::vector<int32_t>& source) { return source.empty(); });
    if (blank) return;  // there is nothing to align yet
    ObserveHeadsOptions options;
    options.observe.sites = changed_;
    options.remark = [](const std::string& line) { remark(line); };
    flags_.options.align = aligners_for(folder_, block.sources, options, [&](auto numbers) {
      TranslateOptions greedy = flags_.options;
      greedy.search.beam_size = greedy.search.n_best = 1;
      greedy.sites = changed_;
      return translate_some(folder_, translator_, numbers, block.sources, block.targets, greedy,
                            block.prefixes);
    });
  }

  std::string translated(const Block& block) {
    std::string output;
    if (flags_.changes.compare)
      return compared(block, {translations(block, nullptr), translations(block, changed_)});
    const auto all = translations(block, changed_);
    for (size_t i = 0; i < all.size(); ++i) output += output_of(all[i], block.first + i, text_, flags_);
    return output;
  }

  std::string compared(const Block& block, const Compared<std::vector<std::vector<Hypothesis>>>& found) {
    const auto text = [&](const Hypothesis& best) -> TextComparison::Text {
      return {best.tokens.empty() ? "" : text_.text(best.tokens), best.log_probability};
    };
    std::string output;
    for (size_t i = 0; i < block.lines.size(); ++i) {
      if (found.whole[i].empty()) continue;  // a line of no tokens
      output += comparison_.add(fmt::format("line {}: {}", block.first + i + 1, block.lines[i]),
                                {text(found.whole[i][0]), text(found.changed[i][0])});
    }
    return output;
  }

  std::vector<std::vector<Hypothesis>> translations(const Block& block, Sites* changes) {
    TranslateOptions options = flags_.options;
    options.sites = changes;
    if (block.last) progress_.expect(static_cast<int64_t>(block.first + block.lines.size()));
    if (!reader_->is_terminal()) {
      options.progress = [&](int64_t done) { progress_.show(static_cast<int64_t>(block.first) + done); };
    }
    return translate_into(folder_, translator_, block.sources, block.targets, options, block.prefixes);
  }

  // A file appears as a whole, at the end.
  void write(const std::string& output) {
    progress_.clear();
    if (flags_.text.output.empty()) return write_text("", output);
    whole_ += output;
  }

  TranslateFlags& flags_;
  const ModelFolder& folder_;
  ModelText text_;
  std::unique_ptr<LineReader> reader_;
  Prefixes prefixes_;
  Translator translator_;
  Sites* changed_;
  Progress progress_{"translated", "sentences"};
  TextComparison comparison_{"translation"};
  std::string whole_;
};

void run(TranslateFlags& flags) {
  flags.search.take(flags.options);
  flags.alignment_of.take(flags.align);
  if (flags.chooses_heads() && (flags.align.layer != -1 || flags.align.head != -1))
    throw UsageError("--alignment auto chooses the heads; leave out --alignment-layer and --alignment-head");
  if (flags.greedy) flags.options.search.beam_size = 1;
  ChangedHeads changed = changed_heads(flags.changes);
  if (flags.aligns() && !flags.chooses_heads()) flags.options.align = flags.align;

  const ModelFolder folder = load_model(flags.model);
  folder.translator();  // that it is one
  changed.check(folder);
  const LanguagePair languages = language_pair(folder, flags.options.languages);
  // Ids have the codes themselves, and perhaps a --prefix the target's.
  if (flags.to_column) {
    if (!folder.languages) named_target(folder, "", "--to-column");  // which says so
  } else if (flags.token_ids && !languages.target) {
    folder.generation.complete(flags.options.search);
  } else {
    complete_search(folder, languages, flags.options.search);
  }
  check_search(flags.options.search);
  if (!folder.generation_remark.empty()) remark(folder.generation_remark);
  Run(flags, folder, languages, changed.sites()).all();
}

}  // namespace

void add_translate(Verb& app) {
  auto flags = std::make_shared<TranslateFlags>();
  Verb* verb = app.add_subcommand("translate", "Translate text with a trained model, line by line");
  add_model(*verb, flags->model, "The folder of a translator, or demo, which comes with multihead")
      ->required();
  add_text_flags(*verb, flags->text);
  flags->search.add(*verb, flags->options);
  verb->add_flag("--greedy", flags->greedy, "The same as --beam-size 1")
      ->excludes(verb->get_option("--beam-size"))
      ->group("Search");
  auto* n_best =
      verb->get_option("--n-best")
          ->default_str("")
          ->description(
              "Write the N best of each line: its number from 0 ||| text ||| score log-probability (nats)");
  flags->n_best = n_best;
  auto* prefix = verb->add_option("--prefix", flags->prefix,
                                  "File of the words that each translation must begin with, line by line");
  prefix->type_name("FILE")->group("Search");
  verb->add_flag("--to-column", flags->to_column,
                 "A line is the language of its translation, a tab and the text: each has its own")
      ->excludes(verb->get_option("--to"))
      ->excludes(prefix)
      ->group("Languages");
  auto* alignment =
      verb->add_option("--alignment", flags->alignment_by,
                       "Append the word alignment: ||| 0-0 2-1 ..., positions of source and target tokens "
                       "from 0; auto: by the heads that the model's folder names, or by those that the "
                       "first 100 lines show to align")
          ->may_have({"auto"})
          ->type_name("auto");
  flags->alignment = alignment;
  flags->alignment_of.add(*verb, flags->align);
  for (const char* of_alignment : {"--alignment-layer", "--alignment-head"})
    verb->get_option(of_alignment)->needs(alignment);
  add_head_change_flags(*verb, flags->changes);
  verb->add_flag(
          "--compare", flags->changes.compare,
          "With --mute, --gate or --replace: show the lines that the change makes differ, side by side")
      ->excludes(alignment)
      ->excludes(n_best);
  verb->add_flag("--strict", flags->strict,
                 "Refuse a line that is longer than the model reads; it is cut otherwise");
  verb->add_flag("--token-ids", flags->token_ids, "Read and write token ids instead of text");
  group_flags(*verb, "Heads", {"--alignment", "--mute", "--gate", "--replace", "--compare"});
  rare_flags(*verb, {"--prefix", "--token-ids"});
  for (const char* language : {"--from", "--to"}) verb->get_option(language)->rare(false);
  verb->footer(
      "Example:\n"
      "  echo 'the small dog sees a cat .' | multihead translate model\n"
      "  multihead translate model (type a line, press Enter, read its translation)\n"
      "  multihead translate model -i test.en -o test.out --beam-size 8 --n-best 3\n"
      "  multihead translate nllb -i test.en --from en --to de\n"
      "  printf 'de\\ta dog\\nfr\\ta cat\\n' | multihead translate nllb --from en \\\n"
      "    --to-column\n"
      "  multihead translate model -i test.en --mute encoder.0.self_attention.1 \\\n"
      "    --compare");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
