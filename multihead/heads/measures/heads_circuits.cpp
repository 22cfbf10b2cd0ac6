#include "multihead/heads/measures/heads_circuits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <tuple>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/measures/circuit_weights.h"
#include "multihead/heads/measures/composition.h"
#include "multihead/io/check_option.h"
#include "multihead/models/model.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/heads.h"

namespace mh {
namespace {

/// The singular values of a b^T, of which these are the triangular factors.
Circuit circuit_of(const DoubleMatrix& a, const DoubleMatrix& b) {
  Circuit found{.singular_values = singular_values(product(a.view(), transposed(b.view()).view()).view())};
  double sum = 0, squares = 0, entropy = 0;
  for (const double value : found.singular_values) {
    sum += value;
    squares += value * value;
  }
  for (const double value : found.singular_values) {
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  found.effective_rank = sum > 0 ? std::exp(entropy) : 0;
  found.norm = std::sqrt(squares);
  return found;
}

/// The eigenvalues of W_E W_V W_O W_U other than 0 are those of W_O (W_U W_E W_V), [d_value, d_value].
std::optional<double> copying_of(const DoubleMatrix& outputs, const DoubleMatrix& words_of_values) {
  std::complex<double> sum = 0;
  double sizes = 0;
  for (const std::complex<double>& value :
       eigenvalues(product(outputs.view(), words_of_values.view()).view())) {
    sum += value;
    sizes += std::abs(value);
  }
  return sizes > 0 ? std::optional(sum.real() / sizes) : std::nullopt;
}

/// What is computed once for each matrix of an attention.
struct Factors {
  std::vector<DoubleMatrix> queries, keys, values, outputs;  // triangular; outputs: of W_O^T
  std::vector<DoubleMatrix> words_of_values;                 // W_U W_E W_V, [d_model, d_value]; or none
};

Factors factors_of(const CircuitWeights& weights, const std::optional<DoubleMatrix>& words) {
  Factors found;
  struct Task {
    const DoubleMatrix* from;
    DoubleMatrix* to;
    enum { kFactor, kFactorOfTransposed, kWords } what;
  };
  std::vector<Task> tasks;
  const auto plan = [&](const std::vector<DoubleMatrix>& from, std::vector<DoubleMatrix>& to, auto what) {
    to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) tasks.push_back({&from[i], &to[i], what});
  };
  plan(weights.queries, found.queries, Task::kFactor);
  plan(weights.keys, found.keys, Task::kFactor);
  plan(weights.values, found.values, Task::kFactor);
  plan(weights.outputs, found.outputs, Task::kFactorOfTransposed);
  if (words) plan(weights.values, found.words_of_values, Task::kWords);
  parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t t) {
    const Task& task = tasks[static_cast<size_t>(t)];
    const ConstDoubleView from = std::as_const(*task.from).view();
    *task.to = task.what == Task::kWords    ? product(words->view(), from)
               : task.what == Task::kFactor ? triangular_factor(from)
                                            : triangular_factor(transposed(from).view());
  });
  return found;
}

/// Of one attention.
struct Attention {
  std::vector<HeadCircuits> heads;
  std::vector<Writer> writers;
  std::vector<Reader> queries, keys, values;
};

Attention circuits_of(const std::string& name, const CircuitWeights& weights,
                      const std::optional<DoubleMatrix>& words, bool compositions) {
  const Factors factors = factors_of(weights, words);
  const size_t count = weights.queries.size();
  Attention found;
  found.heads.resize(count);
  if (compositions) {
    found.writers.resize(count);
    for (std::vector<Reader>* readers : {&found.queries, &found.keys, &found.values}) readers->resize(count);
  }
  parallel_for(static_cast<int64_t>(count), [&](int64_t task) {
    const auto h = static_cast<size_t>(task);
    const size_t k = h * weights.keys.size() / count, v = h * weights.values.size() / count;
    HeadCircuits& head = found.heads[h];
    head.attention = name;
    head.head = static_cast<int>(h);
    head.query_key = circuit_of(factors.queries[h], factors.keys[k]);
    head.value_output = circuit_of(factors.values[v], factors.outputs[h]);
    if (words) head.copying = copying_of(weights.outputs[h], factors.words_of_values[v]);
    if (!compositions) return;
    found.writers[h] = writer_of(factors.values[v], weights.outputs[h]);
    found.queries[h] = reader_of(weights.queries[h], factors.keys[k]);
    found.keys[h] = reader_of(weights.keys[k], factors.queries[h]);
    found.values[h] = reader_of(weights.values[v], factors.outputs[h]);
  });
  return found;
}

/// Adds the compositions of an attention, whose first head is number `first` of all, with those before it, and what it writes.
void compose(Composer& composer, AttentionKind kind, const Attention& attention, size_t first,
             std::map<AttentionKind, Writers>& writers, std::vector<Composition>& found) {
  const bool crosses = kind == AttentionKind::kCross;
  Writers& own = writers[crosses ? AttentionKind::kDecoderSelf : kind];  // the stack's
  std::vector<NamedReader> of_own, of_memory;
  for (size_t h = 0; h < attention.heads.size(); ++h) {
    of_own.push_back({first + h, HeadPart::kQueries, &attention.queries[h]});
    std::vector<NamedReader>& of_keys = crosses ? of_memory : of_own;
    of_keys.push_back({first + h, HeadPart::kKeys, &attention.keys[h]});
    of_keys.push_back({first + h, HeadPart::kValues, &attention.values[h]});
  }
  composer.compose(own, of_own, found);
  composer.compose(writers[AttentionKind::kEncoderSelf], of_memory, found);
  for (size_t h = 0; h < attention.heads.size(); ++h) own.add(first + h, attention.writers[h]);
}

}  // namespace

CircuitsReport heads_circuits(const Model& model, const CircuitsOptions& options) {
  check_settings(options);
  const CircuitModel from(model);
  std::map<AttentionKind, std::optional<DoubleMatrix>> words;
  std::map<AttentionKind, Writers> writers;
  Composer composer(model.facts().d_model, options);
  CircuitsReport found;
  for (const Model::Attention& named : model.attentions()) {
    const AttentionKind kind = named.place.kind;
    if (!words.contains(kind)) words[kind] = from.words(kind);
    const size_t first = found.heads.size();
    Attention attention;
    try {
      attention = circuits_of(named.name, from.weights(named.name), words[kind], options.compositions);
    } catch (const UsageError&) {
      throw;
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {  // a number that is not finite
      throw Error(fmt::format("{}: {}", named.name, error.what()));
    }
    found.heads.insert(found.heads.end(), attention.heads.begin(), attention.heads.end());
    if (options.compositions) compose(composer, kind, attention, first, writers, found.compositions);
  }
  std::sort(found.compositions.begin(), found.compositions.end(),
            [](const Composition& a, const Composition& b) {
              return std::tie(a.to, a.from, a.part) < std::tie(b.to, b.from, b.part);
            });
  return found;
}

std::vector<Composition> strongest_compositions(const CircuitsReport& circuits, size_t count) {
  std::vector<Composition> strongest = circuits.compositions;
  const auto shown = strongest.begin() + static_cast<std::ptrdiff_t>(std::min(count, strongest.size()));
  std::partial_sort(
      strongest.begin(), shown, strongest.end(), [](const Composition& a, const Composition& b) {
        const double of_a = a.strength * b.random, of_b = b.strength * a.random;  // no division by 0
        return std::tie(of_b, a.to, a.from, a.part) < std::tie(of_a, b.to, b.from, b.part);
      });
  strongest.erase(shown, strongest.end());
  return strongest;
}

}  // namespace mh
