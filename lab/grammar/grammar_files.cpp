#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "lab/grammar/grammar.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/data/conllu.h"

namespace mh {
namespace {

constexpr std::string_view kParts[] = {"train", "valid", "test", "compositional"};
constexpr std::string_view kEndings[] = {"en", "de", "en.conllu", "de.conllu", "align"};

/// The folder will be replaced: it must be new, empty, or hold nothing but what was written here.
void refuse_foreign_files(const std::filesystem::path& folder) {
  std::error_code error;
  const auto status = std::filesystem::status(folder, error);
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_directory(status)) {
    throw FileError(fmt::format("cannot write {}: it is a file; name a folder", folder.string()));
  }
  std::set<std::string> ours;
  for (const auto part : kParts) {
    for (const auto ending : kEndings) ours.insert(fmt::format("{}.{}", part, ending));
  }
  std::filesystem::directory_iterator files(folder, error);
  if (error) throw FileError(fmt::format("cannot read {}: {}", folder.string(), error.message()));
  for (const auto& file : files) {
    if (!ours.contains(file.path().filename().string())) {
      throw FileError(
          fmt::format("cannot replace {}: it holds {}, which is no part of the data; name a new folder",
                      folder.string(), file.path().filename().string()));
    }
  }
}

void add_part(FolderWriter& writer, std::string_view part, std::span<const GrammarSentence> sentences) {
  std::string files[std::size(kEndings)];
  for (size_t i = 0; i < sentences.size(); ++i) {
    const GrammarSentence& sentence = sentences[i];
    const std::string id = fmt::format("{}-{}", part, i + 1);
    files[0].append(text_of(sentence.source)) += '\n';
    files[1].append(text_of(sentence.target)) += '\n';
    files[2] += format_conllu(sentence.source, id);
    files[3] += format_conllu(sentence.target, id);
    files[4].append(format_pharaoh(sentence.alignment)) += '\n';
  }
  for (size_t i = 0; i < std::size(kEndings); ++i)
    writer.add(fmt::format("{}.{}", part, kEndings[i]), files[i]);
}

}  // namespace

void write_grammar_corpus(const GrammarCorpus& corpus, const std::filesystem::path& folder) {
  refuse_foreign_files(folder);
  FolderWriter writer(folder);
  add_part(writer, kParts[0], corpus.train);
  add_part(writer, kParts[1], corpus.valid);
  add_part(writer, kParts[2], corpus.test);
  add_part(writer, kParts[3], corpus.compositional);
  writer.commit();
}

}  // namespace mh
