#include "multihead/tasks/translate_into.h"

#include <fmt/format.h>

#include <map>
#include <type_traits>
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
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) texts_of[codes[i]].push_back(static_cast<int64_t>(i));
  }
  std::vector<std::vector<Hypothesis>> all(sources.size());
  int64_t before = 0;  // texts that are done
  for (const auto& [code, texts] : texts_of) {
    TranslateOptions into = options;
    complete_search(folder, {.target = code}, into.search);
    if (options.progress) into.progress = [&](int64_t done) { options.progress(before + done); };
    auto found = translate_some(folder, translator, texts, sources, {}, into);
    for (size_t i = 0; i < texts.size(); ++i) all[static_cast<size_t>(texts[i])] = std::move(found[i]);
    before += std::ssize(texts);
  }
  return all;
}

std::vector<std::vector<Hypothesis>> translate_some(const ModelFolder& folder, Translator& translator,
                                                    std::span<const int64_t> numbers,
                                                    std::span<const std::vector<int32_t>> sources,
                                                    std::span<const int32_t> codes,
                                                    const TranslateOptions& options,
                                                    std::span<const std::vector<int32_t>> prefixes) {
  const auto some_of = [&](const auto& all) {
    std::vector<std::remove_cvref_t<decltype(all[0])>> some;
    if (all.empty()) return some;
    for (const int64_t i : numbers) some.push_back(all[static_cast<size_t>(i)]);
    return some;
  };
  std::vector<int64_t> lengths;
  for (const auto& source : sources) lengths.push_back(std::ssize(source));
  const ListOffsets offsets = ListOffsets::of_pairs(lengths, {});
  ListSites listed(options.sites, {.texts = numbers, .count = std::ssize(sources), .offsets = &offsets});
  TranslateOptions with_sites = options;
  with_sites.sites = listed.sites();
  return translate_into(folder, translator, some_of(sources), some_of(codes), with_sites, some_of(prefixes));
}

}  // namespace mh
