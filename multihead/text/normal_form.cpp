// Unicode normal forms (UAX 15) that record where each character comes from, which those of utf8proc do
// not.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>

#include "multihead/base/error.h"
#include "multihead/text/unicode.h"

namespace mh {

namespace {

struct NewerRange {
  char32_t first;
  char32_t last;
};
bool is_in(std::span<const NewerRange> ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const NewerRange& r) { return r.first <= c && c <= r.last; });
}

/// Marks that are newer than the tables of Hugging Face, which do not sort them.
bool is_newer_combining(char32_t c) {
  static constexpr NewerRange kRanges[] = {
      {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
      {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
      {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
      {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
      {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
      {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42},
      {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
      {0x1E4EC, 0x1E4EF}};
  return c >= kRanges[0].first && is_in(kRanges, c);
}

}  // namespace

bool is_left_whole(char32_t c) {
  static constexpr NewerRange kRanges[] = {
      {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x10785}, {0x10787, 0x107B0},
      {0x107B2, 0x107BA}, {0x11938, 0x11938}, {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};
  return is_in(kRanges, c);
}

namespace {

/// Below this, every character is a starter and none is ever the second part of a composition.
constexpr char32_t kFirstCombining = 0x300;

int combining_class(char32_t c) {
  const int found = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  return found > 0 && is_newer_combining(c) ? 0 : found;
}

void append_decomposed(std::vector<Rewritten>& out, char32_t c, bool compatibility) {
  if (c >= 0x32FF && is_left_whole(c)) {
    out.push_back({c, 0});
    return;
  }
  std::array<utf8proc_int32_t, 32> parts;  // the longest decomposition has 18 characters
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                             options, &boundary);
  MH_ASSERT(count > 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()));
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    out.push_back({static_cast<char32_t>(parts[i]), i > 0 ? 1 : 0});
}

/// Canonical order: runs of marks sorted by combining class.
void sort_marks(std::vector<Rewritten>& text) {
  const auto is_starter = [](const Rewritten& r) { return combining_class(r.character) == 0; };
  for (auto run = text.begin(); run != text.end();) {
    run = std::find_if_not(run, text.end(), is_starter);
    const auto end = std::find_if(run, text.end(), is_starter);
    std::stable_sort(run, end, [](const Rewritten& a, const Rewritten& b) {
      return combining_class(a.character) < combining_class(b.character);
    });
    run = end;
  }
}

/// The primary composite of a and b, or 0.
char32_t composed(char32_t a, char32_t b) {
  // utf8proc 2.8 lets U+11A7, which is no trailing consonant, vanish into the syllable before it.
  if (b < kFirstCombining || b == 0x11A7) return 0;
  std::array<utf8proc_int32_t, 3> pair = {static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b),
                                          0};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  return utf8proc_normalize_utf32(pair.data(), 2, options) == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

void compose(std::vector<Rewritten>& text) {
  constexpr int kNone = -1;
  size_t size = 0;
  ptrdiff_t starter = kNone;
  int last_class = kNone;  // of the marks between the starter and here; none: adjacent
  for (const Rewritten& r : text) {
    const int this_class = combining_class(r.character);
    if (starter != kNone && (last_class == kNone || last_class < this_class)) {
      if (const char32_t c = composed(text[starter].character, r.character)) {
        text[starter] = {c, text[starter].change + r.change - 1};
        continue;
      }
    }
    if (this_class == 0) {
      starter = static_cast<ptrdiff_t>(size);
      last_class = kNone;
    } else {
      last_class = this_class;
    }
    text[size++] = r;
  }
  text.resize(size);
}

using Stable = std::array<bool, kFirstCombining>;

/// Which of the first characters are their own NFC or NFKC, whatever stands before them.
const Stable& stable_characters(bool compatibility) {
  static const std::array<Stable, 2> tables = [] {
    std::array<Stable, 2> made;
    for (int k = 0; k < 2; ++k) {
      for (char32_t c = 0; c < kFirstCombining; ++c) {
        std::vector<Rewritten> one;
        append_decomposed(one, c, k == 1);
        compose(one);
        made[k][c] = one.size() == 1 && one[0].character == c;
      }
    }
    return made;
  }();
  return tables[compatibility ? 1 : 0];
}

}  // namespace

std::vector<Rewritten> rewrite_normal_form(std::string_view text, NormalForm form) {
  const bool compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const Stable& stable = stable_characters(compatibility);
  std::vector<Rewritten> result;
  result.reserve(text.size());
  std::vector<Rewritten> run;
  for (size_t at = 0; at < text.size();) {
    const char32_t first = next_character(text, at);
    const auto combining_follows = [&] {
      return at < text.size() && static_cast<unsigned char>(text[at]) >= 0xCC;  // 0xCC 0x80 is U+0300
    };
    const bool as_it_is = first < 0x80 || (composes && first < kFirstCombining && stable[first]);
    if (as_it_is && !combining_follows()) {
      result.push_back({first, 0});
      continue;
    }
    run.clear();
    append_decomposed(run, first, compatibility);
    while (combining_follows()) append_decomposed(run, next_character(text, at), compatibility);
    sort_marks(run);
    if (composes) compose(run);
    result.insert(result.end(), run.begin(), run.end());
  }
  return result;
}

std::string normal_form(std::string_view text, NormalForm form) {
  std::string result;
  result.reserve(text.size());
  for (const Rewritten& r : rewrite_normal_form(text, form)) append_utf8(result, r.character);
  return result;
}

}  // namespace mh
