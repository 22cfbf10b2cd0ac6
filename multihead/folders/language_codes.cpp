#include "multihead/folders/language_codes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/folders/language_names.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/tokenizer_settings.h"
#include "multihead/generate/search.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/text_languages.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

bool all_of(std::string_view text, char from, char to) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return c >= from && c <= to; });
}

bool is_language(std::string_view text) {
  return (text.size() == 2 || text.size() == 3) && all_of(text, 'a', 'z');
}

/// The name of the language whose code is a token: "__de__", "deu_Latn" or "de_DE". Empty: it is no code.
std::string_view language_of(std::string_view token) {
  if (token.size() > 4 && token.starts_with("__") && token.ends_with("__")) {
    const std::string_view name = token.substr(2, token.size() - 4);
    return is_language(name) ? name : std::string_view();
  }
  const size_t end = token.find('_');
  if (end == std::string_view::npos || !is_language(token.substr(0, end))) return {};
  const std::string_view place = token.substr(end + 1);
  const bool region = place.size() == 2 && all_of(place, 'A', 'Z');
  const bool script =
      place.size() == 4 && all_of(place.substr(0, 1), 'A', 'Z') && all_of(place.substr(1), 'a', 'z');
  return region || script ? token : std::string_view();
}

/// Whether a name is that of the language, perhaps by another code and without the script or region.
bool names_language(std::string_view name, std::string_view language) {
  const size_t cut = name.find('_'), of_language = language.find('_');
  if (!same_language(name.substr(0, cut), language.substr(0, of_language))) return false;
  return cut == std::string_view::npos ||
         (of_language != std::string_view::npos && name.substr(cut) == language.substr(of_language));
}

/// All of a few, of many how many there are.
std::string names_of(const LanguageCodes& codes) {
  constexpr size_t kFew = 60;
  if (codes.ids.size() > kFew) return fmt::format("{} (multihead info lists them)", codes.ids.size());
  std::vector<std::string_view> names;
  for (const auto& [name, id] : codes.ids) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The usual pair, where nothing else is asked for.
LanguagePair with_usual(const LanguageCodes& codes, const LanguagePair& pair) {
  return {.source = pair.source ? pair.source : codes.usual.source,
          .target = pair.target ? pair.target : codes.usual.target};
}

int32_t required(const ModelFolder& folder, const std::optional<int32_t>& code, const char* side,
                 const char* key) {
  if (code) return *code;
  throw UsageError(fmt::format(
      "{} translates many languages, and nothing says its {} language: give `{}_language`, or put "
      "{} into tokenizer_config.json; it has {}",
      folder.path.string(), side, side, key, names_of(*folder.languages)));
}

const LanguageCodes& codes_in(const ModelFolder& folder, std::string_view asked) {
  if (folder.languages) return *folder.languages;
  throw UsageError(fmt::format("{}: {} has no codes of languages among which one could choose; leave it out",
                               asked, folder.path.string()));
}

int32_t source_code(const ModelFolder& folder, const LanguagePair& pair) {
  return required(folder, with_usual(*folder.languages, pair).source, "source", "src_lang");
}
int32_t target_code(const ModelFolder& folder, const LanguagePair& pair) {
  return required(folder, with_usual(*folder.languages, pair).target, "target", "tgt_lang");
}

}  // namespace

std::string LanguageCodes::name_of(int32_t id) const {
  const auto found =
      std::find_if(ids.begin(), ids.end(), [&](const auto& entry) { return entry.second == id; });
  return found == ids.end() ? "" : found->first;
}

int32_t LanguageCodes::id_of(std::string_view name, std::string_view asked) const {
  if (const auto found = ids.find(name); found != ids.end()) return found->second;
  std::vector<std::string_view> fit;
  for (const auto& [other, id] : ids) {
    if (names_language(name, other)) fit.push_back(other);
  }
  if (fit.size() == 1) return ids.find(fit[0])->second;
  if (!fit.empty()) {
    throw UsageError(
        fmt::format("{}: {} may be {}; give one of these", asked, in_quotes(name), fmt::join(fit, ", ")));
  }
  throw UsageError(fmt::format("{}: {} is no language of this model, which has {}", asked, in_quotes(name),
                               names_of(*this)));
}

