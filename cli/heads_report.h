// What `multihead heads` and `multihead demo` print: tables for 80 columns, heat maps.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/reports/pictures/heat_map.h"
#include "multihead/nn/head_name.h"

namespace mh::cli {

/// A table for each attention, a line a head.
std::string heads_table(const HeadReport& report);
/// The best head for each relation, beside the best fixed offset; empty without trees.
std::string relations_table(const HeadReport& report, int64_t least_support);
/// The best heads of cross-attention beside the best fixed offset; empty without alignments.
std::string aligners_table(const HeadReport& report, size_t shown = 5);

/// 0.235 -> 24.
int whole_percent(double share);
/// An offset in words: "-2", "same place".
std::string word_offset(int offset);
/// What a head is asked of each word.
const char* question_of(Direction direction);

/// One head's heat map with its title.
std::string head_picture(const Observation& sentence, const HeadName& head, const HeatMapOptions& options);

/// What pictures are drawn with here: colours on a terminal that shows them (NO_COLOR is heeded), else
/// shades.
HeatMapOptions picture_options();

}  // namespace mh::cli
