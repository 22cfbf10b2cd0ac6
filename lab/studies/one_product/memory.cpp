// 004.5: what h matrices of weights cost in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/heads/site_values.h"

namespace mh::one_product {
namespace {

using namespace lab;

constexpr int kModel = 64, kHeads = 8;

/// Linux: a line of the status of this process in bytes, "VmHWM:" for the largest resident size since
/// reset_peak(). Nothing elsewhere.
std::optional<double> resident(const char* field) {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return std::nullopt;
  std::optional<double> bytes;
  char line[256];
  const size_t length = std::strlen(field);
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (std::strncmp(line, field, length) == 0) bytes = 1024 * std::atof(line + length + 1);
  }
  std::fclose(status);
  return bytes;
}
bool reset_peak() {
  std::FILE* control = std::fopen("/proc/self/clear_refs", "w");
  if (control == nullptr) return false;
  const bool written = std::fputs("5", control) >= 0;
  return std::fclose(control) == 0 && written;
}

struct Peak {
  double arena = 0;               // bytes of the tape's arena
  std::optional<double> process;  // by which the resident size grew
};

enum class Keep { kNothing, kWeights };

void forward(Layer& layer, Tape& tape, const Tensor& x, Keep keep) {
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(x.rows())});
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
  Claim claim{.id = "004.5",
              .statement =
                  "The h matrices of T x T weights cost memory only where they are kept: fused attention "
                  "computes them piece by piece and needs memory for T rows of d numbers."};
  Table table{"peak of one forward pass, d = 64, h = 8, MiB",
              {"T", "arena: fused", "weights kept", "h T^2 x 4 bytes", "process: fused", "weights kept"},
              {}};
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
    table.rows.push_back({std::to_string(t), mib(fused.back().arena), mib(kept.back().arena), mib(weights),
                          of_process(fused.back()), of_process(kept.back())});
  }
  const double growth = fused[2].arena / fused[0].arena;
  claim.clauses.push_back(algebraic(
      "The peak of fused attention grows with T.", "3.8 to 4.2 times from T = 512 to 2,048",
      fmt::format("{:.2f} times, to {} MiB", growth, mib(fused[2].arena)), growth >= 3.8 && growth <= 4.2));
  claim.clauses.push_back(algebraic(
      "Keeping the weights adds h T^2 numbers of 4 bytes to the peak.",
      "within 1 % at T = 512, 1,024 and 2,048",
      fmt::format("off by at most {:.2f} %; at T = 2,048 the peak is {} MiB", 100 * off, mib(kept[2].arena)),
      off <= 0.01));
  if (fused[2].process && kept[2].process) {
    claim.clauses.push_back(measured_only(
        "By how much the resident size of the whole process grows, scratch memory of threads included.",
        fmt::format("at T = 2,048 by {} MiB fused, by {} MiB with the weights kept", mib(*fused[2].process),
                    mib(*kept[2].process)),
        Evidence::kAlgebra));
  }
  claim.tables.push_back(std::move(table));
  return claim;
}

}  // namespace mh::one_product
