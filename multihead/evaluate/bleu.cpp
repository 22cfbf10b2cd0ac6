#include "multihead/evaluate/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/evaluate/bleu_tokenizers.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

using Ngram = std::array<int32_t, kBleuOrder>;               // ids of its words, then kNoWord
using NgramCounts = std::vector<std::pair<Ngram, int32_t>>;  // sorted by n-gram
constexpr int32_t kNoWord = -1;

double smoothing_value(const BleuConfig& config) {
  if (config.smoothing_value) return *config.smoothing_value;
  return config.smoothing == BleuSmoothing::kFloor ? 0.1 : 1.0;
}

std::vector<std::string> words_of(std::string_view line, const BleuConfig& config) {
  if (config.tokenizer == BleuTokenizer::kMoses) {
    std::vector<std::string> words = tokenize_moses(line, config.language);
    if (config.lowercase) {
      for (std::string& word : words) word = lower_case_in_context(word);
    }
    return words;
  }
  std::string lowered;
  if (config.lowercase) {
    lowered = lower_case_in_context(line);
    line = lowered;
  }
  switch (config.tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a(line);
    // sacreBLEU strips the right end, and a rule of this tokenizer looks at what follows the last character.
    case BleuTokenizer::kIntl:
      return tokenize_intl(without_trailing_space(line));
    default:
      return split_words(line);
  }
}

int order_of(const Ngram& ngram) {
  return static_cast<int>(std::find(ngram.begin(), ngram.end(), kNoWord) - ngram.begin());
}

NgramCounts count_ngrams(const std::vector<int32_t>& ids) {
  std::vector<Ngram> all;
  all.reserve(ids.size() * kBleuOrder);
  for (size_t begin = 0; begin < ids.size(); ++begin) {
    Ngram ngram;
    ngram.fill(kNoWord);
    for (size_t n = 0; n < kBleuOrder && begin + n < ids.size(); ++n) {
      ngram[n] = ids[begin + n];
      all.push_back(ngram);
    }
  }
  std::sort(all.begin(), all.end());
  NgramCounts counts;
  for (const Ngram& ngram : all) {
    if (counts.empty() || counts.back().first != ngram) counts.emplace_back(ngram, 0);
    ++counts.back().second;
  }
  return counts;
}

// For each n-gram the larger count of the two.
NgramCounts larger_of(const NgramCounts& a, const NgramCounts& b) {
  NgramCounts out;
  auto i = a.begin(), j = b.begin();
  while (i != a.end() || j != b.end()) {
    if (j == b.end() || (i != a.end() && i->first < j->first)) {
      out.push_back(*i++);
    } else if (i == a.end() || j->first < i->first) {
      out.push_back(*j++);
    } else {
      out.emplace_back(i->first, std::max(i->second, j->second));
      ++i, ++j;
    }
  }
  return out;
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  hyp_len += other.hyp_len;
  ref_len += other.ref_len;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  return *this;
}

double BleuScore::ratio() const {
  return counts.ref_len == 0 ? 0.0
                             : static_cast<double>(counts.hyp_len) / static_cast<double>(counts.ref_len);
}

std::string BleuScore::line(int digits) const {
  return fmt::format(
      "BLEU = {:.{}f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      score, digits, precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio(),
      counts.hyp_len, counts.ref_len);
}

BleuScore bleu_of_counts(const BleuCounts& counts, const BleuConfig& config) {
  BleuScore result;
  result.counts = counts;
  const auto hyp_len = static_cast<double>(counts.hyp_len), ref_len = static_cast<double>(counts.ref_len);
  if (counts.hyp_len < counts.ref_len) {
    result.brevity_penalty = counts.hyp_len > 0 ? std::exp(1 - ref_len / hyp_len) : 0.0;
  }
  const auto matched = [](int64_t count) { return count != 0; };
  if (std::none_of(counts.matches.begin(), counts.matches.end(), matched)) return result;

  const double value = smoothing_value(config);
  double halving = 1;
  int orders = kBleuOrder;
  for (int n = 1; n <= kBleuOrder; ++n) {
    const auto at = static_cast<size_t>(n - 1);
    const double added = config.smoothing == BleuSmoothing::kAddK && n > 1 ? value : 0.0;
    const double matches = static_cast<double>(counts.matches[at]) + added;
    const double total = static_cast<double>(counts.totals[at]) + added;
    if (total == 0) break;
    if (config.effective_order) orders = n;
    if (matches != 0) {
      result.precisions[at] = 100 * matches / total;
    } else if (config.smoothing == BleuSmoothing::kExp) {
      halving *= 2;
      result.precisions[at] = 100 / (halving * total);
    } else if (config.smoothing == BleuSmoothing::kFloor) {
      result.precisions[at] = 100 * value / total;
    }
  }
  double logs = 0;
  for (int n = 0; n < orders; ++n) {
    const double precision = result.precisions[static_cast<size_t>(n)];
    if (precision == 0) return result;  // BLEU is 0
    logs += std::log(precision);
  }
  result.score = result.brevity_penalty * std::exp(logs / orders);
  return result;
}

struct Bleu::State {
  struct Reference {
    NgramCounts ngrams;            // the largest count in any reference
    std::vector<int64_t> lengths;  // of each reference
  };

  BleuConfig config;
  size_t references_each = 0;
  std::unordered_map<std::string, int32_t> ids;  // of the words in references
  std::vector<Reference> references;

