#include "multihead/autograd/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/autograd/loops.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/soft_cap.h"

namespace mh {
namespace {

/// One sequence's maps, [heads][Tq][Tk] from `first` on.
struct SequenceMaps {
  int64_t number, first;
  int64_t first_head;
  int64_t query_begin, queries;
  int64_t key_begin, keys;

  int64_t at(int64_t head) const { return first + (head - first_head) * queries * keys; }
};

/// With the end filled in.
HeadRange range_of(const AttentionInputs& in, HeadRange heads) {
  if (heads.end < 0) heads.end = in.heads;
  MH_ASSERT(0 <= heads.begin && heads.begin < heads.end && heads.end <= in.heads);
  return heads;
}

/// The maps of these heads, in the order of sequences; memory of the tape.
std::span<SequenceMaps> sequences_of(Tape& tape, const AttentionInputs& in, const HeadRange& heads) {
  const auto count = static_cast<int64_t>(in.query_offsets.size()) - 1;
  const auto all = tape.arena().array<SequenceMaps>(count);
  int64_t first = 0;
  for (int64_t s = 0; s < count; ++s) {
    const auto n = static_cast<size_t>(s);
    const int64_t query = in.query_offsets[n], key = in.key_offsets[n];
    all[n] = {.number = s,
              .first = first,
              .first_head = heads.begin,
              .query_begin = query,
              .queries = in.query_offsets[n + 1] - query,
              .key_begin = key,
              .keys = in.key_offsets[n + 1] - key};
    first += (heads.end - heads.begin) * all[n].queries * all[n].keys;
  }
  return all;
}

/// body(sequence), a task each.
template <class Body>
void for_sequences(std::span<const SequenceMaps> all, const Body& body) {
  parallel_for(static_cast<int64_t>(all.size()), [&](int64_t s) { body(all[static_cast<size_t>(s)]); });
}

int64_t key_row(const AttentionInputs& in, const SequenceMaps& s, int64_t key) {
  const int64_t n = s.key_begin + key;
  return in.key_rows.empty() ? n : in.key_rows[static_cast<size_t>(n)];
}

/// scores = Q K^T of one head: [queries, keys]. Keys are packed once for all queries; a query alone, or keys that lie
/// here and there, are not worth it.
void products_of_head(ConstMatrixView q, ConstMatrixView k, const AttentionInputs& in, const SequenceMaps& s,
                      int64_t head, MatrixView scores) {
  const int64_t size = in.d_key, key_head = head * in.key_heads / in.heads;
  const ConstMatrixView queries = q.columns_between(head * size, (head + 1) * size)
                                      .rows_between(s.query_begin, s.query_begin + s.queries);
  const ConstMatrixView all_keys = k.columns_between(key_head * size, (key_head + 1) * size);
  if (in.key_rows.empty() && s.queries > 1) {
    thread_local PackedMatrix packed;
    packed.pack_transposed(all_keys.rows_between(s.key_begin, s.key_begin + s.keys));
    return detail::multiply_rows(queries, packed, scores, Write::kOverwrite);
  }
  for (int64_t i = 0; i < s.queries; ++i) {
    for (int64_t j = 0; j < s.keys; ++j)
      scores(i, j) = dot(queries.row(i), all_keys.row(key_row(in, s, j)), size);
  }
}

/// Where the bias of query i and key j is found.
struct BiasPlace {
  int64_t distance, by_distance, by_vector;
};

BiasPlace bias_place(const AttentionBias& bias, const SequenceMaps& s, int64_t i, int64_t j) {
  const int64_t distance = j - (i + s.keys - s.queries);
  return {distance, detail::bias_column(bias, distance), detail::vector_column(bias, distance)};
}

/// A gradient that is added up: zero when nothing is there yet. Empty when it is not wanted.
MatrixView sums_of(Tape& tape, Var input) {
  if (!input.wants_gradient()) return {};
  const Tape::Target target = tape.gradient_of(input);
  if (target.write == Write::kOverwrite) {
    for (int64_t r = 0; r < input.rows(); ++r) std::fill_n(target.gradient.row(r), input.cols(), 0.0f);
  }
  return target.gradient;
}

/// to += the sum of the rows of `parts`, in order.
void merge(ConstMatrixView parts, MatrixView to) {
  for (int64_t p = 0; p < parts.rows; ++p) add_scaled(1, parts.row(p), parts.cols, to.data);
}

}  // namespace

Var widened(Tape& tape, ConstHalfView halves) {
  const MatrixView wide = tape.arena().matrix<float>(halves.rows, halves.cols);
  for (int64_t i = 0; i < halves.rows; ++i)
    std::transform(halves.row(i), halves.row(i) + halves.cols, wide.row(i), from_bfloat16);
  return tape.constant(wide);
}

Var attention_scores(Tape& tape, Var q, Var k, const AttentionInputs& inputs, const LearnedInputs& bias,
                     HeadRange some) {
  const AttentionBias& fixed = inputs.bias;
  MH_ASSERT(fixed.elements.empty());
  const HeadRange heads = range_of(inputs, some);
  const auto sequences = sequences_of(tape, inputs, heads);
  const int64_t of_a_head = attention_weights_size(inputs) / inputs.heads;
  Var y = tape.make(1, of_a_head * (heads.end - heads.begin), {q, k, bias.by_query, bias.by_key});
  const int64_t size = inputs.d_key, columns = fixed.columns_of_vectors();
  // What the cap does to gradients, which cannot be told from y when a bias was added.
  MatrixView slopes;
  if (inputs.soft_cap && y.wants_gradient()) slopes = tape.arena().matrix<float>(1, y.cols());
  const bool biased = !fixed.slopes.empty() || bias.by_distance != nullptr || bias.by_query || bias.by_key;
  for_sequences(sequences, [&](const SequenceMaps& s) {
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      const MatrixView scores(y.value().data + s.at(h), s.queries, s.keys);
      products_of_head(q.value(), k.value(), inputs, s, h, scores);
      for (int64_t i = 0; i < s.queries; ++i) {
        float* out = scores.row(i);
        for (int64_t j = 0; j < s.keys; ++j) out[j] *= inputs.scale;
        if (inputs.soft_cap) {
          const MatrixView row(out, 1, s.keys);
          soft_cap(*inputs.soft_cap, row, row);
          if (slopes.data != nullptr) {
            const MatrixView slope(slopes.data + s.at(h) + i * s.keys, 1, s.keys);
            std::fill_n(slope.data, s.keys, 1.0f);
            soft_cap_gradient(*inputs.soft_cap, row, slope, slope);
          }
        }
        for (int64_t j = 0; j < s.keys && biased; ++j) {
          const BiasPlace place = bias_place(fixed, s, i, j);
          if (!fixed.slopes.empty())
            out[j] -= fixed.slopes[static_cast<size_t>(h)] * static_cast<float>(std::abs(place.distance));
          if (bias.by_distance != nullptr) out[j] += bias.by_distance->value(h, place.by_distance);
          if (bias.by_query)
            out[j] += bias.by_query.value()(s.query_begin + i, h * columns + place.by_vector);
          if (bias.by_key) out[j] += bias.by_key.value()(s.key_begin + j, h * columns + place.by_vector);
        }
      }
    }
  });
  // dq_i = scale sum_j dy_ij k_j;  dk_j += scale sum_i dy_ij q_i, dy times the cap's slope; a bias gets what its scores
  // get
  tape.record(y, [&tape, q, k, y, slopes, inputs, bias, heads, sequences, size, columns] {
    MH_ASSERT(inputs.key_rows.empty());
    const MatrixView dq = sums_of(tape, q), dk = sums_of(tape, k);
    const MatrixView d_by_query = bias.by_query ? sums_of(tape, bias.by_query) : MatrixView();
    const MatrixView d_by_key = bias.by_key ? sums_of(tape, bias.by_key) : MatrixView();
    const Arena::Mark mark = tape.arena().mark();
    MatrixView tables;
    if (bias.by_distance != nullptr && tape.trains()) {
      tables =
          tape.arena().matrix<float>(static_cast<int64_t>(sequences.size()), bias.by_distance->value.size());
    }
    for_sequences(sequences, [&](const SequenceMaps& s) {
      float* table = tables.data != nullptr ? tables.row(s.number) : nullptr;
      if (table != nullptr) std::fill_n(table, tables.cols, 0.0f);
      for (int64_t h = heads.begin; h < heads.end; ++h) {
        const int64_t g = h * inputs.key_heads / inputs.heads;
        const float* dy = y.gradient().data + s.at(h);
        for (int64_t i = 0; i < s.queries; ++i) {
          const int64_t row = s.query_begin + i;
          for (int64_t j = 0; j < s.keys; ++j, ++dy) {
            const int64_t key = s.key_begin + j;
            const BiasPlace place = bias_place(inputs.bias, s, i, j);
            float d = inputs.scale * *dy;
            if (slopes.data != nullptr) d *= slopes.data[dy - y.gradient().data];
            if (dq.data != nullptr)
              add_scaled(d, k.value().row(key) + g * size, size, dq.row(row) + h * size);
            if (dk.data != nullptr)
              add_scaled(d, q.value().row(row) + h * size, size, dk.row(key) + g * size);
            if (table != nullptr) table[h * bias.by_distance->value.cols() + place.by_distance] += *dy;
            if (d_by_query.data != nullptr) d_by_query(row, h * columns + place.by_vector) += *dy;
            if (d_by_key.data != nullptr) d_by_key(key, h * columns + place.by_vector) += *dy;
          }
        }
      }
    });
    if (tables.data != nullptr) merge(tables, bias.by_distance->gradient_sum());
    tape.arena().rewind(mark);
  });
  return y;
}

