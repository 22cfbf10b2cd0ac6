// The ends of a text, of which one is cut off where a model reads fewer tokens.
#pragma once

namespace mh {

enum class TextEnd { kStart, kEnd };

}  // namespace mh
