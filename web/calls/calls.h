// What a page in a browser asks of a model: one text of JSON in, one out. module.cpp gives it to JavaScript (web/README.md lists
// the calls with their fields); tests/web calls it without a browser.
//
//   mh::web::Models models;
//   models.call(R"({"call": "open", "given": {"path": "demo"}})");               // {"model": 1, ...}
//   models.call(R"({"call": "translate", "model": 1, "given": {"texts": ["two dogs run ."]}})");
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "multihead/folders/scored_model.h"

namespace mh::web {

/// The models that are open, by their numbers.
class Models {
 public:
  /// Answers a request. Never throws: of whatever fails the answer is {"error": "one line"}.
  std::string call(std::string_view request);

 private:
  using Open = std::map<int, std::unique_ptr<const ScoredModel>>;
  /// Throws UsageError on a number of no model.
  Open::iterator model_of(int number);

  Open open_;
  int last_ = 0;
};

}  // namespace mh::web
