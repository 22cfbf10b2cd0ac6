// CharacterMap: SentencePiece's precompiled character map, which rewrites short texts (NFKC and more).
#pragma once

#include <cstdint>
#include <string_view>

namespace mh {

/// A view of the map's bytes: the size of a trie in bytes (uint32, little-endian like all of it), the trie,
/// and replacements, each ended by a NUL. The trie is a double array (Darts): unit 0 is the root; from a unit
/// at p whose children start at offset o, byte c leads to unit p ^ o ^ c if that has the label c; a unit with
/// a leaf has its value, the place of a replacement, in unit p ^ o.
class CharacterMap {
 public:
  /// Throws FormatError, one line without a file's name, when the sizes do not fit or replacements are not
  /// UTF-8.
  static void check(std::string_view bytes);

  /// REQUIRES: check(bytes) has passed. Empty bytes: nothing is rewritten.
  explicit CharacterMap(std::string_view bytes);

  struct Match {
    size_t length = 0;  ///< bytes of the text that are replaced; 0: none
    std::string_view replacement = {};
  };
  /// The longest start of the text that the map rewrites, whole characters only.
  Match longest(std::string_view text) const { return find(text, false); }
  /// The shortest one.
  Match shortest(std::string_view text) const { return find(text, true); }

 private:
  Match find(std::string_view text, bool shortest) const;
  uint32_t unit(size_t at) const;

  std::string_view trie_;
  std::string_view replacements_;
};

}  // namespace mh
