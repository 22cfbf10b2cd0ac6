#include "multihead/heads/retrieval/needle_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/heads/sites/answer_word.h"

namespace mh {
namespace {

/// The special tokens with which a text begins.
std::vector<int32_t> first_tokens(const Tokenizer& tokenizer) {
  const Encoding letter = tokenizer.encode("a");
  std::vector<int32_t> first;
  for (size_t i = 0; i < letter.ids.size() && letter.offsets[i] == std::pair(0, 0); ++i)
    first.push_back(letter.ids[i]);
  return first;
}

/// As it stands in a text, behind another sentence.
std::vector<int32_t> tokens_behind(const Tokenizer& tokenizer, const std::string& before,
                                   const std::string& text) {
  return AnswerPlace{.tokenizer = tokenizer, .before = before}.tokens(text);
}

/// Of each character (code point) of a text whether a sentence ends with it.
std::vector<char> sentence_ends(std::string_view text) {
  std::vector<char> ends;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80) continue;  // not its first byte
    const bool ends_here = std::string_view(".!?\n").find(text[i]) != std::string_view::npos ||
                           text.substr(i, 3) == "\u3002";  // the full stop of Chinese and Japanese
    ends.push_back(ends_here ? 1 : 0);
  }
  return ends;
}

void check_words(size_t number, const RetrievalNeedle& needle) {
  for (const auto& [text, what] :
       {std::pair(&needle.sentence, "sentence"), std::pair(&needle.question, "question"),
        std::pair(&needle.answer, "answer")}) {
    if (text->empty())
      throw UsageError(fmt::format(
          "needle {}: its {} is empty; a needle has a sentence, a question and an answer", number, what));
  }
  if (needle.sentence.find(needle.answer) == std::string::npos)
    throw UsageError(fmt::format("needle {}: its answer '{}' does not stand in '{}'; give words of it",
                                 number, needle.answer, needle.sentence));
}

}  // namespace

NeedleTexts::NeedleTexts(const ModelFolder& folder, const RetrievalTexts& texts, int32_t most)
    : begin_(first_tokens(folder.source_tokens())) {
  const Tokenizer& tokenizer = folder.source_tokens();
  if (texts.needles.empty())
    throw UsageError("`needles`: there are none; give a sentence, a question and its answer");
  read_filler(tokenizer, texts.filler, static_cast<size_t>(most));
  for (size_t i = 0; i < texts.needles.size(); ++i) read_needle(tokenizer, i + 1, texts.needles[i]);
  const int32_t vocabulary = folder.model->facts().vocabulary_read();
  check_ids({&filler_, 1}, {.what = "filler", .vocabulary = vocabulary});
  for (const Needle& needle : needles_) {
    for (const auto* list : {&needle.sentence, &needle.question, &needle.answer})
      check_ids({list, 1}, {.what = "needle", .vocabulary = vocabulary});
  }
}

void NeedleTexts::read_filler(const Tokenizer& tokenizer, const std::string& filler, size_t most) {
  const Encoding once = tokenizer.encode(filler, false);
  if (once.ids.empty()) throw UsageError("`filler`: it has no tokens; give a text");
  // Where it begins again a space stands before it.
  const std::vector<int32_t> again = tokens_behind(tokenizer, "a.", filler);
  filler_ = once.ids;
  filler_once_ = static_cast<int32_t>(std::min(most, filler_.size()));
  const std::vector<char> of_character = sentence_ends(filler);
  for (const auto& [begin, end] : once.offsets)
    ends_.push_back(end > 0 ? of_character[static_cast<size_t>(end) - 1] : '\0');
  const std::vector<char> ends = ends_;
  while (filler_.size() < most) {
    filler_.insert(filler_.end(), again.begin(), again.end());
    // Where the space made other tokens, their ends are not known.
    if (again.size() == ends.size()) {
      ends_.insert(ends_.end(), ends.begin(), ends.end());
    } else {
      ends_.resize(filler_.size(), 0);
      ends_.back() = 1;
    }
  }
  filler_.resize(most);
  ends_.resize(most);
}

void NeedleTexts::read_needle(const Tokenizer& tokenizer, size_t number, const RetrievalNeedle& needle) {
  check_words(number, needle);
  Needle read{.sentence = tokens_behind(tokenizer, "a.", needle.sentence),
              .question = tokens_behind(tokenizer, "a.", needle.question),
              .answer = tokens_behind(tokenizer, needle.question, needle.answer)};
  const auto there =
      std::search(read.sentence.begin(), read.sentence.end(), read.answer.begin(), read.answer.end());
  if (read.answer.empty() || there == read.sentence.end())
    throw UsageError(
        fmt::format("needle {}: '{}' has other tokens after its question than in its sentence, so that no "
                    "head could copy "
                    "them; let it stand in both after a space, with the same letters",
                    number, needle.answer));
  read.words = read.answer;
  std::sort(read.words.begin(), read.words.end());
  read.words.erase(std::unique(read.words.begin(), read.words.end()), read.words.end());
  needles_.push_back(std::move(read));
}

int32_t NeedleTexts::least_length() const {
  size_t longest = 0;
  for (const Needle& needle : needles_)
    longest = std::max(longest, needle.sentence.size() + needle.question.size());
  return static_cast<int32_t>(begin_.size() + longest);
}

/// How many tokens of the filler, of `room`, come before the needle.
size_t NeedleTexts::insertion_place(size_t room, double depth) const {
  const auto wanted = static_cast<size_t>(std::floor(depth * static_cast<double>(room) + 0.5));
  if (wanted == 0 || wanted == room) return wanted;
  for (size_t place = wanted; place > 0; --place) {
    if (ends_[place - 1] != 0) return place;
  }
  return wanted;  // no sentence ends before it
}

NeedleText NeedleTexts::text(size_t number, int32_t length, double depth) const {
  const Needle& needle = needles_[number];
  const size_t room =
      static_cast<size_t>(length) - begin_.size() - needle.sentence.size() - needle.question.size();
  const auto before = static_cast<std::ptrdiff_t>(insertion_place(room, depth));
  NeedleText made{.text = begin_};
  made.text.insert(made.text.end(), filler_.begin(), filler_.begin() + before);
  made.place = static_cast<int32_t>(made.text.size());
  made.text.insert(made.text.end(), needle.sentence.begin(), needle.sentence.end());
  made.text.insert(made.text.end(), filler_.begin() + before,
                   filler_.begin() + static_cast<std::ptrdiff_t>(room));
  return made;
}

}  // namespace mh
