// The speed of a causal model beside a peer (benchmarks/peers/generate.py): generate_speed MODEL, and then
//
//   peak                    -> GFLOP/s in a loop of multiply-adds on every thread at once
//   bandwidth               -> GB/s when all threads read 1 GiB in order
//   precision NAME          -> 0; products are of this precision from now on (docs/precision.md)
//   cache NAME              -> 0; what was read is kept so from now on (docs/precision.md#the-cache)
//   prompt TOKENS           -> seconds to read a prompt of so many tokens and say what comes next
//   streams COUNT NEW       -> seconds for NEW tokens after each of COUNT prompts of 16 tokens, greedy, the prompts' time
//                           taken off
//   context TOKENS NEW      -> seconds for NEW tokens behind TOKENS that were read before, greedy
//   loading                 -> seconds that opening the model took, and reading a token takes; so ask before the others
//   memory                  -> MiB this process held at most
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "benchmarks/peak.h"
#include "benchmarks/precision_command.h"
#include "multihead/base/random.h"
#include "multihead/generate.h"
#include "multihead/generate/prompt_cache.h"

namespace {

class EndedEarly : public mh::Error {
 public:
  using Error::Error;
};

class Speed {
 public:
  explicit Speed(const char* model)
      : folder_(mh::load_model_folder(model)), seconds_to_open_(since_start_.seconds()) {}

  double answer(const std::string& what, std::istringstream& rest) {
    int count = 0, more = 0;
    if (what == "peak") return mh::peak_gflops();
    if (what == "bandwidth") return mh::read_gigabytes();
    if (what == "memory") return mh::peak_mebibytes();
    if (what == "precision") return mh::use_precision_named(*folder_.model, rest);
    if (what == "loading") return seconds_to_open_ + seconds(1, 1, 1);
    if (what == "cache") {
      cache_ = mh::cache_type_named(rest);
      return 0;
    }
    if (what == "context" && rest >> count >> more) return behind(count, more);
    if (what == "prompt" && rest >> count) return seconds(1, count, 1);
    if (what == "streams" && rest >> count >> more) return streams(count, more);
    throw mh::UsageError("unknown command: " + what);
  }

 private:
  /// The first seed is taken whose prompts are followed by so many tokens, since a text may end.
  double streams(int count, int new_tokens) {
    for (;; ++seed_) {
      try {
        return seconds(count, 16, 1 + new_tokens) - seconds(count, 16, 1);
      } catch (const EndedEarly&) {
        if (seed_ == 50) throw;
      }
    }
  }
  std::vector<std::vector<int32_t>> random_prompts(int prompts, int tokens) const {
    mh::Random random(seed_);
    const auto vocabulary = static_cast<uint64_t>(folder_.language_model().facts().vocabulary);
    std::vector<std::vector<int32_t>> ids(static_cast<size_t>(prompts));
    for (auto& prompt : ids) {
      for (int i = 0; i < tokens; ++i) prompt.push_back(static_cast<int32_t>(random.below(vocabulary)));
    }
    return ids;
  }

  /// The prompt is kept, so that only its last token is read again.
  double behind(int tokens, int new_tokens) {
    const auto prompt = random_prompts(1, tokens);
    const auto time = [&](int count) { return seconds(prompt, count, &read_); };
    time(1);
    const double first = time(1);
    return time(1 + new_tokens) - first;
  }

  double seconds(int prompts, int tokens, int new_tokens) {
    return seconds(random_prompts(prompts, tokens), new_tokens, nullptr);
  }

  double seconds(const std::vector<std::vector<int32_t>>& ids, int new_tokens, mh::PromptCache* read) const {
    const mh::Stopwatch watch;
    const auto texts = mh::generate(folder_.language_model(), ids,
                                    {.next_token = mh::NextToken::kGreedy,
                                     .max_new_tokens = new_tokens,
                                     .max_batch_tokens = 1 << 20,
                                     .prompt_cache = read,
                                     .cache = cache_});
    const double time = watch.seconds();
    for (const mh::Generated& text : texts) {
      if (text.end != mh::GenerationEnd::kMaxNewTokens)
        throw EndedEarly("a text ended early: take a model without end token");
    }
    return time;
  }

  mh::Stopwatch since_start_;
  mh::ModelFolder folder_;
  double seconds_to_open_;
  uint64_t seed_ = 7;
  mh::CacheType cache_ = mh::CacheType::kFloat32;
  mh::PromptCache read_;
};

int run(int argc, char** argv) {
  if (argc != 2) throw mh::UsageError("usage: generate_speed MODEL");
  Speed speed(argv[1]);
  return mh::answer_commands(
      [&](const std::string& what, std::istringstream& rest) { return speed.answer(what, rest); });
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("generate_speed", run, argc, argv);
}