namespace {

/// Of each row of the maps; `to` may be `from`.
void softmax_rows(std::span<const SequenceMaps> sequences, const AttentionInputs& inputs,
                  const HeadRange& heads, const float* from, float* to) {
  for_sequences(sequences, [&](const SequenceMaps& s) {
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t at = s.at(h) + i * s.keys;
        const float* in = from + at;
        float* out = to + at;
        const auto allowed = [&](int64_t j) {
          return inputs.mask.allows(s.query_begin + i, i, j, s.queries, s.keys);
        };
        float highest = -std::numeric_limits<float>::infinity(), sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          if (allowed(j)) highest = std::max(highest, in[j]);
        }
        for (int64_t j = 0; j < s.keys; ++j) {
          out[j] = allowed(j) ? std::exp(in[j] - highest) : 0;
          sum += out[j];
        }
        for (int64_t j = 0; j < s.keys && sum > 0; ++j) out[j] /= sum;
      }
    }
  });
}

}  // namespace

Var softmax_maps_in_place(Tape& tape, Var maps, const AttentionInputs& inputs, HeadRange some) {
  MH_ASSERT(!maps.wants_gradient());
  const HeadRange heads = range_of(inputs, some);
  softmax_rows(sequences_of(tape, inputs, heads), inputs, heads, maps.value().data, maps.value().data);
  return maps;
}

