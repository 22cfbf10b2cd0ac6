// multihead heads circuits: W_QK and W_OV of every head, from the weights alone.
#include <memory>
#include <optional>
#include <string>

#include "cli/common.h"
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
    std::string model = {}, output = {};
    ReportFlags<CircuitsOptions> settings = {};
    int shown = 20;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  Verb* verb = heads.add_subcommand(
      "circuits", "W_QK and W_OV of every head: spectra, copying, compositions; from the weights alone");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  Flag* compositions = add_number(*verb, "--compositions", flags->shown, {.low = 0},
                                  "How many compositions are shown, the strongest; 0: none are computed");
  verb->add_flag("--json", flags->json, "Write JSON; all compositions unless --compositions is given");
  add_output_flag(*verb, "-o,--output", flags->output, "Write to this file instead of standard output");
  flags->settings.add(*verb);
  verb->footer("Example:\n  multihead heads circuits minilm\n  multihead heads circuits demo --json");
  verb->callback([flags, compositions] {
    CircuitsOptions options = flags->settings.given();
    options.compositions = flags->shown > 0;
    const ModelFolder folder = load_model(flags->model);
    const CircuitsReport circuits = heads_circuits(*folder.model, options);
    const auto shown = static_cast<size_t>(flags->shown);
    write_text(flags->output, flags->json ? flags->settings.with_options(
                                                circuits_json(flags->model, circuits,
                                                              compositions->count() > 0 ? std::optional(shown)
                                                                                        : std::nullopt),
                                                options)
                                          : circuits_table(circuits, {.compositions = shown}));
  });
}

}  // namespace mh::cli
