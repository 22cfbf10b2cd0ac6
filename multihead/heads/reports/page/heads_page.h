// The page of `multihead view`: the heads of models on texts in one HTML file that needs nothing else.
//
//   const mh::ModelFolder folder = mh::load_model_folder("minilm");
//   mh::HeadsPage page({.command = "multihead view minilm 'two dogs run .'"});
//   page.add_run({.name = "minilm", .folder = &folder, .evidence = evidence}, {{"two dogs run ."}});
//   std::string html = page.html();
//
// docs/file-formats.md, "The data of a page", describes what is in it; viewer/ draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/reports/page/page_evidence.h"
#include "multihead/nn/sites.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct PageText {
  std::string source;
  std::string target = {};  // of a translator; empty: the greedy translation
};

/// The texts as those of a corpus, with their translations where the first has one.
HeadsText corpus_text(const std::vector<PageText>& texts);

/// How the runs of a page belong together.
enum class PageMode {
  kOne,      // one model
  kCompare,  // two models on the same texts
  kTime,     // checkpoints of one training, in order
};

struct PageRun {
  std::string name;  // "minilm", "update 500"
  const ModelFolder* folder = nullptr;
  std::optional<int64_t> update = std::nullopt;  // of a checkpoint
  std::string hash = {};                         // SHA-256 of the weights (folders/weights_hash.h)
  PageEvidence evidence = {};
  /// By text, JSON as page_attributions() gives it (heads/reports/page/page_attribution.h); empty: none.
  std::vector<std::string> attributions = {};
  /// In the same way as page_contributions() and page_lenses() give them (page_contributions.h, page_lens.h).
  std::vector<std::string> contributions = {}, lenses = {};
  /// JSON as page_circuit(), page_retrieval() and page_aligners() give it (page_reports.h); empty: none.
  std::string circuit = {}, retrieval = {}, aligners = {};
  /// The attention of the first text that is walked through step by step; empty: none.
  std::string walk = {};
  TextLanguages languages = {};
  Sites* sites = nullptr;                                    // e.g. SiteValues that mute heads
  std::function<void(const std::string&)> remark = nullptr;  // as ObserveTextOptions::remark
};

inline constexpr const char* kPageGroup = "The page";

struct HeadsPageOptions {
  std::string command = {};  // what the foot of the page says it was made with
  PageMode mode = PageMode::kOne;
  std::string head = {};  // empty: the one with the best evidence
  int64_t most_megabytes = 32;

  size_t most_bytes() const { return static_cast<size_t>(most_megabytes) << 20; }

  template <class V>
  void visit(V& v) {
    v("head", head, {},
      {.group = kPageGroup,
       .help = "Open at this head; without: at the one with the best evidence",
       .value = "HEAD"});
    v("max_size", most_megabytes, {.low = 1, .high = 1024},
      {.group = kPageGroup, .help = "Largest page, in MB", .rare = true});
  }
};

/// The model itself, as elements of a page (live_model.h makes them).
struct LiveElements {
  std::string html = {};
  /// The bytes that they would have at most with other weights (live_weights.h), where these are fewer, by the weights' name.
  std::vector<std::pair<std::string, size_t>> smaller = {};
};

class HeadsPage {
 public:
  explicit HeadsPage(HeadsPageOptions options);
  ~HeadsPage();

  /// Runs the model on the texts. Throws UsageError on a run whose attentions are not those of the first (of PageMode::kTime), on
  /// another kind of model (of kCompare), on a walk that it does not have, and when the page grows beyond most_megabytes, saying
  /// what to leave out; FormatError on an empty text and on another number of attributions, contributions or lenses than of texts; and as observe_text()
  /// does.
  void add_run(const PageRun& run, const std::vector<PageText>& texts);
  /// Puts the model itself into the page, which then answers.
  void add_live(LiveElements elements) { live_ = std::move(elements); }
  /// Throws UsageError on a head that the model does not have, when there is no run, and when the page has more than most_megabytes, saying
  /// which weights of the model in it would make it fit.
  std::string html() const;
  /// What html() has of the models and texts, packed as docs/file-formats.md says: a page that is open already may show it. Throws likewise.
  std::string data() const;
  /// The head that it opens at, in words: "Encoder 0, head 2: article → noun, 97 %".
  std::string title() const;

 private:
  struct Data;
  HeadsPageOptions options_;
  std::unique_ptr<Data> data_;
  LiveElements live_;
};

}  // namespace mh
