#include "multihead/heads/measures/head_evidence.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/io/check_option.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

size_t bin_of_strength(double strength) {
  const auto bin = static_cast<int64_t>(strength * static_cast<double>(HeadEvidence::kBins));
  return static_cast<size_t>(std::clamp<int64_t>(bin, 0, static_cast<int64_t>(HeadEvidence::kBins) - 1));
}

}  // namespace

/// What the heads of an attention choose in a batch of N queries.
struct HeadEvidenceObserver::Choices {
  std::vector<int32_t> keys;   // [heads, N]; -1: the query is none of the text, or has no keys
  std::vector<float> weights;  // [heads, N]
  struct Sentence {
    int64_t queries = 0;
    double even_agreement = 0;
    std::vector<double> even_choices = {};  // of each key position
  };
  std::vector<Sentence> sentences;
};

HeadEvidenceObserver::HeadEvidenceObserver(EvidenceOptions options, EvidenceModel model)
    : options_(std::move(options)), model_(std::move(model)), texts_(model_.target_label) {
  check_settings(options_);
}

bool HeadEvidenceObserver::wants_weights(const Model::Attention& attention) const {
  return model_.heads.empty() || model_.kinds.contains(attention.place.kind);
}

HeadEvidenceObserver::OfAttention& HeadEvidenceObserver::attention_of(const BatchWeights& batch,
                                                                      const AttentionPlace& place) {
  OfAttention& attention = attentions_[{place.kind, place.layer}];
  if (attention.heads.empty()) {
    attention.name = batch.attention.name;
    attention.mask = model_.mask                                 ? model_.mask(batch.attention.name)
                     : place.kind == AttentionKind::kDecoderSelf ? Mask::causal()
                                                                 : Mask::none();
    attention.heads.resize(static_cast<size_t>(batch.heads()));
    for (int h = 0; h < batch.heads(); ++h) {
      attention.heads[static_cast<size_t>(h)].wanted =
          model_.heads.empty() || std::find(model_.heads.begin(), model_.heads.end(),
                                            HeadName{attention.name, h}) != model_.heads.end();
    }
  }
  MH_ASSERT(std::ssize(attention.heads) == batch.heads());
  const size_t keys = texts_.key_tokens(place.kind).size(), queries = texts_.query_tokens(place.kind).size();
  attention.even_choices.resize(keys);
  attention.queries_of.resize(queries);
  for (OfHead& head : attention.heads) {
    if (!head.wanted) continue;
    head.chosen.resize(keys);
    head.chosen_weight.resize(keys);
    head.sure_at.resize(queries);
  }
  return attention;
}

void HeadEvidenceObserver::choose(const BatchWeights& batch, int s, AttentionKind kind, const Mask& mask,
                                  Choices& choices) const {
  const auto sentence = static_cast<size_t>(batch.sentences[static_cast<size_t>(s)]);
  const EvidencePositions at_queries = texts_.queries(kind, sentence), at_keys = texts_.keys(kind, sentence);
  const int64_t queries = batch.matrix(s, 0).rows, keys = batch.matrix(s, 0).cols;
  std::vector<int64_t> of_text;  // rising
  for (int64_t j = 0; j < keys; ++j) {
    if (at_keys.is_key(j)) of_text.push_back(j);
  }
  Choices::Sentence& sums = choices.sentences[static_cast<size_t>(s)];
  sums.even_choices.resize(static_cast<size_t>(keys));
  const size_t rows = batch.keys.size(),
               first_row = static_cast<size_t>(batch.query_offsets[static_cast<size_t>(s)]);
  for (int64_t i = 0; i < queries; ++i) {
    if (at_queries.number_at(i) < 0) continue;
    const Mask::Range seen = mask.visible(i, queries, keys);
    const auto begin = std::lower_bound(of_text.begin(), of_text.end(), seen.begin),
               end = std::lower_bound(begin, of_text.end(), seen.end);
    // In self-attention the query's own position is left out: [begin, own) and [after, end).
    auto own = end, after = end;
    if (kind != AttentionKind::kCross) {
      own = std::lower_bound(begin, end, i);
      after = own != end && *own == i ? own + 1 : own;
    }
    const int64_t count = (own - begin) + (end - after);
    if (count == 0) continue;
    ++sums.queries;
    const double evenly = 1 / static_cast<double>(count);
    sums.even_agreement += evenly;
    for (auto j = begin; j != own; ++j) sums.even_choices[static_cast<size_t>(*j)] += evenly;
    for (auto j = after; j != end; ++j) sums.even_choices[static_cast<size_t>(*j)] += evenly;
    for (int h = 0; h < batch.heads(); ++h) {
      const float* row = batch.matrix(s, h).row(i);
      int64_t most = own != begin ? *begin : *after;
      float weight = row[most];
      const auto look_at = [&](auto from, auto to) {
        for (; from != to; ++from) {
          if (row[*from] > weight) {
            most = *from;
            weight = row[most];
          }
        }
      };
      look_at(begin, own);
      look_at(after, end);
      const size_t place = static_cast<size_t>(h) * rows + first_row + static_cast<size_t>(i);
      choices.keys[place] = static_cast<int32_t>(most);
      choices.weights[place] = weight;
    }
  }
}

