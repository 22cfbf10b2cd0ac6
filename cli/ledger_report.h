// What multihead ledger prints: a table of the parts of a layer or of a model, or a line for each of several.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "multihead/nn/ledger.h"

namespace mh::cli {

/// What is printed of a layer or of a whole model.
struct Account {
  std::string name;    // of the heads, or of the model
  std::string sizes;   // "d_model 512, 8 heads, ..."
  std::string tokens;  // "128 queries, 128 keys"
  AttentionPath path = AttentionPath::kFused;
  std::vector<LedgerPart> parts;
  LedgerPart total;
};

struct ComparedLedger {
  std::string name;
  Account account;
};

std::string ledger_table(const Account& account);
/// The first is what the others are compared with. what: what they are of.
std::string ledger_comparison(const std::vector<ComparedLedger>& all, const std::string& what);
nlohmann::ordered_json ledger_json(const Account& account);

}  // namespace mh::cli