Var softmax_maps(Tape& tape, Var maps, const AttentionInputs& inputs, HeadRange some) {
  const HeadRange heads = range_of(inputs, some);
  const auto sequences = sequences_of(tape, inputs, heads);
  Var y = tape.make(1, maps.cols(), {maps});
  softmax_rows(sequences, inputs, heads, maps.value().data, y.value().data);
  // dx_j = y_j (dy_j - sum_k dy_k y_k)
  tape.record(y, [&tape, maps, y, heads, sequences] {
    const MatrixView dx = sums_of(tape, maps);
    for_sequences(sequences, [&](const SequenceMaps& s) {
      for (int64_t row = 0; row < (heads.end - heads.begin) * s.queries; ++row) {
        const int64_t at = s.first + row * s.keys;
        const float *p = y.value().data + at, *d = y.gradient().data + at;
        const float mean = dot(p, d, s.keys);
        for (int64_t j = 0; j < s.keys; ++j) dx.data[at + j] += p[j] * (d[j] - mean);
      }
    });
  });
  return y;
}

Var mix_maps(Tape& tape, Var maps, const Parameter& mixing, const AttentionInputs& inputs) {
  MH_ASSERT(mixing.value.rows() == inputs.heads && mixing.value.cols() == inputs.heads);
  const auto sequences = sequences_of(tape, inputs, range_of(inputs, {}));
  const int64_t heads = inputs.heads;
  Var y = tape.make(1, maps.cols(), {maps});
  for_sequences(sequences, [&](const SequenceMaps& s) {
    const int64_t size = s.queries * s.keys;
    std::fill_n(y.value().data + s.first, heads * size, 0.0f);
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t g = 0; g < heads; ++g)
        add_scaled(mixing.value(h, g), maps.value().data + s.at(h), size, y.value().data + s.at(g));
    }
  });
  // dx_h = sum_g mixing(h, g) dy_g;  dmixing(h, g) += x_h . dy_g
  tape.record(y, [&tape, maps, y, sequences, heads, mixing = &mixing] {
    const MatrixView dx = sums_of(tape, maps);
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView parts =
        tape.arena().matrix<float>(static_cast<int64_t>(sequences.size()), heads * heads);
    for_sequences(sequences, [&](const SequenceMaps& s) {
      const int64_t size = s.queries * s.keys;
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t g = 0; g < heads; ++g) {
          const float* dy = y.gradient().data + s.at(g);
          if (dx.data != nullptr) add_scaled(mixing->value(h, g), dy, size, dx.data + s.at(h));
          parts(s.number, h * heads + g) = dot(maps.value().data + s.at(h), dy, size);
        }
      }
    });
    if (tape.trains()) merge(parts, mixing->gradient_sum());
    tape.arena().rewind(mark);
  });
  return y;
}

