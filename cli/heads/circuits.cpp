// multihead heads circuits: W_QK and W_OV of every head, from the weights alone.
#include <memory>
#include <optional>
#include <string>

#include "cli/heads/circuits_report.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/heads/reports/circuits_json.h"

namespace mh::cli {

void add_heads_circuits(Verb& heads) {
  struct Flags {
    ReportFlags<CircuitsOptions> report = {};
    int shown = 20;
  };
  auto flags = std::make_shared<Flags>();
  Verb* verb = heads.add_subcommand(
      "circuits", "W_QK and W_OV of every head: spectra, copying, compositions; from the weights alone");
  flags->report.add(*verb, "Write JSON; all compositions unless --compositions is given", RunsModel::kNo);
  Flag* compositions = add_number(*verb, "--compositions", flags->shown, {.low = 0},
                                  "How many compositions are shown, the strongest; 0: none are computed");
  verb->footer("Example:\n  multihead heads circuits minilm\n  multihead heads circuits demo --json");
  verb->callback([flags, compositions] {
    CircuitsOptions options = flags->report.settings.given();
    options.compositions = flags->shown > 0;
    const ModelFolder folder = load_model(flags->report.model.path);
    const auto shown = static_cast<size_t>(flags->shown);
    const auto listed = compositions->count() > 0 ? std::optional(shown) : std::nullopt;
    flags->report.write(
        heads_circuits(*folder.model, options), options,
        [&](const CircuitsReport& found, const std::string& model) {
          return circuits_json(model, found, listed);
        },
        [&](const CircuitsReport& found) { return circuits_table(found, {.compositions = shown}); });
  });
}

}  // namespace mh::cli
