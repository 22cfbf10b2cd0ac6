// SiteReplacement: other numbers in place of a value at a site, or of some of its rows and columns; or numbers that are added to it.
//
// What is meant is counted in the list of texts that a task was given, whatever batches it reads them in (nn/list_sites.h): a
// sequence is a text of the list, a position one of its tokens, and numbers for many rows have them text by text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/nn/sites.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// What becomes of the value that is there. Added numbers are multiplied by a strength, and a gradient flows through the sum.
enum class SiteChange { kReplace, kAdd };

/// What to put or to add at a site, for the rows and columns that are meant; sequences, positions and heads are counted from 0.
struct SiteReplacement {
  std::string site = {};                 // its name, or a pattern (* stands for any characters)
  std::optional<int32_t> sequence = {};  // a text of the list; none: all of them
  std::optional<int32_t> position = {};  // none: all of the sequence
  std::optional<int> head = {};          // none: all columns
  /// [1, columns meant], put into every row that is meant; or [rows meant, columns meant], the rows of all texts of the list
  /// in its order. Of scores and weights as many columns as the longest text has keys, or as the texts that are meant have.
  Tensor numbers = {};
  float strength = 1;  // of kAdd
  SiteChange change = SiteChange::kReplace;

  /// "site 'encoder.states', sequence 3, position 5".
  std::string in_words() const;
};

/// Throws UsageError on numbers that are not finite, with the strength and without, on a strength of what is not added, and on a sequence, a position or a head below 0.
void check_replacement(const SiteReplacement& wanted);
/// Throws UsageError on a head that the site does not have, ShapeError on other columns.
void check_replacement(const SiteReplacement& wanted, const SiteShape& site);

/// The value [N, columns] at a site with the numbers in their places, or added there; the value itself where the batch has none
/// of the rows. Throws UsageError on a sequence or a position that the list does not have, ShapeError on numbers of another
/// shape.
Var replaced(Tape& tape, const SiteReplacement& wanted, const Site& where, const SiteValue& at, Var value);

}  // namespace mh
