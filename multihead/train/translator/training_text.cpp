#include "multihead/train/translator/training_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/distributed/agreement.h"
#include "multihead/distributed/message.h"
#include "multihead/train/translator/first_rank.h"
#include "multihead/train/translator/training_settings.h"

namespace mh {

TrainingText::TrainingText(const TranslatorSettings& settings, ProcessGroup& group, const Remark& remark,
                           const std::function<std::optional<TranslatorTokenizers>()>& known)
    : settings_(settings), group_(group), remark_(remark) {
  const bool first = group.rank() == 0, reads = first || !settings.share_corpus;
  ParallelText text;
  std::optional<ParallelText> valid_text;
  if (reads) {
    const TextLimits& limits = settings.text_limits;
    text = read_parallel_text(settings.train_source, settings.train_target, limits);
    if (!settings.valid_source.empty())
      valid_text = read_parallel_text(settings.valid_source, settings.valid_target, limits);
  }
  if (first) {
    tokenizers_ = known();
    if (!tokenizers_) tokenizers_ = make_tokenizers(settings, text);
  }
  tokenizers_ = tokenizers_of_first_rank(group, tokenizers_);
  std::optional<Validated> valid;
  if (reads) encode(text, valid_text, valid);
  if (settings.share_corpus && group.size() > 1) share(valid);
  fingerprint_ = mh::fingerprint(corpus_);
  if (valid) {
    fingerprint_ += "-" + mh::fingerprint(valid->corpus);
    validation_ = std::make_unique<TranslatorValidation>(
        std::move(valid->corpus), std::move(valid->references), tokenizers_->target(),
        TranslatorValidation::Options{.beam_size = settings.validate_beam,
                                      .max_length = settings.max_length,
                                      .lowercase = settings.lowercase,
                                      .batches_apart = settings.reproducible,
                                      .search = tokenizers_->frame.search});
  }
  check_same(group, {{"the fingerprint of the text", fingerprint_}});
}

void TrainingText::encode(const ParallelText& text, const std::optional<ParallelText>& valid_text,
                          std::optional<Validated>& valid) {
  EncodedText encoded = encode_text(text, *tokenizers_, settings_.max_length);
  report_left_out(encoded, text.size(), settings_.train_source);
  left_out_ = static_cast<int64_t>(encoded.left_out.size());
  corpus_ = std::move(encoded.corpus);
  if (!valid_text) return;
  EncodedText both = encode_text(*valid_text, *tokenizers_, settings_.max_length);
  report_left_out(both, valid_text->size(), settings_.valid_source);
  valid.emplace();
  for (const int64_t line : both.corpus.lines)
    valid->references.push_back(valid_text->target[static_cast<size_t>(line - 1)]);
  valid->corpus = std::move(both.corpus);
}

/// Gives rank 0's text to the others.
void TrainingText::share(std::optional<Validated>& valid) {
  const bool first = group_.rank() == 0;
  MessageWriter mine;
  if (first) {
    add_corpus(mine, corpus_);
    mine.add(static_cast<char>(valid.has_value()));
    if (valid) {
      add_corpus(mine, valid->corpus);
      for (const std::string& line : valid->references) mine.add(std::string_view(line));
    }
  }
  const std::string all = of_first_rank(group_, mine.bytes());
  if (first) return;
  MessageReader reader(all);
  corpus_ = read_corpus(reader);
  if (reader.number<char>() == 0) return;
  valid.emplace();
  valid->corpus = read_corpus(reader);
  for (size_t i = 0; i < valid->corpus.lines.size(); ++i) valid->references.emplace_back(reader.text());
}

void TrainingText::report_left_out(const EncodedText& encoded, size_t all, const std::string& file) const {
  if (encoded.corpus.lines.empty()) {
    throw UsageError(fmt::format("{}: all {} pairs have more than `max_length` {} tokens; raise `max_length`",
                                 file, all, settings_.max_length));
  }
  if (encoded.left_out.empty() || !remark_) return;
  constexpr size_t kShown = 5;
  const size_t shown = std::min(kShown, encoded.left_out.size());
  remark_(fmt::format(
      "{}: left out {} of {} pairs with more than {} tokens on a side (lines {}{}); raise `max_length` "
      "to train on them",
      file, encoded.left_out.size(), all, settings_.max_length,
      fmt::join(encoded.left_out.begin(), encoded.left_out.begin() + static_cast<int64_t>(shown), ", "),
      encoded.left_out.size() > shown ? ", ..." : ""));
}

std::vector<std::string> TrainingText::differences_from(const TrainingState& saved) const {
  std::vector<std::string> clauses;
  const std::string& tokenizer = settings_.tokenizer;
  const auto kept = kept_settings(settings_.model);
  const bool known = tokenizer.empty() || (kept && kept->tokenizer == tokenizer);
  if (!known &&
      Tokenizer::from_json(read_regular_file(tokenizer), tokenizer).files() != tokenizers_->source.files()) {
    clauses.push_back(fmt::format("`tokenizer` {} is not the run's", tokenizer));
  }
  if (saved.data != fingerprint_) clauses.emplace_back("the text is not the one the run was started with");
  return clauses;
}

}  // namespace mh
