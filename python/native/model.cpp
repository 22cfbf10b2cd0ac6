#include "model.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "module_parts.h"
#include "multihead/base/error.h"
#include "multihead/folders/save_folder.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/folders/shipped_folder.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/heads/conversion/prune_heads.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/models/use_precision.h"
#include "multihead/nn/multi_head_attention.h"
#include "names.h"

namespace mh::python {
namespace {

/// (attention, heads, key heads, value heads, size of keys, size of values) of every attention.
using AttentionShape = std::tuple<std::string, int, int, int, int, int>;

std::vector<AttentionShape> attentions_of(const LoadedModel& loaded) {
  std::vector<AttentionShape> shapes;
  for (const Model::Attention& attention : loaded.model().attentions()) {
    const HeadGeometry& heads = loaded.model().attention(attention.name).geometry();
    shapes.emplace_back(attention.name, attention.heads, heads.key_heads, heads.value_heads, heads.d_key,
                        heads.d_value);
  }
  return shapes;
}

constexpr EnumNames<NumberType> kTypes = {{"float32", NumberType::kFloat32},
                                          {"bfloat16", NumberType::kBFloat16}};

void save(const LoadedModel& loaded, const std::string& path, const std::string& dtype, bool own_format,
          bool overwrite) {
  const SavedFormat format = format_when_saved(loaded.folder(), loaded.removed());
  if (format.kind == SavedFormat::Kind::kOwn && !format.as_read && !own_format) {
    throw UsageError(fmt::format(
        "Transformers could not open the folder: {}; allow a folder that multihead opens: `own_format`",
        format.why));
  }
  const SaveOptions options{.type = value_named(dtype, kTypes, "dtype"),
                            .own_format = own_format ? OwnFormat::kAllowed : OwnFormat::kRefused,
                            .removed = loaded.removed(),
                            .replace = overwrite ? Replace::kAnyModel : Replace::kOwnFolders};
  // With own_format the caller knows that Transformers does not open it.
  if (format.kind == SavedFormat::Kind::kPrunedHeads) warn(format_line(format, loaded.folder().model_type));
  long_call([&] { save_model_folder(path, loaded.folder(), options); });
}

/// argument: of the edit, "replace" or "add".
SiteReplacement put_at(const char* argument, const std::string& site, const nb::object& numbers,
                       std::optional<int32_t> sequence, std::optional<int32_t> position,
                       std::optional<int> head, float strength) {
  FloatArray array(numbers, argument);
  if (array.dimensions() < 1 || array.dimensions() > 2)
    throw ShapeError(fmt::format("`{}`: expected [columns] or [rows, columns] for {}, got {}", argument, site,
                                 array.shape_text()));
  const ConstMatrixView rows = array.dimensions() == 1 ? array.matrix({0}, 1) : array.matrix({0, 1}, 1);
  return {.site = site,
          .sequence = sequence,
          .position = position,
          .head = head,
          .numbers = copied(rows),
          .strength = strength};
}

void replace(Edits& edits, const std::string& site, const nb::object& numbers,
             std::optional<int32_t> sequence, std::optional<int32_t> position, std::optional<int> head,
             float strength) {
  edits.values.replace(put_at("replace", site, numbers, sequence, position, head, strength));
}

void add(Edits& edits, const std::string& site, const nb::object& numbers, std::optional<int32_t> sequence,
         std::optional<int32_t> position, std::optional<int> head, float strength) {
  edits.values.add(put_at("add", site, numbers, sequence, position, head, strength));
}

std::unique_ptr<LoadedModel> without_heads(const LoadedModel& whole, const std::vector<std::string>& heads) {
  if (!whole.removed().empty())
    throw UsageError(
        "this model has lost heads already; name all of them at once, or save it and load it again");
  std::vector<HeadPattern> patterns;
  for (const std::string& head : heads) patterns.emplace_back(head);
  ModelFolder folder = load_model_folder(whole.place());
  const PrunePlan plan = plan_pruning(*folder.model, patterns);
  folder.model = prune_heads(*folder.model, plan);
  return std::make_unique<LoadedModel>(whole.place(), std::move(folder), plan.removed_heads(),
                                       whole.precision());
}

std::string place_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return is_shipped(path) || error ? path : whole.lexically_normal().string();
}

/// With how its sentences become vectors; where they cannot, `why_not` says why.
ScoredModel with_vectors(const std::string& path, ModelFolder folder, std::string& why_not) {
  SentenceModel model{.folder = std::move(folder)};
  try {
    read_sentence_steps(path, model);
  } catch (const Error& error) {
    why_not = error.what();
    return std::move(model.folder);
  }
  return model;
}

}  // namespace

LoadedModel::LoadedModel(const std::string& path, PrecisionChoice precision)
    : LoadedModel(path, load_model_folder(path), {}, precision) {}

LoadedModel::LoadedModel(const std::string& path, ModelFolder folder, std::vector<HeadName> removed,
                         PrecisionChoice precision)
    : path_(path),
      place_(place_of(path)),
      precision_(precision),
      model_(with_vectors(path, std::move(folder), no_vectors_)),
      removed_(std::move(removed)) {
  use_precision(*model_.folder().model, precision);
  const bool is_of_sentences = embeds() && has_sentence_modules(path);
  const std::string of_folder = model_.folder().remark();
  if (!of_folder.empty()) remarks_.push_back(of_folder);
  for (const std::string& line : model_.remarks()) {
    if (line != of_folder) (is_of_sentences ? remarks_ : vector_remarks_).push_back(line);
  }
}

const std::string& LoadedModel::weights() const {
  std::call_once(hashed_, [&] { weights_ = weights_hash(folder()); });
  return weights_;
}