std::optional<LanguageCodes> codes_of(const TokenizerSettings& settings, const TokenizerParts& parts) {
  const ChosenClass chosen = choose_tokenizer_class(settings.model_type, settings.named_class, false);
  if (chosen.codes == CodePlace::kNone || !settings.translates) return std::nullopt;
  LanguageCodes codes;
  for (const AddedToken& token : parts.added_tokens) {
    if (const std::string_view name = language_of(token.content); !name.empty())
      codes.ids.emplace(name, token.id);
  }
  if (codes.ids.empty()) return std::nullopt;
  const bool behind =
      chosen.kind == TokenizerClass::kNllb && settings.options.legacy_behaviour.value_or(false);
  codes.place = behind ? CodePlace::kBehind : chosen.codes;
  codes.source_name = settings.options.language.value_or("");
  codes.target_name = settings.target_language;
  return codes;
}

void complete_codes(const ModelFolder& folder, LanguageCodes& codes) {
  const auto find = [&](const std::string& name) -> std::optional<int32_t> {
    const auto found = codes.ids.find(name);
    return found == codes.ids.end() ? std::nullopt : std::optional(found->second);
  };
  const int32_t start = folder.model->facts().start_id;
  codes.starts_decoder = !codes.name_of(start).empty();
  codes.usual.source = find(codes.source_name);
  if (codes.starts_decoder) {
    codes.usual.target = start;
  } else {
    codes.usual.target =
        folder.generation.forced_first ? folder.generation.forced_first : find(codes.target_name);
  }
}

LanguagePair language_pair(const ModelFolder& folder, const TextLanguages& languages) {
  const std::string source = languages.source_language.value_or(""),
                    target = languages.target_language.value_or("");
  LanguagePair pair;
  if (!source.empty()) {
    constexpr const char* kAsked = "`source_language`";
    pair.source = codes_in(folder, kAsked).id_of(source, kAsked);
  }
  if (!target.empty()) pair.target = named_target(folder, target, "`target_language`");
  return pair;
}

int32_t named_target(const ModelFolder& folder, std::string_view name, std::string_view asked) {
  const LanguageCodes& codes = codes_in(folder, asked);
  const int32_t code = codes.id_of(name, asked);
  if (codes.starts_decoder && code != codes.usual.target) {
    throw UsageError(fmt::format("{}: {} writes {} alone, whose code is its decoder_start_token_id", asked,
                                 folder.path.string(), codes.name_of(*codes.usual.target)));
  }
  return code;
}

std::vector<int32_t> before_source(const ModelFolder& folder, const LanguagePair& pair) {
  if (!folder.languages) return {};
  const int32_t code = source_code(folder, pair);  // also where it stands behind the text
  return folder.languages->place == CodePlace::kBefore ? std::vector<int32_t>{code} : std::vector<int32_t>();
}

std::vector<int32_t> before_target(const ModelFolder& folder, const LanguagePair& pair) {
  if (!folder.languages || folder.languages->starts_decoder) return {};
  return {target_code(folder, pair)};
}

std::vector<int32_t> source_end(const ModelFolder& folder, const LanguagePair& pair) {
  std::vector<int32_t> end{folder.model->facts().eos_id};
  if (folder.languages && folder.languages->place == CodePlace::kBehind)
    end.push_back(source_code(folder, pair));
  return end;
}

void complete_search(const ModelFolder& folder, const LanguagePair& pair, SearchOptions& options) {
  const bool has_code = folder.languages && !folder.languages->starts_decoder;
  options.forced_first = has_code ? target_code(folder, pair) : folder.generation.forced_first;
  folder.generation.complete(options);
}

bool knows_languages(const ModelFolder& folder, const LanguagePair& pair) {
  if (!folder.languages) return true;
  const LanguagePair known = with_usual(*folder.languages, pair);
  return known.source && known.target;
}

}  // namespace mh
