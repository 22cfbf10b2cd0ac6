// A corpus in files, read block by block: plain or gzip text, CoNLL-U trees, Pharaoh alignments.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/io/lines.h"

namespace mh {

struct CorpusFiles {
  /// Source lines. Without them, and without `lines`, the words of the trees are the text, with one space between them; so are
  /// the targets those of their trees.
  std::string input = {};
  std::optional<std::vector<std::string>> lines = std::nullopt;  // source lines that are here already
  std::string name = "standard input";                           // what errors call those
  std::string target = {}, pairs = {};                           // a line for each source line
  std::string conllu = {}, target_conllu = {}, alignment = {};   // a sentence for each source line
  TextLimits limits = {};
};

/// Throws FileError when a file cannot be read, FormatError on what it should not contain, and when the files have not one
/// line, tree or alignment for each source line.
class FilesCorpus final : public HeadsCorpus {
 public:
  explicit FilesCorpus(CorpusFiles files);
  ~FilesCorpus() override;

  HeadsText next() override;
  void restart() override;
  std::string name() const override;

 private:
  struct Readers;
  CorpusFiles files_;
  std::unique_ptr<Readers> readers_;
};

}  // namespace mh
