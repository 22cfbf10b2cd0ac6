#include "cli/heads/pair_flags.h"

#include <string>
#include <utility>

#include "cli/common.h"
#include "cli/options.h"

namespace mh::cli {

void PairFlags::add(Verb& verb) {
  needed_ = {
      verb.add_option("--clean", question_.clean, "Text on which the model prefers the answer"),
      verb.add_option("--corrupt", question_.corrupt, "Text of equally many tokens on which it does not"),
      verb.add_option("--answer", question_.answer,
                      "Word that the model predicts next after the clean text, or at its mask; for sentence "
                      "vectors a text"),
      verb.add_option("--wrong", question_.wrong, "Word that it predicts after the corrupt text")};
  prefix_ = verb.add_option("--prefix", question_.prefix,
                            "Beginning of a translator's target, after which the answer comes");
  of_token_ =
      add_number(verb, "--token", token_, {.low = 0},
                 "Of a classifier of tokens: the token between whose labels it decides, counted from 0")
          ->default_str("");
}

PatchQuestion PairFlags::given() const {
  const auto check = [](const Flag& flag) {
    for (const std::string& text : flag.results()) check_utf8(text, flag.get_name());
  };
  for (const Flag* flag : needed_) check(*flag);
  check(*prefix_);
  PatchQuestion question = question_;
  if (of_token_->count() > 0) question.position = token_;
  return question;
}

}  // namespace mh::cli
