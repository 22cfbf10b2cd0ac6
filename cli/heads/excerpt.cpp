#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/heads/where_report.h"
#include "multihead/base/terminal_text.h"
#include "multihead/base/utf8.h"
#include "multihead/text/unicode.h"

namespace mh::cli {
namespace {

struct ExcerptCharacter {
  std::string_view bytes;
  int width = 0;
  int part = -1;      // that it belongs to
  bool keep = false;  // in the excerpt
  bool space = false;
};

/// What cannot stand in a line becomes a dot, white space one space.
std::vector<ExcerptCharacter> characters_of(const std::string& text) {
  std::vector<ExcerptCharacter> all;
  for (const auto& [bytes, width] : terminal_characters(text)) {
    size_t at = 0;
    const char32_t character = next_character(bytes, at);
    if (is_whitespace(character)) {
      all.push_back({.bytes = " ", .width = 1, .space = true});
    } else if (is_unprintable(character)) {
      all.push_back({.bytes = ".", .width = 1});
    } else {
      all.push_back({.bytes = bytes, .width = width});
    }
  }
  return all;
}

/// Keeps of a marked part what has room, from its beginning.
int keep_part(std::vector<ExcerptCharacter>& all, const MarkedPart& part, int number, int room) {
  int used = 0;
  const auto end = std::min(static_cast<size_t>(std::max(part.end, 0)), all.size());
  for (auto i = static_cast<size_t>(std::max(part.begin, 0)); i < end; ++i) {
    if (all[i].part >= 0) continue;
    if (used + all[i].width > room) break;
    all[i].part = number;
    all[i].keep = true;
    used += all[i].width;
  }
  return used;
}

/// Keeps one more character next to each that is kept, as long as there is room, and so on.
void keep_around(std::vector<ExcerptCharacter>& all, int room) {
  for (bool grown = true; grown;) {
    grown = false;
    std::vector<size_t> next;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].keep && ((i > 0 && all[i - 1].keep) || (i + 1 < all.size() && all[i + 1].keep)))
        next.push_back(i);
    }
    for (const size_t i : next) {
      if (all[i].width > room) return;
      room -= all[i].width;
      all[i].keep = grown = true;
    }
  }
}

/// Lets go of parts of words at the places where the text is cut: from `at` on, in steps of `step`, up to the first space.
void drop_part_of_word(std::vector<ExcerptCharacter>& all, size_t at, std::ptrdiff_t step) {
  size_t i = at;
  while (i < all.size() && all[i].keep && all[i].part < 0 && !all[i].space) i += static_cast<size_t>(step);
  if (i >= all.size() || !all[i].keep || !all[i].space) return;
  for (size_t j = at; j != i; j += static_cast<size_t>(step)) all[j].keep = false;
  all[i].keep = false;
}

void drop_parts_of_words(std::vector<ExcerptCharacter>& all) {
  std::vector<size_t> begins, ends;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].keep && i > 0 && !all[i - 1].keep && !all[i - 1].space) begins.push_back(i);
    if (all[i].keep && i + 1 < all.size() && !all[i + 1].keep && !all[i + 1].space) ends.push_back(i);
  }
  for (const size_t i : begins) drop_part_of_word(all, i, 1);
  for (const size_t i : ends) drop_part_of_word(all, i, -1);
}

}  // namespace

std::string excerpt(const std::string& text, const std::vector<MarkedPart>& parts, int width) {
  std::vector<ExcerptCharacter> all = characters_of(text);
  constexpr int kEllipsis = 2, kMarks = 2;  // columns, with the space beside it
  int whole = kMarks * static_cast<int>(parts.size());
  for (const ExcerptCharacter& character : all) whole += character.width;
  int room = width - kMarks * static_cast<int>(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) room -= keep_part(all, parts[p], static_cast<int>(p), width / 4);
  if (whole <= width) {
    for (ExcerptCharacter& character : all) character.keep = true;
  } else {
    keep_around(all, room - kEllipsis * (static_cast<int>(parts.size()) + 1) - 1);
    drop_parts_of_words(all);
  }

  std::string line;
  int open = -1;
  const auto change_to = [&](int part) {
    if (part == open) return;
    if (open >= 0) {
      const MarkedPart& was = parts[static_cast<size_t>(open)];
      line += was.close + (was.colour.empty() ? "" : "\x1b[0m");
    }
    if (part >= 0) line += parts[static_cast<size_t>(part)].colour + parts[static_cast<size_t>(part)].open;
    open = part;
  };
  bool gap = false;
  for (const ExcerptCharacter& character : all) {
    if (!character.keep) {
      gap = true;
      continue;
    }
    if (gap) {
      change_to(-1);
      line += line.empty() ? "\u2026 " : " \u2026 ";
    }
    gap = false;
    change_to(character.part);
    line += character.bytes;
  }
  change_to(-1);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + (gap ? " \u2026" : "");
}

}  // namespace mh::cli