  BleuCounts count(const std::string& hypothesis, const Reference& reference) const {
    const std::vector<std::string> words = words_of(hypothesis, config);
    std::vector<int32_t> line;
    // Words that no reference has can match nothing: one id for all of them.
    const auto stranger = static_cast<int32_t>(ids.size());
    for (const std::string& word : words) {
      const auto found = ids.find(word);
      line.push_back(found == ids.end() ? stranger : found->second);
    }
    BleuCounts counts;
    counts.hyp_len = static_cast<int64_t>(words.size());
    for (int64_t n = 0; n < kBleuOrder; ++n) {
      counts.totals[static_cast<size_t>(n)] = std::max<int64_t>(0, counts.hyp_len - n);
    }
    const auto distance = [&](int64_t length) {
      return std::pair(std::abs(length - counts.hyp_len), length);
    };
    counts.ref_len = *std::min_element(reference.lengths.begin(), reference.lengths.end(),
                                       [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
    auto at = reference.ngrams.begin();
    for (const auto& [ngram, times] : count_ngrams(line)) {
      while (at != reference.ngrams.end() && at->first < ngram) ++at;
      if (at == reference.ngrams.end()) break;
      if (at->first == ngram)
        counts.matches[static_cast<size_t>(order_of(ngram) - 1)] += std::min(times, at->second);
    }
    return counts;
  }
};

Bleu::Bleu(BleuConfig config, std::span<const std::vector<std::string>> references)
    : state_(std::make_unique<State>()) {
  if (references.empty() || references[0].empty()) throw FormatError("BLEU: no reference sentences");
  for (size_t r = 1; r < references.size(); ++r) {
    if (references[r].size() == references[0].size()) continue;
    throw FormatError(
        fmt::format("BLEU: reference 1 has {} lines, reference {} has {}; they must be the same sentences",
                    references[0].size(), r + 1, references[r].size()));
  }
  check_settings(config);
  state_->config = config;
  state_->references_each = references.size();
  state_->references.resize(references[0].size());
  for (size_t i = 0; i < references[0].size(); ++i) {
    throw_if_stopped();
    State::Reference& reference = state_->references[i];
    for (const auto& lines : references) {
      std::vector<int32_t> line;
      for (std::string& word : words_of(lines[i], state_->config)) {
        const auto next = static_cast<int32_t>(state_->ids.size());
        line.push_back(state_->ids.emplace(std::move(word), next).first->second);
      }
      reference.lengths.push_back(static_cast<int64_t>(line.size()));
      NgramCounts ngrams = count_ngrams(line);
      reference.ngrams = reference.ngrams.empty() ? std::move(ngrams) : larger_of(reference.ngrams, ngrams);
    }
  }
}
Bleu::~Bleu() = default;
Bleu::Bleu(Bleu&&) noexcept = default;
Bleu& Bleu::operator=(Bleu&&) noexcept = default;

size_t Bleu::size() const {
  return state_->references.size();
}
const BleuConfig& Bleu::config() const {
  return state_->config;
}

std::vector<BleuCounts> Bleu::counts(std::span<const std::string> hypotheses) const {
  if (hypotheses.size() != size()) {
    throw FormatError(fmt::format("BLEU: {} hypotheses for {} references; one line each is needed",
                                  hypotheses.size(), size()));
  }
  constexpr size_t kLinesPerTask = 64;
  std::vector<BleuCounts> counts(size());
  parallel_for(static_cast<int64_t>((size() + kLinesPerTask - 1) / kLinesPerTask), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kLinesPerTask;
    for (size_t i = begin; i < std::min(size(), begin + kLinesPerTask); ++i) {
      counts[i] = state_->count(hypotheses[i], state_->references[i]);
    }
  });
  return counts;
}

BleuScore Bleu::score(std::span<const std::string> hypotheses) const {
  BleuCounts sum;
  for (const BleuCounts& counts : counts(hypotheses)) sum += counts;
  return bleu_of_counts(sum, state_->config);
}

std::string Bleu::signature() const {
  const BleuConfig& config = state_->config;
  const auto tokenizer = [&]() -> std::string {
    switch (config.tokenizer) {
      case BleuTokenizer::k13a:
        return "13a";
      case BleuTokenizer::kIntl:
        return "intl";
      case BleuTokenizer::kMoses:
        return config.language == MosesLanguage::kGerman ? "moses-de" : "moses-en";
      case BleuTokenizer::kNone:
        break;
    }
    return "none";
  };
  const auto smoothing = [&]() -> std::string {
    switch (config.smoothing) {
      case BleuSmoothing::kExp:
        return "exp";
      case BleuSmoothing::kFloor:
        return fmt::format("floor[{:.2f}]", smoothing_value(config));
      case BleuSmoothing::kAddK:
        return fmt::format("add-k[{:.2f}]", smoothing_value(config));
      case BleuSmoothing::kNone:
        break;
    }
    return "none";
  };
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|impl:multihead-{}", state_->references_each,
                     config.lowercase ? "lc" : "mixed", config.effective_order ? "yes" : "no", tokenizer(),
                     smoothing(), MULTIHEAD_VERSION);
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, const std::vector<std::string>& references,
                      const BleuConfig& config) {
  return Bleu(config, std::span(&references, 1)).score(hypotheses);
}

}  // namespace mh
