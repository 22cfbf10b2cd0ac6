// The model inside a page (`multihead view --live`): its files, the library as WebAssembly and the worker that runs it, as elements of
// the page. docs/file-formats.md, "A live page", describes them; viewer/src/live/ reads them.
//
//   page.add_live(mh::live_elements({.name = "demo", .files = mh::live_files(folder)}));
#pragma once

#include <map>
#include <string>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/reports/page/page_run.h"

namespace mh {

/// Its files by their names, as load_scored_model() reads them.
using LiveFiles = std::map<std::string, std::string>;

struct LiveModel {
  std::string name;  // of its folder
  LiveFiles files;
  HeadsPageOptions page = {};  // with which the page of another text is made; its largest size does not count
  PageRunOptions run = {};
};

/// All files of a folder that was read, or its .gguf file. Throws UsageError on those that a page cannot hold in this way: an adapter
/// beside its weights, a GGUF model in several files, a Transformer in a folder of its own; and FileError.
LiveFiles live_files(const ModelFolder& folder);

/// The elements, deflated and in base64.
std::string live_elements(const LiveModel& model);

}  // namespace mh
