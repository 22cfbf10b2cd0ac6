#include "multihead/recipes/inspect_heads.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/generate/translate.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/recipes/cut_tokens.h"
#include "multihead/recipes/long_lines.h"
#include "multihead/recipes/text_tokens.h"
#include "multihead/recipes/unknown_tokens.h"

namespace mh {
namespace {

using Sentences = std::vector<std::vector<Word>>;

/// One side's lines as the model reads them.
struct EncodedSide {
  std::vector<std::vector<int32_t>> ids;         // without end token
  std::vector<WordOfToken> words = {};           // when trees or alignments are there
  std::vector<std::vector<int32_t>> types = {};  // of tokens, when there are pairs
};

std::vector<Word> split_at_spaces(const std::string& line) {
  std::vector<Word> words;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.emplace_back().form = line.substr(begin, end - begin);
    at = end;
  }
  return words;
}

void check_count(const char* what, size_t count, size_t lines) {
  if (count != 0 && count != lines) {
    throw UsageError(
        fmt::format("{} {} for {} source lines; there must be one for each", count, what, lines));
  }
}

size_t words_in(const std::vector<std::string>& lines, const Sentences& trees, size_t i) {
  return trees.empty() ? split_at_spaces(lines[i]).size() : trees[i].size();
}

// Lines without text are left out on all sides.
HeadsText without_empty_lines(const HeadsText& text) {
  check_count("target lines", text.targets.size(), text.sources.size());
  check_count("second texts", text.pairs.size(), text.sources.size());
  check_count("source trees", text.source_trees.size(), text.sources.size());
  check_count("target trees", text.target_trees.size(), text.sources.size());
  check_count("alignments", text.alignments.size(), text.sources.size());
  if (text.targets.empty() && !(text.target_trees.empty() && text.alignments.empty())) {
    throw UsageError("target trees and alignments speak of given targets: give the target text too");
  }
  HeadsText kept;
  for (size_t i = 0; i < text.sources.size(); ++i) {
    if (text.sources[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    kept.sources.push_back(text.sources[i]);
    if (!text.pairs.empty()) kept.pairs.push_back(text.pairs[i]);
    if (!text.targets.empty()) kept.targets.push_back(text.targets[i]);
    if (!text.source_trees.empty()) kept.source_trees.push_back(text.source_trees[i]);
    if (!text.target_trees.empty()) kept.target_trees.push_back(text.target_trees[i]);
    if (text.alignments.empty()) continue;
    check_alignment(text.alignments[i], words_in(text.sources, text.source_trees, i),
                    words_in(text.targets, text.target_trees, i), text.alignments_name, i + 1);
    kept.alignments.push_back(text.alignments[i]);
  }
  return kept;
}

/// Tells what it cuts, and what the tokenizer does not know.
class Reader {
 public:
  using Remark = std::function<void(const std::string&)>;
  Reader(const ModelFolder& folder, const Remark& remark) : folder_(folder), remark_(remark) {}

  /// As a translator reads it, without the end token. words: a list for each line, or none; what: what a line
  /// is called.
  EncodedSide encode(const std::vector<std::string>& lines, const Tokenizer& tokenizer,
                     const Sentences& words, const char* what) const {
    const auto longest = static_cast<size_t>(folder_.translator().config().max_positions) - 1;
    EncodedSide side;
    LongLines long_lines = lines_called(what);
    UnknownTokens unknown;
    for (size_t i = 0; i < lines.size(); ++i) {
      Encoding encoding = tokenizer.encode(lines[i]);
      if (remark_) unknown.add(lines[i], encoding.ids, tokenizer);
      if (!words.empty()) {
        side.words.push_back(
            words_of_tokens(encoding, lines[i], words[i], fmt::format("{} {}", what, i + 1)));
      }
      size_t size = encoding.ids.size();
      if (size > 0 && encoding.ids.back() == folder_.translator().config().eos_id) --size;
      long_lines.note(i, size + 1);
      size = std::min(size, longest);
      encoding.ids.resize(size);
      if (!words.empty()) side.words.back().resize(size);
      side.ids.push_back(std::move(encoding.ids));
    }
    long_lines.tell(lines.size(), remark_);
    unknown.tell(remark_);
    return side;
  }

  /// As a model that reads one text reads it, special tokens and all; lines of no tokens stay empty.
  EncodedSide whole(const std::vector<std::string>& lines, const Sentences& words, const char* what) const {
    const Tokenizer& tokenizer = folder_.source_tokens();
    const auto longest = static_cast<size_t>(folder_.model->facts().max_positions);
    const size_t closing = closing_tokens(tokenizer);
    EncodedSide side;
    LongLines long_lines = lines_called(what);
    UnknownTokens unknown;
    for (size_t i = 0; i < lines.size(); ++i) {
      Encoding encoding = tokenizer.encode(lines[i]);
      if (remark_) unknown.add(lines[i], encoding.ids, tokenizer);
      if (!words.empty()) {
        side.words.push_back(
            words_of_tokens(encoding, lines[i], words[i], fmt::format("{} {}", what, i + 1)));
        cut_tokens(side.words.back(), longest, closing);
      }
      long_lines.note(i, encoding.ids.size());
      cut_tokens(encoding.ids, longest, closing);
      side.ids.push_back(std::move(encoding.ids));
    }
    long_lines.tell(lines.size(), remark_);
    unknown.tell(remark_);
    return side;
  }

 private:
  LongLines lines_called(const char* what) const {
    return {{.one = what}, {.longest = static_cast<size_t>(folder_.model->facts().max_positions)}};
  }

  const ModelFolder& folder_;
  const Remark& remark_;
};

Sentences words_of(const std::vector<std::string>& lines, const Sentences& trees) {
  if (!trees.empty()) return trees;
  Sentences words;
  for (const std::string& line : lines) words.push_back(split_at_spaces(line));
  return words;
}

std::vector<std::vector<int32_t>> greedy(const ModelFolder& folder,
                                         std::span<const std::vector<int32_t>> sources,
                                         const Interventions* interventions) {
  TranslateOptions options;
  options.search.beam_size = 1;
  // The decoder reads the start token before the translation.
  options.search.max_length = std::max(1, std::min(256, folder.translator().config().max_positions - 1));
  options.search.max_length_factor = 4;
  options.search.suppressed = folder.suppressed;
  options.interventions = interventions;
  std::vector<std::vector<int32_t>> targets;
  for (auto& hypotheses : translate(folder.translator(), sources, options)) {
    targets.push_back(hypotheses.empty() ? std::vector<int32_t>() : std::move(hypotheses[0].tokens));
  }
  return targets;
}

bool translates(const ModelFolder& folder) {
  return dynamic_cast<const EncoderDecoder*>(folder.model.get()) != nullptr;
}

bool is_causal(const ModelFolder& folder) {
  return folder.model->facts().source_vocabulary == 0;
}

void refuse_targets(const ModelFolder& folder, bool given) {
  if (!given) return;
  throw UsageError(
      fmt::format("{} holds a {} model, which reads one text; leave out translations and alignments",
                  folder.path.string(), folder.model_type));
}

std::vector<int32_t> sizes(const Sentences& sentences) {
  std::vector<int32_t> all;
  for (const auto& words : sentences) all.push_back(static_cast<int32_t>(words.size()));
  return all;
}

/// Two texts as one sequence, for each line.
EncodedSide pairs_of(const ModelFolder& folder, const std::vector<std::string>& firsts,
                     const std::vector<std::string>& seconds,
                     const std::function<void(const std::string&)>& remark) {
  auto [ids, types] = read_pairs(folder, firsts, seconds, remark);
  return {.ids = std::move(ids), .types = std::move(types)};
}

std::vector<KeptAttention> kept_attentions(const Model& model, std::span<const std::vector<int32_t>> sources,
                                           std::span<const std::vector<int32_t>> targets,
                                           const ObserveOptions& options) {
  KeptWeights kept;
  CorpusObserver* observers[] = {&kept};
  observe_corpus(model, sources, targets, observers, options);
  return kept.kept();
}

/// Appends tokens, as the vocabulary writes them and as people read them.
void add_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids, std::vector<std::string>& tokens,
                std::vector<std::string>& labels) {
  for (const int32_t id : ids) {
    tokens.push_back(tokenizer.token_of(id));
    labels.push_back(tokenizer.shown(id));
  }
}

/// Of an encoder, or of a causal model, whose text stands on the side of the target. `side`: one sequence.
SentenceWeights weights_of_one_text(const ModelFolder& folder, const EncodedSide& side,
                                    const Interventions* interventions) {
  const auto& text = side.ids;
  SentenceWeights sentence;
  sentence.attentions =
      kept_attentions(*folder.model, text, {}, {.interventions = interventions, .source_types = side.types});
  if (is_causal(folder)) {
    sentence.target_ids = text[0];
    add_tokens(folder.source_tokens(), text[0], sentence.target_tokens, sentence.target_labels);
  } else {
    sentence.source_ids = text[0];
    add_tokens(folder.source_tokens(), text[0], sentence.source_tokens, sentence.source_labels);
  }
  return sentence;
}

}  // namespace

HeadReport inspect_heads(const ModelFolder& folder, const HeadsText& given, const InspectOptions& options) {
  const HeadsText text = without_empty_lines(given);
  const bool align = !text.alignments.empty();
  const Reader reader(folder, options.remark);

  Sentences source_words, target_words;
  if (align || !text.source_trees.empty()) source_words = words_of(text.sources, text.source_trees);
  if (align || !text.target_trees.empty()) target_words = words_of(text.targets, text.target_trees);
  const bool pairs = !text.pairs.empty();
  if (pairs && !text.source_trees.empty())
    throw UsageError("trees speak of one text; leave out the trees or the second texts");
  EncodedSide source, target;
  HeadReport report;
  report.sentences = static_cast<int64_t>(text.sources.size());
  if (pairs) {
    source = pairs_of(folder, text.sources, text.pairs, options.remark);
    refuse_targets(folder, !text.targets.empty());
  } else if (translates(folder)) {
    source = reader.encode(text.sources, folder.source_tokens(), source_words, "source line");
    for (auto& ids : source.ids) ids.push_back(folder.translator().config().eos_id);
    for (auto& words : source.words) words.push_back(-1);
    report.targets = text.targets.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
    if (text.targets.empty()) {
      target.ids = greedy(folder, source.ids, options.observe.interventions);
    } else {
      target = reader.encode(text.targets, folder.target_tokens(), target_words, "target line");
    }
  } else {
    refuse_targets(folder, !text.targets.empty());
    if (is_causal(folder) && !text.source_trees.empty()) {
      throw UsageError(fmt::format("{} holds a {} model; trees are for encoders and translators",
                                   folder.path.string(), folder.model_type));
    }
    source = reader.whole(text.sources, source_words, "line");
  }

  GoldTrees source_gold, target_gold;
  if (!text.source_trees.empty()) source_gold = {text.source_trees, source.words};
  if (!text.target_trees.empty()) target_gold = {text.target_trees, target.words};
  GoldAlignments alignments;
  if (align) {
    alignments = {text.alignments, source.words, target.words, sizes(source_words), sizes(target_words)};
  }
  HeadStatistics statistics;
  RelationScorer relations(source_gold, target_gold);
  AlignmentScorer aligners(alignments);
  std::vector<CorpusObserver*> observers{&statistics, &relations, &aligners};
  ObserveOptions observe = options.observe;
  observe.source_types = source.types;
  observe_corpus(*folder.model, source.ids, target.ids, observers, observe);

  report.heads = statistics.heads();
  if (options.similarities) report.similarities = statistics.similarities();
  report.relations = relations.scores();
  report.aligners = aligners.scores();
  if (align) report.alignment_baseline = aligners.baseline();
  return report;
}

const KeptAttention* SentenceWeights::find(std::string_view attention) const {
  const auto found = std::find_if(attentions.begin(), attentions.end(),
                                  [&](const KeptAttention& kept) { return kept.attention == attention; });
  return found == attentions.end() ? nullptr : &*found;
}

const Tensor& SentenceWeights::weights(const HeadName& head) const {
  const KeptAttention* kept = find(head.attention);
  if (kept == nullptr) {
    std::string all;
    for (const KeptAttention& has : attentions) all += (all.empty() ? "" : ", ") + has.attention;
    throw UsageError(fmt::format("head '{}.{}': this model has {}", head.attention, head.head, all));
  }
  if (head.head < 0 || head.head >= static_cast<int>(kept->heads.size())) {
    throw UsageError(fmt::format("head '{}.{}': {} has heads 0 to {}", head.attention, head.head,
                                 head.attention, kept->heads.size() - 1));
  }
  return kept->heads[static_cast<size_t>(head.head)];
}

const char* what_attends(AttentionKind kind) {
  if (kind == AttentionKind::kEncoderSelf) return "each source token attends to source tokens";
  if (kind == AttentionKind::kDecoderSelf) return "each target token attends to target tokens";
  return "each target token to come attends to source tokens";
}

const std::vector<std::string>& SentenceWeights::query_labels(AttentionKind kind) const {
  if (kind == AttentionKind::kEncoderSelf) return source_labels;
  return kind == AttentionKind::kDecoderSelf ? target_labels : predicted_labels;
}

const std::vector<std::string>& SentenceWeights::key_labels(AttentionKind kind) const {
  return kind == AttentionKind::kDecoderSelf ? target_labels : source_labels;
}

SentenceWeights sentence_weights(const ModelFolder& folder, const std::string& source,
                                 const std::string& target, const SentenceOptions& options) {
  const Interventions* const interventions = options.interventions;
  const Reader reader(folder, options.remark);
  if (options.pair || !translates(folder)) {
    refuse_targets(folder, !target.empty());
    const EncodedSide side = options.pair ? pairs_of(folder, {source}, {*options.pair}, options.remark)
                                          : reader.whole({source}, {}, "text");
    return weights_of_one_text(folder, side, interventions);
  }
  SentenceWeights sentence;
  sentence.source_ids = reader.encode({source}, folder.source_tokens(), {}, "text").ids[0];
  sentence.source_ids.push_back(folder.translator().config().eos_id);
  sentence.targets = target.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
  const std::vector<std::vector<int32_t>> sources{sentence.source_ids};
  std::vector<int32_t> target_ids;
  if (target.empty()) {
    target_ids = greedy(folder, sources, interventions)[0];
    sentence.translation = folder.target_tokens().decode(target_ids);
  } else {
    target_ids = reader.encode({target}, folder.target_tokens(), {}, "target text").ids[0];
    sentence.translation = target;
  }

  const std::vector<std::vector<int32_t>> targets{target_ids};
  sentence.attentions = kept_attentions(*folder.model, sources, targets, {.interventions = interventions});

  const EncoderDecoderConfig& config = folder.translator().config();
  sentence.target_ids.push_back(config.decoder_start_id);
  sentence.target_ids.insert(sentence.target_ids.end(), target_ids.begin(), target_ids.end());
  add_tokens(folder.source_tokens(), sentence.source_ids, sentence.source_tokens, sentence.source_labels);
  sentence.target_tokens = sentence.target_labels = {"<start>"};
  add_tokens(folder.target_tokens(), target_ids, sentence.target_tokens, sentence.target_labels);
  target_ids.push_back(config.eos_id);
  add_tokens(folder.target_tokens(), target_ids, sentence.predicted_tokens, sentence.predicted_labels);
  return sentence;
}

}  // namespace mh
