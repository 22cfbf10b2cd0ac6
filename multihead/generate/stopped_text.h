// The text of new tokens, up to the first stop string: as it comes (sampling, greedy search), or for the
// hypotheses of a beam search.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/generate/stop_strings.h"
#include "multihead/generate/text_stream.h"
#include "multihead/text/tokenizer.h"

namespace mh {

class StoppedText {
 public:
  /// `tokenizer` must outlive this.
  StoppedText(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
              const std::vector<std::string>& stop)
      : stream_(tokenizer, prompt), stop_(stop) {}

  /// Adds a token. Returns what can be shown of the text.
  std::string add(int32_t token) { return shown(stop_.add(stream_.add(token))); }
  /// What is left, when no token comes any more.
  std::string finish() {
    std::string rest = stop_.add(stream_.finish());
    return shown(rest + stop_.finish());
  }
  /// Whether a stop string came: no token should follow.
  bool stopped() const { return stop_.found(); }
  /// All that could be shown.
  const std::string& all() const { return all_; }

 private:
  std::string shown(std::string piece) {
    all_ += piece;
    return piece;
  }

  TextStream stream_;
  StopStrings stop_;
  std::string all_;
};

/// Whether a StoppedText stops with the last of these tokens, if it did not stop before. Only as many tokens
/// are decoded as a stop string may have.
bool stops_at_last(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                   std::span<const int32_t> tokens, const std::vector<std::string>& stop);

}  // namespace mh
