#include "multihead/train/translator/translator_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/text_tokens.h"

namespace mh {
namespace {

Tokenizer learn(const TranslatorSettings& settings, std::span<const std::string> lines,
                const std::string& name) {
  if (settings.word_level) {
    return train_word_level(lines, {.vocabulary_size = settings.vocabulary_size,
                                    .lowercase = settings.lowercase,
                                    .normalization = settings.normalization,
                                    .name = name});
  }
  return train_bpe(lines, {.vocabulary_size = settings.vocabulary_size,
                           .lowercase = settings.lowercase,
                           .normalization = settings.normalization,
                           .name = name});
}

Tokenizer read_tokenizer(const std::filesystem::path& path) {
  return Tokenizer::from_json(read_regular_file(path), path.string());
}

std::vector<int32_t> framed_ids(const Tokenizer& tokenizer, const std::string& text, bool own_template,
                                const PairFrame::Ends& ends) {
  std::vector<int32_t> ids = tokenizer.encode_ids(text, own_template);
  ids.insert(ids.begin(), ends.before.begin(), ends.before.end());
  ids.insert(ids.end(), ends.behind.begin(), ends.behind.end());
  return ids;
}

}  // namespace

TranslatorTokenizers tokenizers_of(const ModelFolder& folder, const ModelFolder& kept,
                                   const PairTexts& texts) {
  TranslatorTokenizers found{.source = folder.source_tokens(),
                             .own_target = folder.target_tokenizer,
                             .frame = frame_of(folder, texts)};
  for (const std::string& name : kept.source->small_files()) found.files[name] = kept.source->read(name);
  return found;
}

TranslatorTokenizers make_tokenizers(const TranslatorSettings& settings, const ParallelText& text) {
  if (!settings.tokenizer.empty()) return {read_tokenizer(settings.tokenizer)};
  if (settings.separate_vocabularies) {
    return {learn(settings, text.source, settings.train_source),
            learn(settings, text.target, settings.train_target)};
  }
  std::vector<std::string> both = text.source;
  both.insert(both.end(), text.target.begin(), text.target.end());
  return {learn(settings, both, settings.train_source + ", " + settings.train_target)};
}

SpecialIds special_ids(const Tokenizer& tokenizer, const std::string& name) {
  const auto end = tokenizer.id_of("</s>");
  const auto pad = tokenizer.id_of("<pad>");
  if (!end || !pad) {
    throw UsageError(
        fmt::format("{} has no {} token, which a translator needs; learn one with multihead tokenize, or "
                    "leave out `tokenizer`",
                    name, end ? "<pad>" : "</s>"));
  }
  const std::vector<int32_t> nothing = tokenizer.encode_ids("");
  if (nothing.empty() || nothing.back() != *end) {
    throw UsageError(
        fmt::format("{} does not append </s> to what it encodes, which a translator needs; give it a "
                    "template post-processor that does, or leave out `tokenizer`",
                    name));
  }
  return {*end, *pad};
}

EncodedText encode_text(const ParallelText& text, const TranslatorTokenizers& tokenizers,
                        int64_t max_length) {
  ParallelTokens all;
  all.source.resize(text.size());
  all.target.resize(text.size());
  const PairFrame& frame = tokenizers.frame;
  constexpr size_t kLinesOfTask = 256;
  const size_t tasks = (text.size() + kLinesOfTask - 1) / kLinesOfTask;
  parallel_for(static_cast<int64_t>(tasks), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kLinesOfTask;
    for (size_t i = begin; i < std::min(begin + kLinesOfTask, text.size()); ++i) {
      all.source[i] = framed_ids(tokenizers.source, behind_prefix(frame.prefix, text.source[i]),
                                 frame.own_template, frame.source);
      all.target[i] = framed_ids(tokenizers.target(), text.target[i], frame.own_template, frame.target);
    }
  });
  const std::vector<int64_t> longer = longer_than(all, max_length);
  EncodedText encoded;
  size_t next_longer = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto line = static_cast<int64_t>(i) + 1;
    if (next_longer < longer.size() && longer[next_longer] == static_cast<int64_t>(i)) {
      encoded.left_out.push_back(line);
      ++next_longer;
      continue;
    }
    encoded.corpus.tokens.source.push_back(std::move(all.source[i]));
    encoded.corpus.tokens.target.push_back(std::move(all.target[i]));
    encoded.corpus.lines.push_back(line);
  }
  return encoded;
}

}  // namespace mh
