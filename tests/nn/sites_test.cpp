// Every site of every kind of layer: its value is what the formula says, a replacement changes what comes after it as
// it should, and its gradient is a central difference.
#include "multihead/nn/sites.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/stack.h"
#include "multihead/nn/stack_cache.h"
#include "tests/nn/stack_kinds.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using test::StackKind;
constexpr int kModelWidth = test::kStackWidth;

/// Equal layers with these heads.
StackConfig stack_of(const HeadGeometry& geometry, int layers) {
  return test::small_stack(
      {.layers = std::vector<LayerConfig>(
           static_cast<size_t>(layers),
           {.self_attention = geometry, .feed_forward = {.d_ff = 7, .activation = Activation::kGelu}})},
      Activation::kGelu);
}

std::vector<StackKind> kinds() {
  const StackConfig gpt{
      .name = "decoder", .mask = StackMask::causal(), .norm = {.placement = NormPlacement::kPre}};
  StackConfig modern = test::small_stack(
      {.positions = Positions::kRotary, .norm = {.placement = NormPlacement::kPre, .biases = Biases::kNone}},
      Activation::kGelu);
  modern.layers[0].norm_before = false;
  modern.layers[1].mask = StackMask::local(2);
  modern.layers[1].rotary = RotaryOptions{.base = 10};
  std::vector<StackKind> all = {
      {"encoder", test::small_stack({}, Activation::kGelu)},
      {"gpt", test::small_stack(gpt, Activation::kGelu)},
      {"llama", test::llama_stack()},
      {"crossed", test::crossed_stack(Activation::kGelu)},
      {"differential", stack_of(geometry_preset("differential", 2, kModelWidth), 2)},
      {"talking", stack_of(geometry_preset("talking", 3, kModelWidth), 2)},
      {"modernbert", modern}};
  for (const auto& [name, what] : geometry_names()) {  // one layer of each geometry
    std::string kind = "of_" + std::string(name);
    std::replace(kind.begin(), kind.end(), '-', '_');
    all.push_back({kind, stack_of(geometry_preset(name, 3, kModelWidth), 1)});
  }
  return all;
}

class EverySite : public testing::TestWithParam<StackKind> {
 protected:
  EverySite() : stack(GetParam().config, dropout_streams) {
    Random random(11);
    stack.initialise(random);
    for (Tensor* numbers : {&x, &memory_rows, &weights}) {
      for (int64_t i = 0; i < numbers->size(); ++i) numbers->data()[i] = static_cast<float>(random.normal());
    }
    stack.visit_sites([&](const SiteShape& site) { all.push_back(site); });
  }
  bool crosses() const { return GetParam().config.cross_attention; }

  /// The states of both sequences.
  Var run(Context& context, const Tensor& in) {
    const Memory read{.rows = context.tape.constant(memory_rows.view()), .sequences = &memory_sequences};
    // Not written to: a tape's values are views that ops only read.
    Tensor& rows = const_cast<Tensor&>(in);
    return stack.forward(context, context.tape.constant(rows.view()), sequences, crosses() ? &read : nullptr);
  }
  Tensor states(SiteValues* values) {
    plain.clear();
    Context context{.tape = plain, .sites = values};
    return copied(run(context, x).value());
  }
  /// The states and memory weighed and summed.
  double score(SiteValues* values) {
    const Tensor found = states(values);
    double sum = 0;
    for (int64_t i = 0; i < found.size(); ++i)
      sum += static_cast<double>(found.data()[i]) * weights.data()[i];
    return sum;
  }
  /// Whether its columns are keys.
  static bool of_keys(const SiteShape& site) {
    return site.name.find(".scores.") != std::string::npos ||
           site.name.find(".weights.") != std::string::npos;
  }
  /// Whether what is put back takes another path, which rounds otherwise.
  static bool rounds(const SiteShape& site) { return of_keys(site) || site.name.ends_with("_norm.scale"); }
  static void expect_equal(const Tensor& a, const Tensor& b, float within = 0) {
    ASSERT_EQ(a.rows(), b.rows());
    ASSERT_EQ(a.cols(), b.cols());
    for (int64_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a.data()[i], b.data()[i], within) << i;
  }
  /// The value of each site.
  SiteValues kept() {
    SiteValues values;
    values.keep("*");
    states(&values);
    return values;
  }

