#include "lab/demo/demo_page.h"

#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/reports/page/live_model.h"
#include "multihead/heads/reports/page/page_run.h"

namespace mh {

DemoPage write_demo_page(const DemoSettings& settings, const DemoResult& result) {
  const ScoredModel model = load_scored_model(settings.folder / "model");
  const auto test = [&](const char* ending) {
    return (settings.folder / "corpus" / "test").string() + ending;
  };
  FilesCorpus corpus(
      {.conllu = test(".en.conllu"), .target_conllu = test(".de.conllu"), .alignment = test(".align")});
  std::vector<PageText> texts = {{"the small dog sees a cat ."}};
  for (const DemoExample& example : result.examples) texts.push_back({example.source, example.translation});
  const PageRunOptions run{.name = "model",
                           .model = "model",
                           .corpus = &corpus,
                           .relations = true,
                           .alignment = true,
                           .walk = "encoder.0.self_attention"};
  const HeadsPageOptions options{.command = "multihead demo"};
  HeadsPage page(options);
  page.add_run(page_run(model, texts, run), texts);
  page.add_live(live_elements(model, texts, {.name = "model", .page = options, .run = run}));
  DemoPage written{.file = settings.folder / "heads.html", .title = page.title()};
  write_file_atomically(written.file, page.html());
  return written;
}

}  // namespace mh
