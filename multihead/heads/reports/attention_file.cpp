#include "multihead/heads/reports/attention_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/npy.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

struct ObservedStack {
  std::string name;
  std::vector<int64_t> shape;  // [H, Tq, Tk]
  std::vector<float> numbers;
};

std::vector<ObservedStack> stacks_of(const Observation& seen) {
  std::vector<ObservedStack> stacks;
  for (const auto& [attention, heads, place] : seen.attentions) {
    ObservedStack& stack =
        stacks.emplace_back(ObservedStack{.name = attention + ".weights", .shape = {}, .numbers = {}});
    for (int h = 0; h < heads; ++h) {
      const ConstMatrixView weights = seen.weights({attention, h});
      stack.shape = {heads, weights.rows, weights.cols};
      for (int64_t i = 0; i < weights.rows; ++i)
        stack.numbers.insert(stack.numbers.end(), weights.row(i), weights.row(i) + weights.cols);
    }
  }
  return stacks;
}

std::string json_list(const std::vector<std::string>& tokens) {
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // a token may be part of a character
  return nlohmann::json(tokens).dump(-1, ' ', false, kReplace);
}

std::string lines_of(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text.append(token).append("\n");
  return text;
}

}  // namespace

void save_attention(const Observation& seen, const std::filesystem::path& path) {
  const std::vector<ObservedStack> stacks = stacks_of(seen);
  const std::vector<int64_t> source_shape{static_cast<int64_t>(seen.source.ids.size())};
  const std::vector<int64_t> target_shape{static_cast<int64_t>(seen.target.ids.size())};
  const std::span<const int32_t> source_ids(seen.source.ids), target_ids(seen.target.ids);
  if (path.extension() == ".safetensors") {
    std::vector<NamedTensor> tensors{{"source_ids", source_shape, source_ids},
                                     {"target_ids", target_shape, target_ids}};
    for (const ObservedStack& stack : stacks)
      tensors.push_back({stack.name, stack.shape, std::span<const float>(stack.numbers)});
    write_file_atomically(path,
                          write_safetensors(tensors, {{"source_tokens", json_list(seen.source.tokens)},
                                                      {"target_tokens", json_list(seen.target.tokens)}}));
    return;
  }
  refuse_foreign_files(path, [](std::string_view name) {
    return name.ends_with(".npy") || name == "source_tokens.txt" || name == "target_tokens.txt";
  });
  FolderWriter writer(path);
  for (const ObservedStack& stack : stacks) {
    writer.add(stack.name + ".npy", write_npy(stack.shape, std::span<const float>(stack.numbers)));
  }
  writer.add("source_ids.npy", write_npy(source_shape, source_ids));
  writer.add("target_ids.npy", write_npy(target_shape, target_ids));
  writer.add("source_tokens.txt", lines_of(seen.source.tokens));
  writer.add("target_tokens.txt", lines_of(seen.target.tokens));
  writer.commit();
}

}  // namespace mh
