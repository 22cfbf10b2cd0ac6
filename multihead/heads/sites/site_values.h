// SiteValues: keeps, replaces, adds to, scales and differentiates the values at sites (nn/sites.h).
//
//   SiteValues values;
//   values.keep("encoder.*.heads");                                   // what all heads give
//   values.replace({.site = "encoder.3.self_attention.heads", .head = 5, .numbers = zeros});
//   values.add({.site = "encoder.3.output", .numbers = direction, .strength = 4});  // to all rows
//   values.mute("encoder.2.self_attention.*");                        // no head of that attention
//   values.replace_weights("encoder.1.self_attention.0", WeightRule::kUniform);  // it looks at all alike
//   values.watch("encoder.embeddings");                               // its gradient is wanted
//   Tape tape(Tape::Mode::kRecordValues);
//   Context context{.tape = tape, .sites = &values};
//   ... a forward pass, a scalar, tape.backward(scalar);
//   values.value("encoder.3.self_attention.heads"), values.gradient("encoder.embeddings")
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/heads/sites/site_pattern.h"
#include "multihead/heads/sites/site_replacement.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// What a head looks at in place of what its scores say: its weights after the softmax. Of a query that may see no key all
/// are 0.
enum class WeightRule {
  kUniform,  // all keys that the query may see, alike
  kPrevious,  // key i - 1 for the query at position i of its sequence, or the key nearest to it that the query may see
  kFirst,  // the first key that the query may see: key 0, or the first one of a window
};
inline constexpr EnumNames<WeightRule> kWeightRuleNames = {
    {"uniform", WeightRule::kUniform}, {"previous", WeightRule::kPrevious}, {"first", WeightRule::kFirst}};

/// A value that was kept.
struct KeptValue {
  Tensor value;                    // [N, columns]
  std::vector<int32_t> offsets;    // [S + 1]
  std::vector<int32_t> positions;  // [N]; empty: each sequence is whole
  std::vector<int32_t> keys;       // [N], of scores and weights: how many keys a row has (SiteValue::keys)

  /// The rows of sequence s; of scores and weights its keys alone, [Tq, Tk]. Throws UsageError on a sequence that is not
  /// there.
  ConstMatrixView sequence(int s) const;
};

/// For one forward pass at a time where it keeps or watches, else for any number. Its gradients live on the tape.
class SiteValues final : public Sites {
 public:
  /// Keeps the values of the sites that a name or a pattern (* stands for any characters) fits.
  void keep(std::string pattern) { ask(kept_patterns_, std::move(pattern)); }
  /// Asks for their gradients; the tape must record.
  void watch(std::string pattern) { ask(watched_patterns_, std::move(pattern)); }
  /// Puts numbers in place of a value. Of a site what is put there and what is added follow one another in the order in which they
  /// were given. Throws as check_replacement() does.
  void replace(SiteReplacement replacement) { change(std::move(replacement), SiteChange::kReplace); }
  /// Adds the numbers times the strength, e.g. a direction by which the model is steered. Throws likewise.
  void add(SiteReplacement added) { change(std::move(added), SiteChange::kAdd); }
  /// Mutes a head, e.g. "encoder.3.self_attention.1", or those that a pattern names (nn/head_name.h), e.g. all heads of
  /// that attention, "encoder.3.self_attention.*": its output is multiplied by 0. Throws UsageError on a name of another
  /// form. A head that is muted and gated, too, is refused (check()).
  void mute(std::string_view heads) { put_gate(heads, 0, true); }
  /// Multiplies the outputs of heads by another gate. Of several gates of one head the last one counts. Throws
  /// UsageError on a gate that is not finite.
  void set_gate(std::string_view heads, float gate) { put_gate(heads, gate, false); }
  /// Puts the weights of a rule in place of those of heads, a name or a pattern as for mute(). Where several rules name
  /// one head, the last one counts. In cross-attention positions are those of the decoder: kPrevious is key i - 1 of
  /// the source, or its last one. Throws UsageError on a name of another form.
  void replace_weights(std::string_view heads, WeightRule rule);
  /// Whether nothing is asked for.
  bool empty() const;
  /// What no pass has met yet of all that changes something: replacements, additions, gates and rules, a line each: the rows, or the heads,
  /// were not there. Models and lists say most of it before (Model::check()); what is left is for words that are made one by one,
  /// and for parts of a model that a task does not run.
  std::vector<std::string> unread() const;

  /// The value as the model went on with it, of the last pass that came by. Throws UsageError when none did.
  const KeptValue& kept(std::string_view site) const;
  const Tensor& value(std::string_view site) const { return kept(site).value; }
  /// Whether it was asked for and a pass came by.
  bool has_gradient(std::string_view site) const { return watched_.contains(site); }
  /// The gradient of the value, summed over backward passes until the tape is cleared. Throws UsageError when no pass
  /// came by, or it was not asked for.
  ConstMatrixView gradient(std::string_view site) const;

  bool wants(const Site& site) const override;
  /// Throws as replaced() does when a replacement does not fit the value, and UsageError when a gate is set of a head that the attention does not have.
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;

  std::vector<std::string> sites_asked() const override;
  std::vector<HeadPattern> heads_asked() const override;
  bool changes() const override { return !(replacements_.empty() && gates_.empty() && rules_.empty()); }
  void check(const SiteShape& site) const override;
  void check(const HeadName& head) const override;

 private:
  /// Whether a pass has met it; passes of several threads may.
  using Met = std::unique_ptr<std::atomic<bool>>;
  struct Gate {
    HeadPattern heads;
    float gate;
    bool mutes;
    Met met = std::make_unique<std::atomic<bool>>(false);
  };
  struct RuledHeads {
    HeadPattern heads;
    WeightRule rule;
    Met met = std::make_unique<std::atomic<bool>>(false);
  };
  struct Replaced {
    SiteReplacement what;
    SitePattern where;
    Met met = std::make_unique<std::atomic<bool>>(false);
  };
  void ask(std::vector<SitePattern>& patterns, std::string pattern);
  void change(SiteReplacement replacement, SiteChange how);
  void put_gate(std::string_view heads, float gate, bool mutes);
  Var gated(Tape& tape, const Site& site, const SiteValue& at) const;
  /// The rule for the weights of a site's head; null: they are left as they are.
  const RuledHeads* rule_of(const Site& site) const;

  std::vector<Gate> gates_;
  std::vector<RuledHeads> rules_;
  std::vector<SitePattern> kept_patterns_, watched_patterns_;
  std::vector<Replaced> replacements_;
  SiteParts asked_parts_ = 0;  // of these patterns and replacements
  std::map<std::string, KeptValue, std::less<>> kept_;
  std::map<std::string, Tape::Watched, std::less<>> watched_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of these two
};

}  // namespace mh
