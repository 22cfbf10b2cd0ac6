#include "given_text.h"

#include "call.h"
#include "multihead/base/thread_pool.h"

namespace mh::python {

Observation observe_given(const LoadedModel& loaded, const GivenText& text, const std::string& target,
                          const ObserveTextOptions& options) {
  return read_given(
      text, [&](const std::string& words) { return observe_text(loaded.folder(), words, target, options); },
      [&](const Ids& ids) { return observe_tokens(loaded.folder(), ids, target, options); });
}

std::vector<Observation> observe_each(const LoadedModel& loaded, const std::vector<GivenText>& texts,
                                      const std::vector<std::string>& targets, int64_t first,
                                      const ObserveTextOptions& options) {
  std::vector<Observation> all(texts.size());
  std::vector<std::vector<std::string>> remarks(texts.size());
  parallel_for(std::ssize(texts), [&](int64_t i) {
    const auto text = static_cast<size_t>(i);
    ObserveTextOptions of_one = options;
    of_one.number = first + i;
    of_one.remark = [&](const std::string& line) { remarks[text].push_back(line); };
    all[text] = observe_given(loaded, texts[text], targets.empty() ? std::string() : targets[text], of_one);
  });
  for (const auto& of_text : remarks) {
    for (const std::string& line : of_text) warn(line);
  }
  return all;
}

}  // namespace mh::python
