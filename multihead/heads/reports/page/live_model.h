// The model inside a page (`multihead view --live`): its files, the library as WebAssembly and the worker that runs it, as elements of
// the page. docs/file-formats.md, "A live page", describes them; viewer/src/live/ reads them.
//
//   page.add_live(mh::live_elements(model, texts, {.name = "demo"}));
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/heads/reports/page/live_weights.h"
#include "multihead/heads/reports/page/page_run.h"

namespace mh {

struct LiveModel {
  std::string name;  // of its folder
  LiveNumbers weights = LiveNumbers::kFile;
  HeadsPageOptions page = {};  // with which the page of another text is made; its largest size does not count
  PageRunOptions run = {};
};

/// All files of a folder that was read, or its .gguf file. Throws UsageError on those that a page cannot hold in this way: an adapter
/// beside its weights, a GGUF model in several files, a Transformer in a folder of its own; and FileError.
LiveFiles live_files(const ModelFolder& folder);

/// The elements, deflated and in base64. With rounded weights the page says how far the model is from that of the file: on its texts,
/// of a model that gives vectors alone on up to 100 sentences of the corpus (PageRunOptions), too. Throws as live_files(),
/// rounded_files(), rounding_error() and check_rounding() do.
LiveElements live_elements(const ScoredModel& model, const std::vector<PageText>& texts,
                           const LiveModel& live);

}  // namespace mh
