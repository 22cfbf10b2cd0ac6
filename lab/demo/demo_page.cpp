#include "lab/demo/demo_page.h"

#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/scored_model.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/heads/reports/page/page_attribution.h"

namespace mh {

DemoPage write_demo_page(const DemoSettings& settings, const DemoResult& result) {
  const ScoredModel model = load_scored_model(settings.folder / "model");
  const ModelFolder& folder = model.folder();
  const auto test = [&](const char* ending) {
    return (settings.folder / "corpus" / "test").string() + ending;
  };
  FilesCorpus corpus(
      {.conllu = test(".en.conllu"), .target_conllu = test(".de.conllu"), .alignment = test(".align")});
  const PageEvidenceOptions options{
      .model = "model", .corpus = "test.en.conllu", .relations = true, .alignment = true};
  PageEvidence evidence = page_evidence(folder, corpus, options);
  std::vector<PageText> texts = {{"the small dog sees a cat ."}};
  for (const DemoExample& example : result.examples) texts.push_back({example.source, example.translation});
  TextCorpus shown(corpus_text(texts));
  add_importance(model, corpus, shown, options, evidence);
  HeadsPage page({.command = "multihead demo"});
  page.add_run({.name = "model",
                .folder = &folder,
                .hash = weights_hash(folder),
                .evidence = evidence,
                .attributions = page_attributions(model, texts, "model"),
                .walk = "encoder.0.self_attention"},
               texts);
  DemoPage written{.file = settings.folder / "heads.html", .title = page.title()};
  write_file_atomically(written.file, page.html());
  return written;
}

}  // namespace mh