EvidenceSentence HeadEvidenceObserver::evidence(AttentionKind kind, size_t sentence, double strength,
                                                int64_t query, int64_t key) const {
  const EvidencePositions queries = texts_.queries(kind, sentence), keys = texts_.keys(kind, sentence);
  EvidenceSentence found{.line = texts_.line(sentence),
                         .strength = strength,
                         .query = queries.side->place_of(static_cast<size_t>(query - queries.shift)),
                         .key = keys.side->place_of(static_cast<size_t>(key - keys.shift)),
                         .query_text = queries.side->text,
                         .key_text = keys.side->text};
  found.query.id = texts_.query_tokens(kind).ids[static_cast<size_t>(queries.number_at(query))];
  found.key.id = texts_.key_tokens(kind).ids[static_cast<size_t>(keys.number_at(key))];
  return found;
}

void HeadEvidenceObserver::add_sentence(OfHead& head, AttentionKind kind, size_t sentence, double strength,
                                        int64_t query, int64_t key) const {
  const size_t bin = bin_of_strength(strength);
  ++head.strengths[bin];
  const auto most = static_cast<size_t>(options_.sentences);
  const bool is_usual = head.by_bin[bin].size() < static_cast<size_t>(options_.usual);
  const bool is_strong =
      most > 0 && (head.strongest.size() < most || strength > head.strongest.back().sentence.strength);
  if (!is_usual && !is_strong) return;
  EvidenceSentence found = evidence(kind, sentence, strength, query, key);
  if (is_usual) head.by_bin[bin].push_back(found);
  if (!is_strong) return;
  const auto word = [](const EvidenceToken& token) {
    return token.word.empty() ? std::to_string(token.id) : lower_case(token.word);
  };
  std::string pair = word(found.query) + '\n' + word(found.key);
  auto& strongest = head.strongest;
  const auto same = std::find_if(strongest.begin(), strongest.end(),
                                 [&](const Candidate& candidate) { return candidate.pair == pair; });
  if (same != strongest.end()) {
    if (same->sentence.strength >= strength) return;
    strongest.erase(same);
  } else if (strongest.size() == most) {
    strongest.pop_back();
  }
  // Behind those that are as strong: they are earlier.
  const auto at = std::find_if(strongest.begin(), strongest.end(), [&](const Candidate& candidate) {
    return candidate.sentence.strength < strength;
  });
  strongest.insert(at, {.sentence = std::move(found), .pair = std::move(pair)});
}

void HeadEvidenceObserver::add_head(const BatchWeights& batch, const Choices& choices, AttentionKind kind,
                                    int h, OfHead& head) const {
  const size_t rows = batch.keys.size();
  for (int s = 0; s < batch.sequences(); ++s) {
    const auto sentence = static_cast<size_t>(batch.sentences[static_cast<size_t>(s)]);
    const EvidencePositions queries = texts_.queries(kind, sentence), keys = texts_.keys(kind, sentence);
    const int32_t first = batch.query_offsets[static_cast<size_t>(s)],
                  last = batch.query_offsets[static_cast<size_t>(s) + 1];
    double strength = -1;
    int64_t query = 0, key = 0;
    for (int32_t row = first; row < last; ++row) {
      const size_t place = static_cast<size_t>(h) * rows + static_cast<size_t>(row);
      const int32_t most = choices.keys[place];
      if (most < 0) continue;
      const auto weight = static_cast<double>(choices.weights[place]);
      const auto token = static_cast<size_t>(keys.number_at(most));
      ++head.chosen[token];
      head.chosen_weight[token] += weight;
      head.choices_weight += weight;
      if (weight >= options_.sure) {
        ++head.sure;
        ++head.sure_at[static_cast<size_t>(queries.number_at(row - first))];
      }
      if (weight > strength) {
        strength = weight;
        query = row - first;
        key = most;
      }
    }
    if (strength >= 0) add_sentence(head, kind, sentence, strength, query, key);
  }
}

void HeadEvidenceObserver::weights(const BatchWeights& batch) {
  const AttentionPlace place = batch.attention.place;
  OfAttention& attention = attention_of(batch, place);
  const size_t rows = batch.keys.size(), heads = attention.heads.size();
  Choices choices{.keys = std::vector<int32_t>(heads * rows, -1),
                  .weights = std::vector<float>(heads * rows),
                  .sentences = std::vector<Choices::Sentence>(static_cast<size_t>(batch.sequences()))};
  parallel_for(batch.sequences(),
               [&](int64_t s) { choose(batch, static_cast<int>(s), place.kind, attention.mask, choices); });
  parallel_for(batch.heads(), [&](int64_t h) {
    OfHead& head = attention.heads[static_cast<size_t>(h)];
    if (head.wanted) add_head(batch, choices, place.kind, static_cast<int>(h), head);
  });
  for (size_t s = 0; s < choices.sentences.size(); ++s) {
    const Choices::Sentence& of = choices.sentences[s];
    const auto sentence = static_cast<size_t>(batch.sentences[s]);
    const EvidencePositions queries = texts_.queries(place.kind, sentence),
                            keys = texts_.keys(place.kind, sentence);
    attention.queries += of.queries;
    attention.even_agreement += of.even_agreement;
    for (size_t j = 0; j < of.even_choices.size(); ++j) {
      if (of.even_choices[j] > 0)
        attention.even_choices[static_cast<size_t>(keys.number_at(static_cast<int64_t>(j)))] +=
            of.even_choices[j];
    }
    for (int32_t row = batch.query_offsets[s]; row < batch.query_offsets[s + 1]; ++row) {
      if (choices.keys[static_cast<size_t>(row)] >= 0)
        ++attention.queries_of[static_cast<size_t>(queries.number_at(row - batch.query_offsets[s]))];
    }
  }
  agreement_[place.kind].add(place.layer, batch.heads(), std::move(choices.keys));
}

}  // namespace mh
