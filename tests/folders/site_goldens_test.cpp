// What transformers computes at every site of small models, in double precision: the values, their gradients,
// and the last states when others stand in their place. tests/oracles/site_goldens.py makes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/stack_cache.h"
#include "multihead/tensor/tensor.h"
#include "tests/support/places.h"

namespace mh {
namespace {

std::string site_golden_name(std::string folder) {
  std::replace(folder.begin(), folder.end(), '/', '_');
  return folder;
}

class SiteGoldens : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::vector<int32_t>> lists(const char* ids_name, const char* lengths_name) const {
    const std::vector<int64_t> ids = file.integers(ids_name);
    std::vector<std::vector<int32_t>> result;
    size_t at = 0;
    for (const int64_t length : file.integers(lengths_name)) {
      auto& list = result.emplace_back();
      for (int64_t i = 0; i < length; ++i) list.push_back(static_cast<int32_t>(ids[at++]));
    }
    return result;
  }

  Tensor golden(const std::string& name) const {
    const std::vector<int64_t>& shape = file.shape(name);
    Tensor numbers(shape.at(0), shape.at(1));
    file.read_floats(name, {numbers.data(), static_cast<size_t>(numbers.size())});
    return numbers;
  }
  int goldens(std::string_view prefix) const {
    const std::vector<std::string> names = file.names();
    return static_cast<int>(std::count_if(names.begin(), names.end(),
                                          [&](const std::string& name) { return name.starts_with(prefix); }));
  }

  /// Within this much, or as great a part of a number beyond 1.
  void expect_near(ConstMatrixView found, const std::string& name, double within) const {
    expect_near(found, golden(name), name, within);
  }
  static void expect_near(ConstMatrixView found, const Tensor& expected, const std::string& name,
                          double within) {
    ASSERT_EQ(found.rows, expected.rows()) << name;
    ASSERT_EQ(found.cols, expected.cols()) << name;
    for (int64_t i = 0; i < found.rows; ++i) {
      for (int64_t j = 0; j < found.cols; ++j) {
        const double wanted = expected(i, j);
        ASSERT_NEAR(found(i, j), wanted, within * std::max(1.0, std::abs(wanted)))
            << name << " row " << i << " column " << j;
      }
    }
  }

  Var read(Context& context) const {
    return folder.model->read(context, text.view(), translates ? target.view() : Sequences());
  }
  /// Those of the last states.
  Sequences rows() const { return translates ? target.view() : text.view(); }
  SiteValues kept() const {
    SiteValues values;
    values.keep("*");
    Tape tape;
    Context context{.tape = tape, .sites = &values};
    const Var states = read(context);
    folder.model->call_output_sites(context, states, rows());
    return values;
  }

  /// The sites of the model that transformers shows here. The inputs of one head are those of all, and what norms and feed-forward
  /// layers multiply and read shows in what they give: tests/nn/sites_test.cpp has those.
  std::vector<SiteShape> sites() const {
    std::vector<SiteShape> all = folder.model->sites();
    std::erase_if(all, [](const SiteShape& site) {
      return site.name.find("_input.") != std::string::npos || site.name.ends_with("_norm.scale") ||
             site.name.ends_with("feed_forward.input");
    });
    return all;
  }

  /// What the goldens have in place of a site's value.
  Tensor others(const std::string& site, const SiteValues& values) const {
    Tensor numbers = golden("value." + site);
    const std::vector<int32_t>& keys = values.kept(site).keys;
    EXPECT_TRUE(keys.empty() || static_cast<int64_t>(keys.size()) == numbers.rows()) << site;
    for (int64_t i = 0; i < numbers.rows(); ++i) {
      const int64_t columns = keys.empty() ? numbers.cols() : keys[static_cast<size_t>(i)];
      for (int64_t j = 0; j < columns; ++j) {
        const double cosine = std::cos(static_cast<double>(3 * i + j));
        numbers(i, j) = static_cast<float>(0.5 * static_cast<double>(numbers(i, j)) + 0.1 * cosine);
      }
    }
    return numbers;
  }