  DropoutStreams dropout_streams;
  Stack stack;
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{3, 1, 5});
  const Sequences sequences{.ids = {}, .ragged = &ragged, .sentences = {}};
  const Ragged memory_ragged = Ragged::from_lengths(std::vector<int32_t>{2, 4, 1});
  const Sequences memory_sequences{.ids = {}, .ragged = &memory_ragged, .sentences = {}};
  Tensor x{9, kModelWidth}, memory_rows{7, kModelWidth}, weights{9, kModelWidth};
  std::vector<SiteShape> all;
  Tape plain;  // keeps its memory
};

INSTANTIATE_TEST_SUITE_P(Kinds, EverySite, testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(EverySite, HasAValueOfItsShapeAndChangesNothing) {
  const SiteValues values = kept();
  for (const SiteShape& site : all) {
    SCOPED_TRACE(site.name);
    const KeptValue& found = values.kept(site.name);
    const bool maps = of_keys(site);
    EXPECT_EQ(site.columns == 0, maps);
    EXPECT_TRUE(maps || found.value.cols() == site.columns);
    EXPECT_EQ(found.keys.size(), maps ? 9u : 0u);
    EXPECT_EQ(found.value.cols() % site.blocks, 0);
    EXPECT_EQ(found.value.rows(), found.offsets.back());
    for (int32_t s = 0; maps && s < ragged.sequences(); ++s) {
      const bool cross = site.name.find("cross") != std::string::npos;
      EXPECT_EQ(found.sequence(s).rows, ragged.length(s));
      EXPECT_EQ(found.sequence(s).cols, (cross ? memory_ragged : ragged).length(s));
    }
    EXPECT_TRUE(found.positions.empty());
  }
  SiteValues asked;
  asked.keep("*");
  expect_equal(states(&asked), states(nullptr));
  expect_equal(values.value(GetParam().config.name + ".embeddings"), x);
  expect_equal(values.value(GetParam().config.name + ".states"), states(nullptr));
  if (GetParam().config.layers.size() < 2) return;
  expect_equal(values.value(GetParam().config.name + ".0.output"),
               values.value(GetParam().config.name + ".1.input"));
}

TEST_P(EverySite, PuttingItsOwnValueBackChangesNothing) {
  const SiteValues values = kept();
  const Tensor plain = states(nullptr);
  for (const SiteShape& site : all) {
    SCOPED_TRACE(site.name);
    SiteValues same;
    same.replace({.site = site.name, .numbers = copied(values.value(site.name).view())});
    expect_equal(states(&same), plain, rounds(site) ? 2e-5f : 0);
  }
}

TEST_P(EverySite, OfOneSequenceRowAndHeadChangesThatSequenceAlone) {
  const SiteValues values = kept();
  const Tensor plain = states(nullptr);
  for (const SiteShape& site : all) {
    SCOPED_TRACE(site.name);
    const KeptValue& before = values.kept(site.name);
    const int head = site.blocks - 1;
    const int64_t width = before.value.cols() / site.blocks;
    const float rounding = rounds(site) ? 2e-5f : 0;
    const bool gates = site.name.ends_with("gates");
    const int32_t row =
        before.offsets[1] - 1;  // the last of the sequence: under a causal mask the first query sees one key
    SiteReplacement one{.site = site.name, .sequence = 0, .position = row, .numbers = Tensor(1, width)};
    if (gates) one.position.reset();
    if (site.blocks > 1) one.head = head;
    for (int64_t c = 0; c < width; ++c) one.numbers(0, c) = static_cast<float>(c % 3) - 1.5f;
    const Tensor put = copied(one.numbers.view());
    SiteValues changed;
    changed.replace(std::move(one));
    changed.keep(site.name);
    const Tensor found = states(&changed);
    const Tensor& after = changed.value(site.name);
    for (int64_t r = 0; r < after.rows(); ++r) {
      for (int64_t c = 0; c < after.cols(); ++c) {
        const bool meant = r == row && c >= head * width;
        ASSERT_NEAR(after(r, c), meant ? put(0, c - head * width) : before.value(r, c), rounding);
      }
    }
    bool differs = false;
    for (int64_t r = 0; r < plain.rows(); ++r) {
      for (int64_t c = 0; c < kModelWidth; ++c) {
        if (r < ragged.end(0)) {
          differs = differs || std::abs(found(r, c) - plain(r, c)) > rounding;
        } else {
          ASSERT_NEAR(found(r, c), plain(r, c), rounding) << "another sequence, row " << r;
        }
      }
    }
    EXPECT_TRUE(differs);
  }
}

TEST_P(EverySite, AddsToOneRowOfOneSequenceAndHead) {
  const SiteValues values = kept();
  for (const SiteShape& site : all) {
    SCOPED_TRACE(site.name);
    const KeptValue& before = values.kept(site.name);
    const int head = site.blocks - 1;
    const int64_t width = before.value.cols() / site.blocks;
    const bool gates = site.name.ends_with("gates");
    const int32_t row = before.offsets[1] - 1;
    SiteReplacement one{.site = site.name, .sequence = 0, .numbers = Tensor(1, width), .strength = -0.75f};
    if (!gates) one.position = row;
    if (site.blocks > 1) one.head = head;
    Tensor sum(1, width);
    for (int64_t c = 0; c < width; ++c) {
      one.numbers(0, c) = static_cast<float>(c % 5) - 1.3f;
      sum(0, c) = before.value(row, head * width + c) + -0.75f * one.numbers(0, c);
    }
    SiteReplacement put{.site = one.site, .sequence = 0, .position = one.position, .head = one.head};
    put.numbers = std::move(sum);
    SiteValues added, replaced;
    added.add(std::move(one));
    replaced.replace(std::move(put));
    // Of scores and weights the fused kernel's value, which was kept, may be rounded otherwise than the changed one's.
    expect_equal(states(&added), states(&replaced), of_keys(site) ? 2e-5f : 0);
    EXPECT_TRUE(added.unread().empty());
  }
}

TEST_P(EverySite, LetsTheGradientThroughWhatIsAdded) {
  const SiteValues values = kept();
  const std::string first = GetParam().config.name + ".embeddings";
  const Tensor& start = values.value(first);
  for (const SiteShape& site : all) {
    SCOPED_TRACE(site.name);
    const int64_t columns = values.value(site.name).cols();
    const auto add = [&](SiteValues& to) {
      SiteReplacement added{.site = site.name, .numbers = Tensor(1, columns), .strength = 0.5f};
      for (int64_t c = 0; c < columns; ++c) added.numbers(0, c) = std::cos(static_cast<float>(c));
      to.add(std::move(added));
    };
    SiteValues watched;
    watched.watch(first);
    add(watched);
    Tape tape(Tape::Mode::kRecordValues);
    Context context{.tape = tape, .sites = &watched};
    tape.backward(ops::sum(tape, ops::multiply(tape, run(context, x), tape.constant(weights.view()))));
    const ConstMatrixView gradient = watched.gradient(first);
    Random random(7);
    Tensor direction(start.rows(), start.cols());
    double along = 0;
    for (int64_t i = 0; i < direction.size(); ++i) {
      direction.data()[i] = static_cast<float>(random.normal());
      along += static_cast<double>(direction.data()[i]) * gradient(i / start.cols(), i % start.cols());
    }
    const auto moved = [&](float step) {
      Tensor numbers = copied(start.view());
      for (int64_t i = 0; i < numbers.size(); ++i) numbers.data()[i] += step * direction.data()[i];
      SiteValues put;
      put.replace({.site = first, .numbers = std::move(numbers)});
      add(put);
      return score(&put);
    };
    constexpr float kStep = 4e-3f;
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * static_cast<double>(kStep));
    EXPECT_NEAR(along, slope, 0.02 * (1 + std::abs(slope)));
  }
}

