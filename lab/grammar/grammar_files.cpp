#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "lab/grammar/grammar.h"
#include "multihead/base/file.h"
#include "multihead/data/conllu.h"

namespace mh {
namespace {

constexpr std::string_view kParts[] = {"train", "valid", "test", "compositional"};
constexpr std::string_view kEndings[] = {"en", "de", "en.conllu", "de.conllu", "align"};

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

void check_grammar_folder(const std::filesystem::path& folder) {
  // It will be replaced: it must be new, empty, or hold nothing but what was written here.
  std::set<std::string, std::less<>> ours;
  for (const auto part : kParts) {
    for (const auto ending : kEndings) ours.insert(fmt::format("{}.{}", part, ending));
  }
  refuse_foreign_files(folder, [&](std::string_view name) { return ours.contains(name); });
  check_can_write_folder(folder);
}

void write_grammar_corpus(const GrammarCorpus& corpus, const std::filesystem::path& folder) {
  check_grammar_folder(folder);
  FolderWriter writer(folder);
  add_part(writer, kParts[0], corpus.train);
  add_part(writer, kParts[1], corpus.valid);
  add_part(writer, kParts[2], corpus.test);
  add_part(writer, kParts[3], corpus.compositional);
  writer.commit();
}

}  // namespace mh