  /// Whether the rows of a site are read in steps, and not with the source.
  static bool in_steps(const std::string& site) {
    return site.starts_with("decoder.") && !site.ends_with("cross_attention.keys") &&
           !site.ends_with("cross_attention.projected_keys") && !site.ends_with("cross_attention.values");
  }
  /// Reads position 0 of all sequences, then position 1 of those that have it, and so on; after each step
  /// seen(position). Returns the states in the order of the batch.
  template <class Seen>
  Tensor in_cached_decoding(SiteValues& values, const Seen& seen) const {
    const LanguageModel& model = folder.language_model();
    const Batch& read = translates ? target : text;
    Tape tape;
    Context context{.tape = tape, .sites = &values};
    StackCache cache;
    model.start(context, translates ? text.view() : Sequences(), cache);
    std::vector<int32_t> sources;
    for (int32_t s = 0; s < read.ragged.sequences(); ++s) sources.push_back(s);
    Tensor states;
    for (int32_t position = 0; position < read.ragged.longest(); ++position) {
      Ragged added;
      std::vector<int32_t> ids, rows;
      for (int32_t s = 0; s < read.ragged.sequences(); ++s) {
        const bool has = position < read.ragged.length(s);
        added.add(has ? 1 : 0);
        if (has) rows.push_back(read.ragged.begin(s) + position);
      }
      for (const int32_t row : rows) ids.push_back(read.ids[static_cast<size_t>(row)]);
      tape.clear();
      const NewRows some{
          .rows = &added,
          .sources = translates ? std::span<const int32_t>(sources) : std::span<const int32_t>()};
      const Var found = model.extend(context, ids, some, cache);
      NextWords(model.vocabulary(), context, found, cache.new_places()).logits();
      if (states.rows() == 0) states = Tensor(read.ragged.rows(), found.cols());
      for (size_t i = 0; i < rows.size(); ++i)
        std::copy_n(found.value().row(static_cast<int64_t>(i)), found.cols(), states.view().row(rows[i]));
      seen(position);
    }
    return states;
  }