TEST_P(EverySite, HasTheGradientOfCentralDifferences) {
  const SiteValues values = kept();
  for (const SiteShape& site : all) {
    SCOPED_TRACE(site.name);
    SiteValues watched;
    watched.watch(site.name);
    Tape tape(Tape::Mode::kRecordValues);
    Context context{.tape = tape, .sites = &watched};
    const Var score_of_all =
        ops::sum(tape, ops::multiply(tape, run(context, x), tape.constant(weights.view())));
    tape.backward(score_of_all);
    stack.visit([](const std::string& name, Parameter& parameter) {
      EXPECT_FALSE(parameter.gradient.exists()) << name;
    });
    ASSERT_TRUE(watched.has_gradient(site.name));
    const ConstMatrixView gradient = watched.gradient(site.name);
    const Tensor& value = values.value(site.name);
    ASSERT_EQ(gradient.rows, value.rows());
    Random random(3);
    for (int n = 0; n < 3; ++n) {  // along a few directions
      double along = 0;
      Tensor direction(value.rows(), value.cols());
      for (int64_t i = 0; i < direction.size(); ++i) {
        direction.data()[i] = static_cast<float>(random.normal());
        along += static_cast<double>(direction.data()[i]) * gradient(i / value.cols(), i % value.cols());
      }
      constexpr float kStep = 4e-3f;
      const auto moved = [&](float step) {
        Tensor numbers = copied(value.view());
        for (int64_t i = 0; i < numbers.size(); ++i) numbers.data()[i] += step * direction.data()[i];
        SiteValues put;
        put.replace({.site = site.name, .numbers = std::move(numbers)});
        return score(&put);
      };
      const double slope = (moved(kStep) - moved(-kStep)) / (2 * static_cast<double>(kStep));
      EXPECT_NEAR(along, slope, 0.02 * (1 + std::abs(slope)));
    }
  }
}

