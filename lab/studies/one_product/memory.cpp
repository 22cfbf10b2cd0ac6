// 004.5: what h matrices of weights cost in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "lab/studies/claim_words.h"
#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/heads/sites/site_values.h"

namespace mh::one_product {
namespace {

using namespace lab;

constexpr int kModel = 64, kHeads = 8;

/// Linux: a line of the status of this process in bytes, "VmHWM:" for the largest resident size since
/// reset_peak(). Nothing elsewhere.
std::optional<double> resident(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return 1024 * std::atof(line.c_str() + field.size());
  }
  return std::nullopt;
}
bool reset_peak() {
  std::ofstream control("/proc/self/clear_refs");
  return static_cast<bool>(control << '5' << std::flush);
}

struct Peak {
  double arena = 0;               // bytes of the tape's arena
  std::optional<double> process;  // by which the resident size grew
};

enum class Keep { kNothing, kWeights };

void forward(Layer& layer, Tape& tape, const Tensor& x, Keep keep) {
  const Ragged ragged = Ragged::from_lengths(std::vector{static_cast<int32_t>(x.rows())});
  SiteValues weights;
  if (keep == Keep::kWeights) weights.keep("layer.weights.*");
  Context context{.tape = tape, .sites = &weights};
  layer.attention().self_heads(context, tape.constant(const_cast<Tensor&>(x).view()),
                               {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::none());
}

/// Of one forward pass. The arena is painted beforehand: the last byte that has another colour afterwards is
/// the highest that was ever used, also by what was given back meanwhile.
Peak forward_peak(int tokens, Keep keep) {
  constexpr unsigned char kPaint = 0xA7;
  Layer layer({.heads = kHeads}, kModel, 1);
  Random random(1, 45);
  const Tensor x = in_float(random_matrix(tokens, kModel, random));
  Peak peak;
  {
    const bool known = reset_peak();
    const auto before = resident("VmRSS:");
    Tape tape;
    forward(layer, tape, x, keep);
    const auto most = resident("VmHWM:");
    if (known && before && most) peak.process = *most - *before;
  }
  Tape tape;
  const size_t room = size_t{4} * kHeads * static_cast<size_t>(tokens) * static_cast<size_t>(tokens) +
                      size_t{64} * kModel * static_cast<size_t>(tokens) + (size_t{1} << 20);
  auto* memory = static_cast<unsigned char*>(tape.arena().allocate(room));
  std::memset(memory, kPaint, room);
  tape.arena().clear();
  forward(layer, tape, x, keep);
  size_t used = room;
  while (used > 0 && memory[used - 1] == kPaint) --used;
  peak.arena = static_cast<double>(used);
  return peak;
}

}  // namespace

/// mistake 1: the fused pass is asked for the weights, too; 2: the pass that should keep them is not asked.
Claim memory(const AlgebraCase& a) {
  Claim claim = claim_without_figures("004.5");
  const Keep fused_keeps = a.mistake == 1 ? Keep::kWeights : Keep::kNothing,
             other_keeps = a.mistake == 2 ? Keep::kNothing : Keep::kWeights;
  const auto mib = [](double bytes) { return fmt::format("{:.1f}", bytes / (1 << 20)); };
  std::vector<Peak> fused, kept;
  double off = 0;
  for (const int t : {512, 1024, 2048}) {
    fused.push_back(forward_peak(t, fused_keeps));
    kept.push_back(forward_peak(t, other_keeps));
    const double weights = 4.0 * kHeads * t * t;
    off = std::max(off, std::abs((kept.back().arena - fused.back().arena) / weights - 1));
    const auto of_process = [&](const Peak& peak) { return peak.process ? mib(*peak.process) : "not known"; };
    claim.tables[0].rows.push_back({std::to_string(t), mib(fused.back().arena), mib(kept.back().arena),
                                    mib(weights), of_process(fused.back()), of_process(kept.back())});
  }
  const double growth = fused[2].arena / fused[0].arena;
  decide(claim, growth >= 3.8 && growth <= 4.2,
         fmt::format("{:.2f} times, to {} MiB", growth, mib(fused[2].arena)));
  decide(
      claim, off <= 0.01,
      fmt::format("off by at most {:.2f} %; at T = 2,048 the peak is {} MiB", 100 * off, mib(kept[2].arena)));
  if (fused[2].process && kept[2].process) {
    measure(claim, fmt::format("at T = 2,048 by {} MiB fused, by {} MiB with the weights kept",
                               mib(*fused[2].process), mib(*kept[2].process)));
  } else {
    claim.clauses.pop_back();
  }
  return claim;
}

}  // namespace mh::one_product
