#include "multihead/train/translator/first_rank.h"

#include <span>
#include <utility>

#include "multihead/distributed/agreement.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/folder_source.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

// Lists of ids end to end, with the number of ids of each.
void add_lists(MessageWriter& message, const std::vector<std::vector<int32_t>>& lists) {
  std::vector<uint32_t> lengths;
  std::vector<int32_t> all;
  for (const auto& list : lists) {
    lengths.push_back(static_cast<uint32_t>(list.size()));
    all.insert(all.end(), list.begin(), list.end());
  }
  message.add(std::span<const uint32_t>(lengths));
  message.add(std::span<const int32_t>(all));
}

std::vector<std::vector<int32_t>> read_lists(MessageReader& reader) {
  const auto lengths = reader.numbers<uint32_t>();
  const auto all = reader.numbers<int32_t>();
  std::vector<std::vector<int32_t>> lists;
  size_t at = 0;
  for (const uint32_t length : lengths) {
    MH_ASSERT(length <= all.size() - at);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
    lists.emplace_back(begin, begin + length);
    at += length;
  }
  return lists;
}

void add_ids(MessageWriter& message, const std::vector<int32_t>& ids) {
  message.add(std::span<const int32_t>(ids));
}

void add_id(MessageWriter& message, const std::optional<int32_t>& id) {
  add_ids(message, id ? std::vector<int32_t>{*id} : std::vector<int32_t>());
}

std::optional<int32_t> read_id(MessageReader& reader) {
  const std::vector<int32_t> ids = reader.numbers<int32_t>();
  return ids.empty() ? std::nullopt : std::optional(ids.front());
}

// Of the search, what folders say.
void add_frame(MessageWriter& message, const PairFrame& frame) {
  message.add(static_cast<char>(frame.own_template));
  for (const PairFrame::Ends* ends : {&frame.source, &frame.target})
    add_ids(message, ends->before), add_ids(message, ends->behind);
  message.add(std::string_view(frame.prefix));
  SearchOptions search = frame.search;
  message.add(std::string_view(to_json(search)));
  for (const auto& id : {search.forced_first, search.forced_last}) add_id(message, id);
  for (const auto& ids : {search.suppressed, search.end_tokens}) add_ids(message, ids);
}

PairFrame read_frame(MessageReader& reader) {
  PairFrame frame;
  frame.own_template = reader.number<char>() != 0;
  for (PairFrame::Ends* ends : {&frame.source, &frame.target}) {
    ends->before = reader.numbers<int32_t>();
    ends->behind = reader.numbers<int32_t>();
  }
  frame.prefix = reader.text();
  SearchOptions& search = frame.search;
  from_json(search, reader.text(), "the search of rank 0");
  search.forced_first = read_id(reader);
  search.forced_last = read_id(reader);
  search.suppressed = reader.numbers<int32_t>();
  search.end_tokens = reader.numbers<int32_t>();
  return frame;
}

}  // namespace

// As the files of a model folder, since not every tokenizer is one tokenizer.json.
TranslatorTokenizers tokenizers_of_first_rank(ProcessGroup& group,
                                              const std::optional<TranslatorTokenizers>& tokenizers) {
  if (group.size() == 1) return *tokenizers;
  MessageWriter mine;
  if (group.rank() == 0) {
    add_frame(mine, tokenizers->frame);
    MemoryFolder::Files files = tokenizers->files;
    if (files.empty()) {
      for (const auto& [name, bytes] : tokenizers->source.files()) files[name] = bytes;
      if (tokenizers->own_target) {
        for (const auto& [name, bytes] : tokenizers->own_target->files("target_tokenizer.json"))
          files[name] = bytes;
      }
    }
    for (const auto& [name, bytes] : files)
      mine.add(std::string_view(name)), mine.add(std::string_view(bytes));
  }
  const std::string all = of_first_rank(group, mine.bytes());
  if (group.rank() == 0) return *tokenizers;
  MessageReader reader(all);
  PairFrame frame = read_frame(reader);
  MemoryFolder::Files files;
  while (!reader.empty()) {
    std::string name(reader.text());
    files[std::move(name)] = reader.text();
  }
  FolderTokenizers read = read_folder_tokenizers(MemoryFolder(std::move(files), "the tokenizers of rank 0"));
  MH_ASSERT(read.source.has_value());
  return {.source = *std::move(read.source), .own_target = std::move(read.target), .frame = std::move(frame)};
}

EncoderDecoderConfig config_of_first_rank(ProcessGroup& group,
                                          const std::optional<EncoderDecoderConfig>& config) {
  if (group.size() == 1) return *config;
  const bool first = group.rank() == 0;
  const std::string json = of_first_rank(
      group, first
                 ? write_encoder_decoder_config(
                       shape_of(*config), "multihead",
                       {.source_and_target = config->share_embeddings, .target_and_output = config->tied}, {})
                 : std::string());
  return first ? *config : read_encoder_decoder_config(json, "the configuration of rank 0");
}

void add_corpus(MessageWriter& message, const TrainingCorpus& corpus) {
  add_lists(message, corpus.tokens.source);
  add_lists(message, corpus.tokens.target);
  message.add(std::span<const int64_t>(corpus.lines));
}

TrainingCorpus read_corpus(MessageReader& reader) {
  TrainingCorpus corpus;
  corpus.tokens.source = read_lists(reader);
  corpus.tokens.target = read_lists(reader);
  corpus.lines = reader.numbers<int64_t>();
  return corpus;
}

}  // namespace mh