TEST_P(EverySite, IsTheSameInCachedDecoding) {
  if (GetParam().config.mask.kind == StackMask::Kind::kNone)
    return;  // it sees what is to come: there is none
  const SiteValues whole = kept();
  // Rows 0 of the sequences, then all others.
  StackCache cache;
  Tape start_tape;
  SiteValues seen;
  seen.keep("*");
  Context starting{.tape = start_tape, .sites = &seen};
  const Memory read{.rows = start_tape.constant(memory_rows.view()), .sequences = &memory_sequences};
  stack.start(starting, crosses() ? &read : nullptr, cache);
  const std::vector<int32_t> sources{0, 1, 2};
  for (const bool first : {true, false}) {
    Ragged added;
    std::vector<int32_t> rows;
    for (int32_t s = 0; s < ragged.sequences(); ++s) {
      const int32_t begin = first ? 0 : 1, end = first ? 1 : ragged.length(s);
      added.add(end - begin);
      for (int32_t i = begin; i < end; ++i) rows.push_back(ragged.begin(s) + i);
    }
    Tensor in(static_cast<int64_t>(rows.size()), kModelWidth);
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(x.view().row(rows[i]), kModelWidth, in.view().row(static_cast<int64_t>(i)));
    Tape tape;
    Context context{.tape = tape, .sites = &seen};
    const NewRows some{.rows = &added,
                       .sources = crosses() ? std::span<const int32_t>(sources) : std::span<const int32_t>()};
    stack.extend(context, tape.constant(in.view()), some, cache);
    for (const SiteShape& site : all) {
      const bool of_memory = [&] {
        for (const char* part : {"keys", "values", "projected_keys", "key_input", "value_input"}) {
          if (site.name.find(std::string("cross_attention.") + part) != std::string::npos) return true;
        }
        return false;
      }();
      if (of_memory) {
        expect_equal(seen.value(site.name), whole.value(site.name));  // of the memory, from start()
        continue;
      }
      const KeptValue& found = seen.kept(site.name);
      if (site.name.ends_with("gates")) {
        EXPECT_THAT(found.offsets, ElementsAre(0, 1, 2, 3));
        continue;
      }
      ASSERT_EQ(found.value.rows(), static_cast<int64_t>(rows.size())) << site.name;
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto s =
            static_cast<int32_t>(std::upper_bound(ragged.offsets().begin(), ragged.offsets().end(), rows[i]) -
                                 ragged.offsets().begin() - 1);
        EXPECT_EQ(found.positions[i], rows[i] - ragged.begin(s));
        for (int64_t c = 0; c < (of_keys(site) ? found.keys[i] : site.columns); ++c) {
          ASSERT_NEAR(found.value(static_cast<int64_t>(i), c), whole.value(site.name)(rows[i], c), 2e-5)
              << site.name << " row " << rows[i];
        }
      }
    }
  }
}

TEST(Sites, AReplacedKeyIsReadBySteps) {
  const StackKind kind = kinds()[2];
  DropoutStreams dropout_streams;
  Stack stack(kind.config, dropout_streams);
  Random random(5);
  stack.initialise(random);
  Tensor x(4, kModelWidth);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{4});
  const auto changed = [] {
    SiteValues values;
    for (const int32_t position : {1, 3}) {
      Tensor numbers(1, 2);
      numbers(0, 0) = 0.5f;
      numbers(0, 1) = static_cast<float>(position);
      values.replace({.site = "decoder.0.self_attention.keys",
                      .sequence = 0,
                      .position = position,
                      .head = 1,
                      .numbers = std::move(numbers)});
    }
    return values;
  };
  SiteValues for_whole = changed(), for_steps = changed();
  Tape tape, steps;
  Context whole{.tape = tape, .sites = &for_whole}, stepwise{.tape = steps, .sites = &for_steps};
  const Tensor expected = copied(
      stack.forward(whole, tape.constant(x.view()), {.ids = {}, .ragged = &ragged, .sentences = {}}).value());
  StackCache cache;
  stack.start(stepwise, nullptr, cache);
  const Ragged one = Ragged::from_lengths(std::vector<int32_t>{1});
  for (int64_t r = 0; r < x.rows(); ++r) {
    const MatrixView found =
        stack.extend(stepwise, steps.constant(x.view().rows_between(r, r + 1)), {.rows = &one}, cache)
            .value();
    for (int64_t c = 0; c < kModelWidth; ++c) ASSERT_NEAR(found(0, c), expected(r, c), 2e-5);
  }
}

