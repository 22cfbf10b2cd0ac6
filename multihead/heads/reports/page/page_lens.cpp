#include "multihead/heads/reports/page/page_lens.h"

#include <cstdint>

#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/reports/lens_json.h"
#include "multihead/heads/reports/page/page_texts.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// What the page shows of a lens.
HeadsJson shown_lens(HeadsJson json) {
  for (HeadsJson& value : json["values"]) {
    for (const char* left_out : {"position", "actual", "entropy", "divergence"}) value.erase(left_out);
    if (value.contains("best")) {
      for (HeadsJson& word : value["best"]) word.erase("id");
    }
  }
  constexpr int kDigits = 3;
  return with_short_numbers(std::move(json), kDigits);
}

}  // namespace

std::vector<std::string> page_lenses(const ScoredModel& model, const std::vector<PageText>& texts,
                                     const std::string& name, const TextLanguages& languages, Sites* sites) {
  const bool vectors = model.folder().gives_vectors_alone();
  // The output layer runs at each place and position, and a table of more columns is hard to read.
  constexpr PageAnalysis kLenses{
      .things = "lenses",
      .most_tokens = 64,
      .elsewhere = " `multihead heads lens` reads a longer one, at one token with --position."};
  return of_each_text(model, texts, kLenses, [&](size_t i, size_t) {
    const auto number = static_cast<int64_t>(i);
    ListSites listed(sites, {.texts = {&number, 1}});
    const std::string second = vectors && texts.size() > 1 ? texts[(i + 1) % texts.size()].source : "";
    const LensReport found = heads_lens(
        model, texts[i].source, second,
        {.target = vectors ? "" : texts[i].target, .languages = languages, .sites = listed.sites()});
    return written(shown_lens(HeadsJson::parse(lens_json(found, name))));
  });
}

}  // namespace mh
