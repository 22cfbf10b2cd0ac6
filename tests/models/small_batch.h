// Small batches of sentences, and checks of models that several tests of this folder share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/models/decoding.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/support/scratch_folder.h"

namespace mh::test {

inline std::vector<float> copy_of(ConstMatrixView view) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < view.rows; ++i) numbers.insert(numbers.end(), view.row(i), view.row(i) + view.cols);
  return numbers;
}

/// Logits of every target token, [N, V] row by row.
inline std::vector<float> logits_of(const EncoderDecoder& model, const Batch& source, const Batch& target_in,
                                    Sites* sites = nullptr) {
  Tape tape;
  Context context{.tape = tape, .sites = sites};
  const Var memory = model.encode(context, source.view());
  const Var states = model.decode(context, target_in.view(), memory, source.view());
  Tensor logits(states.rows(), model.config().target_vocabulary());
  model.vocabulary().logits(states.value(), logits.view());
  return copy_of(logits.view());
}

/// Greedy search as transformers' generate() does it: at the limit the end token is forced.
inline std::vector<std::vector<int32_t>> greedy(const EncoderDecoder& model, const Batch& source, int limit,
                                                std::vector<int32_t> suppressed) {
  Tape tape;
  Decoding decoding(model, Context{.tape = tape}, source.view());
  const int32_t sentences = source.ragged.sequences();
  std::vector<std::vector<int32_t>> found(static_cast<size_t>(sentences));
  std::vector<int32_t> tokens, parents, of;
  for (int32_t s = 0; s < sentences; ++s) {
    tokens.push_back(model.config().decoder_start_id);
    parents.push_back(0);
    of.push_back(s);
  }
  for (int step = 0; step < limit && !tokens.empty(); ++step) {
    decoding.step(tokens, parents, of);
    std::vector<Candidate> best(tokens.size());
    decoding.next_words().best({.candidates = 1, .suppressed = suppressed}, best, decoding.scratch());
    std::vector<int32_t> next_tokens, next_parents, next_of;
    for (size_t row = 0; row < best.size(); ++row) {
      const int32_t token = step + 1 == limit ? model.config().eos_id : best[row].token;
      found[static_cast<size_t>(of[row])].push_back(token);
      if (token == model.config().eos_id) continue;
      next_tokens.push_back(token);
      next_parents.push_back(static_cast<int32_t>(row));
      next_of.push_back(of[row]);
    }
    tokens = next_tokens;
    parents = next_parents;
    of = next_of;
  }
  return found;
}

}  // namespace mh::test