TEST(Sites, SaysWhatIsWrong) {
  const StackKind kind = kinds()[0];
  DropoutStreams dropout_streams;
  Stack stack(kind.config, dropout_streams);
  Tensor x(4, kModelWidth);
  x.fill(1);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{1, 3});
  const auto run = [&](SiteReplacement replacement) {
    SiteValues values;
    values.replace(std::move(replacement));
    Tape tape;
    Context context{.tape = tape, .sites = &values};
    stack.forward(context, tape.constant(x.view()), {.ids = {}, .ragged = &ragged, .sentences = {}});
  };
  const std::string heads = "encoder.0.self_attention.heads";
  EXPECT_THAT([&] { run({.site = heads, .sequence = 2, .numbers = Tensor(1, kModelWidth)}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no sequence 2; there are 2")));
  EXPECT_THAT([&] { run({.site = heads, .sequence = 1, .position = 3, .numbers = Tensor(1, kModelWidth)}); },
              ThrowsMessage<UsageError>(HasSubstr("sequence 1 has no position 3; it has 3")));
  EXPECT_THAT([&] { run({.site = heads, .head = 3, .numbers = Tensor(1, 4)}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no head 3; it has 3")));
  EXPECT_THAT([&] { run({.site = heads, .head = -1, .numbers = Tensor(1, 4)}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no head -1")));
  EXPECT_THAT([&] { run({.site = heads, .head = 2, .numbers = Tensor(2, 5)}); },
              ThrowsMessage<ShapeError>(HasSubstr("are [2,5], expected [4,4], or [1,4] for all rows")));
  Tensor nan(1, kModelWidth);
  nan(0, 3) = std::nanf("");
  EXPECT_THAT([&] { run({.site = heads, .numbers = std::move(nan)}); },
              ThrowsMessage<UsageError>(
                  HasSubstr(heads + "': row 0 of the numbers to put there has one that is not finite")));
  const auto add = [&](SiteReplacement added) {
    SiteValues values;
    values.add(std::move(added));
  };
  Tensor infinite(2, 4), large(1, 4);
  infinite(1, 2) = -HUGE_VALF;
  large(0, 3) = -3e30f;
  EXPECT_THAT([&] { add({.site = heads, .numbers = std::move(infinite)}); },
              ThrowsMessage<UsageError>(
                  HasSubstr(heads + "': row 1 of the numbers to add there has one that is not finite")));
  EXPECT_THAT([&] { add({.site = heads, .numbers = Tensor(1, 4), .strength = HUGE_VALF}); },
              ThrowsMessage<UsageError>(HasSubstr(heads + "': the strength is inf; expected a finite")));
  EXPECT_THAT([&] { add({.site = heads, .numbers = std::move(large), .strength = 1e9f}); },
              ThrowsMessage<UsageError>(
                  HasSubstr(heads + "': 1e+09, the strength, times 3e+30, a number of row 0, is too large")));
  EXPECT_THAT([&] { run({.site = heads, .numbers = Tensor(1, kModelWidth), .strength = 2}); },
              ThrowsMessage<UsageError>(HasSubstr(heads + "': numbers that are put there have no strength")));
  SiteValues values;
  EXPECT_THAT([&] { values.kept(heads); }, ThrowsMessage<UsageError>(HasSubstr("keep it")));
  EXPECT_FALSE(values.has_gradient(heads));
  EXPECT_THAT([&] { values.gradient(heads); }, ThrowsMessage<UsageError>(HasSubstr("watch it")));
  values.watch("*.heads");
  Tape tape;
  Context context{.tape = tape, .sites = &values};
  EXPECT_THAT(
      [&] {
        stack.forward(context, tape.constant(x.view()), {.ids = {}, .ragged = &ragged, .sentences = {}});
      },
      ThrowsMessage<UsageError>(HasSubstr("kRecordValues")));
}

}  // namespace
}  // namespace mh
