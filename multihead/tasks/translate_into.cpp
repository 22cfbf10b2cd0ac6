#include "multihead/tasks/translate_into.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/language_codes.h"
#include "multihead/io/lines.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// Names come with the texts, as data: another one than the model has is no wrong use of a flag.
int32_t code_in_text(const ModelFolder& folder, const std::string& name, const std::string& where) {
  try {
    return named_target(folder, name, where);
  } catch (const UsageError& error) {
    throw FormatError(error.what());
  }
}

}  // namespace

std::vector<int32_t> target_codes(const ModelFolder& folder, std::span<const std::string> names,
                                  const LinesFrom& from) {
  std::vector<int32_t> codes;
  codes.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) codes.push_back(code_in_text(folder, names[i], from.at(i)));
  return codes;
}

std::vector<int32_t> take_target_column(const ModelFolder& folder, std::vector<std::string>& lines,
                                        const LinesFrom& from) {
  std::vector<int32_t> codes(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    if (is_blank(line)) continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      throw FormatError(fmt::format(
          "{}: expected the language of the translation, a tab and the text, got no tab", from.at(i)));
    }
    codes[i] = code_in_text(folder, line.substr(0, tab), from.at(i));
    line.erase(0, tab + 1);
  }
  return codes;
}

std::vector<std::vector<Hypothesis>> translate_into(const ModelFolder& folder, Translator& translator,
                                                    std::span<const std::vector<int32_t>> sources,
                                                    std::span<const int32_t> codes,
                                                    const TranslateOptions& options,
                                                    std::span<const std::vector<int32_t>> prefixes) {
  if (codes.empty()) return translator.translate(sources, options, prefixes);
  if (codes.size() != sources.size() || !prefixes.empty()) {
    throw UsageError(fmt::format(
        "expected a target language for each of {} texts, without prefixes; got {} and {} prefixes",
        sources.size(), codes.size(), prefixes.size()));
  }
  std::map<int32_t, std::vector<int64_t>> texts_of;  // by the code
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < sources.size(); ++i) {
    lengths.push_back(std::ssize(sources[i]));
    if (!sources[i].empty()) texts_of[codes[i]].push_back(static_cast<int64_t>(i));
  }
  const ListOffsets offsets = ListOffsets::of_pairs(lengths, {});
  std::vector<std::vector<Hypothesis>> all(sources.size());
  int64_t before = 0;  // texts that are done
  for (const auto& [code, texts] : texts_of) {
    std::vector<std::vector<int32_t>> of_code;
    for (const int64_t i : texts) of_code.push_back(sources[static_cast<size_t>(i)]);
    TranslateOptions into = options;
    complete_search(folder, {.target = code}, into.search);
    ListSites listed(options.sites, {.texts = texts, .count = std::ssize(sources), .offsets = &offsets});
    into.sites = listed.sites();
    if (options.progress) into.progress = [&](int64_t done) { options.progress(before + done); };
    auto found = translator.translate(of_code, into);
    for (size_t i = 0; i < texts.size(); ++i) all[static_cast<size_t>(texts[i])] = std::move(found[i]);
    before += std::ssize(texts);
  }
  return all;
}

}  // namespace mh
