// Training of a translator.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>

#include "call.h"
#include "module_parts.h"
#include "multihead/io/config.h"
#include "multihead/train/translator/train_translator.h"

namespace mh::python {
namespace {

/// A dictionary of Python whose keys are names.
using Named = nb::typed<nb::dict, nb::str, nb::any>;
using Callback = std::optional<std::function<void(const Named&)>>;

/// Ctrl-C in a callback ends the training as it does elsewhere: after the update is saved.
void call(const Callback& callback, const Named& found, PendingSignal& signal) {
  try {
    (*callback)(found);
  } catch (const nb::python_error& raised) {
    signal.keep(raised);
  }
}

Named scores_of(const Validation& validation) {
  Named scores;
  scores["update"] = validation.update;
  scores["loss"] = validation.loss;
  scores["perplexity"] = validation.perplexity;
  if (validation.bleu) scores["bleu"] = *validation.bleu;
  return scores;
}

Named state_of(const TrainingProgress& progress) {
  Named state;
  state["update"] = progress.update;
  state["updates"] = progress.updates;
  state["epoch"] = progress.epoch;
  state["loss"] = progress.loss;
  state["tokens_per_second"] = progress.target_tokens_per_second;
  state["seconds_left"] = progress.seconds_left;
  return state;
}

Named train(const std::string& settings_json, const Callback& on_update, const Callback& on_validation,
            const std::function<void(const std::string&)>& on_remark) {
  TranslatorSettings settings;
  from_json(settings, settings_json, "the settings");
  const TrainingResult result = stoppable_call([&](PendingSignal& signal) {
    TrainingWatcher watcher;
    watcher.remark = on_remark;
    if (on_update) {
      watcher.progress = [&](const TrainingProgress& progress) {
        const nb::gil_scoped_acquire locked;
        call(on_update, state_of(progress), signal);
      };
    }
    if (on_validation) {
      watcher.validated = [&](const Validation& validation) {
        const nb::gil_scoped_acquire locked;
        call(on_validation, scores_of(validation), signal);
      };
    }
    watcher.stop = [&] { return signal.came(); };
    return train_translator(settings, watcher);
  });
  Named found;
  found["was_finished"] = result.was_finished;
  found["end"] = run_end_text(result.end);
  found["updates"] = result.updates;
  found["averaged"] = result.averaged;
  found["left_out"] = result.left_out;
  found["final"] = nb::none();
  if (result.final) found["final"] = scores_of(*result.final);
  return found;
}

}  // namespace

void add_training(nb::module_& module) {
  using namespace nb::literals;
  module.def("train", train, "settings"_a, nb::kw_only(), "on_update"_a.none(), "on_validation"_a.none(),
             "on_remark"_a);
  module.def("training_settings", [] { return to_json(TranslatorSettings()); });
}

}  // namespace mh::python