  const std::filesystem::path data{goldens_folder()};
  const SafetensorsFile file =
      SafetensorsFile::open(data / "sites" / (site_golden_name(GetParam()) + ".safetensors"));
  const ModelFolder folder = load_model_folder(data / GetParam());
  const bool translates = file.contains("source");
  const Batch text{translates ? lists("source", "source_lengths") : lists("ids", "lengths")};
  const Batch target{translates ? lists("target_in", "target_in_lengths")
                                : std::vector<std::vector<int32_t>>()};
};

TEST_P(SiteGoldens, ValuesAreThoseOfTransformers) {
  const SiteValues values = kept();
  EXPECT_EQ(static_cast<int>(sites().size()), goldens("value."));
  for (const SiteShape& site : sites()) {
    ASSERT_TRUE(file.contains("value." + site.name)) << site.name;
    expect_near(values.value(site.name).view(), "value." + site.name, 3e-5);
  }
}

TEST_P(SiteGoldens, OtherValuesChangeTheStatesAsInTransformers) {
  const SiteValues values = kept();
  int compared = 0;
  for (const SiteShape& site : sites()) {
    if (!file.contains("replaced." + site.name)) continue;
    SiteValues put;
    put.replace({.site = site.name, .numbers = others(site.name, values)});
    Tape tape;
    Context context{.tape = tape, .sites = &put};
    expect_near(read(context).value(), "replaced." + site.name, 5e-5);
    ++compared;
  }
  EXPECT_EQ(compared, goldens("replaced."));
}

TEST_P(SiteGoldens, GradientsAreThoseOfTorch) {
  const Tensor direction = golden("direction");
  SiteValues watched;
  watched.watch("*");
  Tape tape(Tape::Mode::kRecordValues);
  Context context{.tape = tape, .sites = &watched};
  const Var states = read(context);
  const auto* encoder = dynamic_cast<const EncoderModel*>(folder.model.get());
  if (encoder != nullptr && encoder->config().pooler) encoder->pooled(context, states, rows());
  const Var logits = encoder != nullptr ? encoder->logits(context, states, rows())
                                        : folder.language_model().logits(context, states, rows());
  tape.seed(logits, direction.view());
  tape.backward();
  for (const SiteShape& site : sites()) {
    ASSERT_TRUE(file.contains("gradient." + site.name)) << site.name;
    expect_near(watched.gradient(site.name), "gradient." + site.name, 5e-5);
  }
}

TEST_P(SiteGoldens, CachedDecodingHasTheSameValues) {
  if (dynamic_cast<const EncoderModel*>(folder.model.get()) != nullptr) return;
  const Ragged& ragged = (translates ? target : text).ragged;
  SiteValues values;
  values.keep("*");
  in_cached_decoding(values, [&](int32_t position) {
    for (const SiteShape& site : sites()) {
      if (!in_steps(site.name) || site.name.ends_with(".gates")) continue;
      const KeptValue& kept = values.kept(site.name);
      const Tensor expected = golden("value." + site.name);
      int64_t row = 0;
      for (int32_t s = 0; s < ragged.sequences(); ++s) {
        if (position >= ragged.length(s)) continue;
        ASSERT_EQ(kept.positions[static_cast<size_t>(row)], position);
        const int64_t columns = kept.keys.empty() ? expected.cols() : kept.keys[static_cast<size_t>(row)];
        for (int64_t j = 0; j < columns; ++j) {
          const double wanted = expected(ragged.begin(s) + position, j);
          ASSERT_NEAR(kept.value(row, j), wanted, 1e-4 * std::max(1.0, std::abs(wanted))) << site.name;
        }
        ++row;
      }
      ASSERT_EQ(row, kept.value.rows()) << site.name;
    }
  });
}

TEST_P(SiteGoldens, OtherValuesInCachedDecodingChangeTheStatesAsInTransformers) {
  if (dynamic_cast<const EncoderModel*>(folder.model.get()) != nullptr) return;
  const Ragged& ragged = (translates ? target : text).ragged;
  const SiteValues values = kept();
  for (const SiteShape& site : sites()) {
    if (!file.contains("replaced." + site.name)) continue;
    Tensor numbers = others(site.name, values);
    // The goldens have weights on keys to come, too, which no step can have: without these, our own whole pass is right.
    const bool own_weights =
        site.name.find(".self_attention.weights.") != std::string::npos && site.name.starts_with("decoder.");
    Tensor expected;
    if (own_weights) {
      for (int32_t row = 0; row < numbers.rows(); ++row) {
        const auto begins = ragged.offsets();
        const int32_t position = row - *std::prev(std::upper_bound(begins.begin(), begins.end(), row));
        std::fill(numbers.view().row(row) + position + 1, numbers.view().row(row) + numbers.cols(), 0.0f);
      }
      SiteValues seen;
      seen.replace({.site = site.name, .numbers = copied(numbers.view())});
      Tape tape;
      Context context{.tape = tape, .sites = &seen};
      expected = copied(read(context).value());
    } else {
      expected = golden("replaced." + site.name);
    }
    SiteValues put;
    if (!in_steps(site.name) || site.name.ends_with(".gates")) {
      put.replace({.site = site.name, .numbers = std::move(numbers)});
    } else {
      const bool of_own_keys = site.columns == 0 && site.name.find(".self_attention.") != std::string::npos;
      for (int32_t s = 0; s < ragged.sequences(); ++s) {
        for (int32_t position = 0; position < ragged.length(s); ++position) {
          const int64_t row = ragged.begin(s) + position;
          const int64_t columns = of_own_keys ? position + 1 : numbers.cols();
          put.replace(
              {.site = site.name,
               .sequence = s,
               .position = position,
               .numbers = copied(numbers.view().rows_between(row, row + 1).columns_between(0, columns))});
        }
      }
    }
    expect_near(in_cached_decoding(put, [](int32_t) {}).view(), expected, "replaced." + site.name, 5e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SiteGoldens,
                         testing::Values("bert/masked", "bert/pretraining", "gpt2/tied", "llama/tied_grouped",
                                         "marian/gelu_f16"),
                         [](const auto& tested) { return site_golden_name(tested.param); });

}  // namespace
}  // namespace mh