Var drop_maps(Tape& tape, Var maps, const AttentionInputs& inputs, HeadRange some) {
  if (!inputs.dropout.active()) return maps;
  const HeadRange heads = range_of(inputs, some);
  const auto sequences = sequences_of(tape, inputs, heads);
  Var y = tape.make(1, maps.cols(), {maps});
  const auto dropped = [sequences, heads, inputs](const float* from, float* to, Write write) {
    const Dropout& drops = inputs.dropout;
    for_sequences(sequences, [&](const SequenceMaps& s) {
      const int64_t sentence = drops.sentences[static_cast<size_t>(s.number)];
      int64_t at = s.first;
      for (int64_t h = heads.begin; h < heads.end; ++h) {
        for (int64_t i = 0; i < s.queries; ++i) {
          for (int64_t j = 0; j < s.keys; ++j, ++at) {
            const bool kept = weight_bits(drops.stream, sentence, h, i, j) >= drops.threshold();
            const float x = kept ? from[at] * drops.keep_scale() : 0;
            to[at] = write == Write::kAdd ? to[at] + x : x;
          }
        }
      }
    });
  };
  dropped(maps.value().data, y.value().data, Write::kOverwrite);
  tape.record(y, [&tape, maps, y, dropped] {
    if (!maps.wants_gradient()) return;
    const Tape::Target dx = tape.gradient_of(maps);
    dropped(y.gradient().data, dx.gradient.data, dx.write);
  });
  return y;
}

Var weigh_values(Tape& tape, Var maps, Var v, const AttentionInputs& inputs, HeadRange some) {
  const HeadRange heads = range_of(inputs, some);
  const auto sequences = sequences_of(tape, inputs, heads);
  const int64_t size = inputs.d_value;
  Var y = tape.make(inputs.query_offsets.back(), (heads.end - heads.begin) * size, {maps, v});
  for_sequences(sequences, [&](const SequenceMaps& s) {
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      const int64_t u = h * inputs.value_heads / inputs.heads;
      const float* p = maps.value().data + s.at(h);
      for (int64_t i = 0; i < s.queries; ++i) {
        float* out = y.value().row(s.query_begin + i) + (h - heads.begin) * size;
        std::fill_n(out, size, 0.0f);
        for (int64_t j = 0; j < s.keys; ++j, ++p) {
          if (*p == 0) continue;  // hidden, whatever the value holds
          add_scaled(*p, v.value().row(key_row(inputs, s, j)) + u * size, size, out);
        }
      }
    }
  });
  // dmaps_ij = dy_i . v_j;  dv_j += sum_i p_ij dy_i
  tape.record(y, [&tape, maps, v, y, inputs, heads, sequences, size] {
    MH_ASSERT(inputs.key_rows.empty());
    const MatrixView d_maps = sums_of(tape, maps), dv = sums_of(tape, v);
    for_sequences(sequences, [&](const SequenceMaps& s) {
      for (int64_t h = heads.begin; h < heads.end; ++h) {
        const int64_t u = h * inputs.value_heads / inputs.heads;
        const float* p = maps.value().data + s.at(h);
        float* dp = d_maps.data != nullptr ? d_maps.data + s.at(h) : nullptr;
        for (int64_t i = 0; i < s.queries; ++i) {
          const float* dy = y.gradient().row(s.query_begin + i) + (h - heads.begin) * size;
          for (int64_t j = 0; j < s.keys; ++j, ++p) {
            const int64_t key = s.key_begin + j;
            if (dp != nullptr) *dp++ += dot(dy, v.value().row(key) + u * size, size);
            if (dv.data != nullptr && *p != 0) add_scaled(*p, dy, size, dv.row(key) + u * size);
          }
        }
      }
    });
  });
  return y;
}

}  // namespace mh
