// Whether a model is computed right: everything that shows at its sites (docs/sites.md), its logits and its greedy texts beside
// what Hugging Face's transformers computes in double precision: `multihead check`.
//
//   const mh::ModelFolder folder = mh::load_model_folder("model");
//   const mh::CheckReport report = mh::check_model(folder, {}, ask);   // ask runs site_oracle() (check_request.h)
//   report.right(), report.first, report.parts
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/check/check_request.h"
#include "multihead/check/site_rows.h"
#include "multihead/io/config.h"
#include "multihead/text/text_languages.h"

namespace mh {

class SafetensorsFile;

struct CheckOptions {
  float tolerance = 1e-4f;
  std::vector<std::string> texts = {};
  int32_t new_tokens = 12;
  TextLanguages languages = {};

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Check";
    v("tolerance", tolerance, {.low = 1e-9f, .high = 1},
      {.group = kGroup,
       .help =
           "Largest relative difference of a site that is right: the largest |a - b| / max(|b|, median |b|) "
           "of its rows, a here and b in transformers"});
    v("text", texts, {},
      {.group = kGroup, .help = "Compare on this text instead of the usual four", .value = "TEXT"});
    v("new_tokens", new_tokens, {.low = 0, .high = 1000},
      {.group = kGroup, .help = "Tokens of each greedy text that is compared"});
    languages.visit(v);
  }
};

inline constexpr size_t kCheckedRuns = 3;

/// Relative differences (row_difference.h) by CheckedRun; none: the run does not meet the site.
using RunDifferences = std::array<std::optional<double>, kCheckedRuns>;
/// The largest of them.
double largest(const RunDifferences& differences);

struct SiteDifference {
  std::string site;
  RunDifferences differences = {};
  size_t text = 0;  // where the largest one is, and in which row of that text
  int64_t row = 0;
};

/// The largest differences of a part of a site's name over layers and heads: "decoder.self_attention.scores".
struct PartDifference {
  std::string part;
  RunDifferences differences = {};
};

/// The first token of a greedy text that differs.
struct GreedyDifference {
  size_t text = 0, token = 0;
  std::optional<int32_t> here = {};  // none: the text ended
  int32_t there = 0;
  double margin = 0;  // of transformers' token before the next one, as a part of its largest logit
};

struct CheckReport {
  std::string model_type = {}, weights_hash = {};
  std::string multihead = {}, python = {}, torch = {}, transformers = {}, numpy = {};  // their versions
  std::string executable = {};                                                         // the Python that ran
  std::string transformers_class = {};  // that computed the model
  CheckOptions options = {};
  CheckTexts texts = {};
  std::vector<SiteDifference> sites = {};  // in the order of a forward pass
  std::vector<PartDifference> parts = {};  // likewise
  std::vector<std::string> not_compared = {};
  std::optional<SiteDifference> first = {};  // the first site that differs by more than the tolerance
  size_t greedy_texts = 0;                   // that were compared
  size_t greedy_ties = 0;                    // that differ where two tokens are alike within the tolerance
  std::optional<GreedyDifference> greedy = {};
  bool threads_agree = true;  // one thread gives the same bits as two
  std::vector<std::string> remarks = {};

  bool right() const { return !first && !greedy && threads_agree; }
};

/// Asks transformers and compares. The library starts no program: `ask` does. Throws Error with what cannot be done in a line:
/// a model that is no folder or GGUF file, too little memory, what `ask` throws, an answer that does not fit.
CheckReport check_model(const ModelFolder& folder, const CheckOptions& options, const AskOracle& ask);
/// The same with an answer that is there already.
CheckReport check_model(const ModelFolder& folder, const CheckOptions& options,
                        const SafetensorsFile& answer);

/// Throws Error when `available` bytes are not enough for the model in double precision beside the one here.
void check_memory(const ModelFolder& folder, int64_t available);

}  // namespace mh
