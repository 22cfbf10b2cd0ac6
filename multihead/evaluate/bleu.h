// BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018), equal to every printed digit. It
// compares translations with reference translations of the same sentences:
//
//   BLEU = BP * exp(1/4 sum_n log p_n)     p_n: clipped n-gram precision over the whole corpus, n = 1..4
//   BP   = min(1, exp(1 - ref_len / hyp_len))
//
// Texts are plain lines; they are tokenised here, as sacreBLEU does, so that scores can be compared with
// published ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/evaluate/moses_tokenizer.h"
#include "multihead/io/config.h"

namespace mh {

constexpr int kBleuOrder = 4;

enum class BleuTokenizer { k13a, kIntl, kMoses, kNone };

/// Smoothing, what replaces a precision of 0 (Chen and Cherry 2014): kExp counts 1/2 match for the first
/// such order, 1/4 for the next, ..., kFloor a small number of matches, kAddK adds k to matches and totals
/// above unigrams, kNone leaves it 0 (and BLEU with it).
enum class BleuSmoothing { kExp, kFloor, kAddK, kNone };

struct BleuConfig {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  MosesLanguage language = MosesLanguage::kEnglish;  // for kMoses only
  bool lowercase = false;                            // before tokenizing; with kMoses after it, as is usual
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  std::optional<double> smoothing_value = {};  // of kFloor (default 0.1) and kAddK (default 1)
  /// Leave out n-gram orders that the hypotheses are too short for; for single sentences.
  bool effective_order = false;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "How BLEU is computed";
    v("tokenizer", tokenizer,
      {{"13a", BleuTokenizer::k13a},
       {"intl", BleuTokenizer::kIntl},
       {"moses", BleuTokenizer::kMoses},
       {"none", BleuTokenizer::kNone}},
      {.group = kGroup, .help = "How sentences are split into words"});
    v("language", language, {{"en", MosesLanguage::kEnglish}, {"de", MosesLanguage::kGerman}},
      {.group = kGroup, .help = "Language whose rules the tokenizer moses follows", .rare = true});
    v("lowercase", lowercase, {}, {.group = kGroup, .help = "Ignore upper and lower case"});
    v("smoothing", smoothing,
      {{"exp", BleuSmoothing::kExp},
       {"floor", BleuSmoothing::kFloor},
       {"add-k", BleuSmoothing::kAddK},
       {"none", BleuSmoothing::kNone}},
      {.group = kGroup, .help = "Smoothing of n-gram precisions that are 0", .rare = true});
    v("smoothing_value", smoothing_value, {.low = 1e-9, .high = 1e9},
      {.group = kGroup,
       .help = "Constant of the smoothing floor (usually 0.1) or add-k (usually 1)",
       .rare = true});
    v("effective_order", effective_order, {},
      {.group = kGroup,
       .help = "Ignore n-grams longer than the sentences, for scores of single sentences",
       .rare = true});
  }
};

/// The counts of a sentence. BLEU of a corpus is computed from their sums.
struct BleuCounts {
  int64_t hyp_len = 0;
  int64_t ref_len = 0;  // of the reference nearest in length, the shorter one if two are
  std::array<int64_t, kBleuOrder> matches{};  // n-grams of the hypothesis found in a reference, [n - 1]
  std::array<int64_t, kBleuOrder> totals{};   // n-grams of the hypothesis

  BleuCounts& operator+=(const BleuCounts& other);
  bool operator==(const BleuCounts&) const = default;
};

struct BleuScore {
  double score = 0;                             // 0 to 100
  std::array<double, kBleuOrder> precisions{};  // in per cent, after smoothing
  double brevity_penalty = 1;
  BleuCounts counts;

  /// hyp_len / ref_len, or 0.
  double ratio() const;
  /// "BLEU = 41.02 72.3/48.5/34.1/24.0 (BP = 0.991 ratio = 0.991 hyp_len = 12000 ref_len = 12109)"
  std::string line(int digits = 2) const;
};

/// Returns BLEU of summed counts.
BleuScore bleu_of_counts(const BleuCounts& counts, const BleuConfig& config);

/// A test set whose references are counted once, to score many systems against it, e.g. a validation set
/// during training. Several threads may score at once.
class Bleu {
 public:
  /// references[r][i]: reference r of sentence i. Throws FormatError when there is none or they differ in
  /// length.
  Bleu(BleuConfig config, std::span<const std::vector<std::string>> references);
  ~Bleu();
  Bleu(Bleu&&) noexcept;
  Bleu& operator=(Bleu&&) noexcept;

  /// The number of sentences.
  size_t size() const;
  /// Returns the counts of each sentence. Throws FormatError when there are more or fewer hypotheses than
  /// sentences.
  std::vector<BleuCounts> counts(std::span<const std::string> hypotheses) const;
  /// BLEU of all sentences together.
  BleuScore score(std::span<const std::string> hypotheses) const;
  /// The settings as sacreBLEU writes them, e.g.
  /// "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|impl:multihead-0.1.0".
  std::string signature() const;
  const BleuConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns BLEU of hypotheses with one reference each.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, const std::vector<std::string>& references,
                      const BleuConfig& config = {});

}  // namespace mh