const ScoredModel& LoadedModel::scored() const {
  if (folder().gives_vectors_alone()) sentences();
  return model_;
}

const SentenceModel& LoadedModel::sentences() const {
  if (!no_vectors_.empty()) throw UsageError(no_vectors_);
  return model_.sentences();
}

Sites* sites_of(Edits* edits, const LoadedModel& model) {
  if (edits == nullptr || (edits->values.empty() && edits->functions.empty())) return nullptr;
  for (const SteerDirection& direction : edits->directions)
    check_direction(direction, model.model(), model.weights());
  model.model().check(edits->both);
  return &edits->both;
}

void add_model(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Edits>(module, "Edits")
      .def(nb::init<>())
      .def(
          "mute", [](Edits& edits, const std::string& heads) { edits.values.mute(heads); }, "heads"_a)
      .def(
          "gate",
          [](Edits& edits, const std::string& heads, float gate) { edits.values.set_gate(heads, gate); },
          "heads"_a, "gate"_a)
      .def(
          "rule",
          [](Edits& edits, const std::string& heads, const std::string& rule) {
            edits.values.replace_weights(heads, value_named(rule, kWeightRuleNames, "replace"));
          },
          "heads"_a, "rule"_a)
      .def("replace", replace, "site"_a, "numbers"_a, nb::kw_only(), "sequence"_a = nb::none(),
           "position"_a = nb::none(), "head"_a = nb::none(), "strength"_a = 1.0f)
      .def("add", add, "site"_a, "numbers"_a, nb::kw_only(), "sequence"_a = nb::none(),
           "position"_a = nb::none(), "head"_a = nb::none(), "strength"_a = 1.0f)
      .def(
          "function",
          [](Edits& edits, const std::string& site, nb::object function) {
            edits.functions.add(site, std::move(function));
          },
          "site"_a, "function"_a)
      .def(
          "steer",
          [](Edits& edits, const SteerDirection& direction, float strength) {
            edits.values.add(direction.times(strength));
            edits.directions.push_back(direction);
          },
          "direction"_a, "strength"_a)
      .def(
          "check", [](Edits& edits, const LoadedModel& model) { sites_of(&edits, model); }, "model"_a)
      .def("unread", [](const Edits& edits) {
        std::vector<std::string> lines = edits.values.unread();
        for (std::string& line : edits.functions.unread()) lines.push_back(std::move(line));
        return lines;
      });

  nb::class_<LoadedModel> model(module, "Model");
  model
      .def(
          "__init__",
          [](LoadedModel* made, const std::string& path, const std::string& precision) {
            const auto wanted = precision_named(precision);
            if (!wanted)
              throw UsageError(fmt::format("`precision`: expected {}, got {}", precisions_like(precision),
                                           precision.empty() ? "nothing" : precision));
            long_call([&] { new (made) LoadedModel(path, *wanted); });
          },
          "path"_a, "precision"_a)
      .def(
          "pruned",
          [](const LoadedModel& whole, const std::vector<std::string>& heads) {
            return long_call([&] { return without_heads(whole, heads); });
          },
          "heads"_a)
      .def_prop_ro("path", &LoadedModel::path)
      .def_prop_ro("place", &LoadedModel::place)
      .def_prop_ro("weights",
                   [](const LoadedModel& loaded) { return long_call([&] { return loaded.weights(); }); })
      .def_prop_ro("removed",
                   [](const LoadedModel& loaded) {
                     std::vector<std::string> names;
                     for (const HeadName& head : loaded.removed()) names.push_back(head.name());
                     return names;
                   })
      .def_prop_ro("precision", [](const LoadedModel& loaded) { return precision_name(loaded.precision()); })
      .def_prop_ro("kind",
                   [](const LoadedModel& loaded) { return name_of(loaded.model().kind(), kModelKindNames); })
      .def_prop_ro("model_type", [](const LoadedModel& loaded) { return loaded.folder().model_type; })
      .def_prop_ro("remarks", &LoadedModel::remarks)
      .def_prop_ro("predicts", [](const LoadedModel& loaded) { return loaded.model().predicts(); })
      .def_prop_ro("embeds", &LoadedModel::embeds)
      .def_prop_ro("tokenizes", &LoadedModel::tokenizes)
      .def_prop_ro("parameter_count",
                   [](const LoadedModel& loaded) { return loaded.model().parameter_count(); })
      .def_prop_ro("d_model", [](const LoadedModel& loaded) { return loaded.model().facts().d_model; })
      .def_prop_ro("longest", [](const LoadedModel& loaded) { return loaded.model().facts().max_positions; })
      .def_prop_ro("vocabulary_size",
                   [](const LoadedModel& loaded) { return loaded.model().facts().vocabulary_read(); })
      .def_prop_ro("attentions", attentions_of)
      .def_prop_ro("sites",
                   [](const LoadedModel& loaded) {
                     std::vector<std::pair<std::string, int64_t>> sites;
                     for (const SiteShape& site : loaded.model().sites())
                       sites.emplace_back(site.name, site.columns);
                     return sites;
                   })
      .def(
          "heads_named",
          [](const LoadedModel& loaded, const std::string& pattern) {
            std::vector<std::string> names;
            for (const HeadName& head : loaded.model().heads_named(HeadPattern(pattern)))
              names.push_back(head.name());
            return names;
          },
          "pattern"_a)
      .def("save", save, "path"_a, "dtype"_a, "own_format"_a, "overwrite"_a);
  add_tasks(model);
  add_translate(model);
  add_next(model);
  add_parameters(model);
  add_observation(module, model);
  add_gradient(model);
  add_site_gradients(model);
  add_analyses(model);
  add_check(module, model);
  add_steering(module, model);
  add_view(module, model);
}

}  // namespace mh::python
