#include "multihead/data/conllu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "multihead/base/error.h"
#include "multihead/data/whole_number.h"
#include "multihead/io/lines.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

constexpr size_t kColumns = 10;
constexpr size_t kLinesAtOnce = 4096;

}  // namespace

/// Makes sentences of lines that come one by one.
class ConlluLines {
 public:
  explicit ConlluLines(std::string_view name) : name_(name) {}

  void line(const std::string& line) {
    ++line_;
    if (is_blank(line)) {  // more than one, and spaces, as other readers take
      finish();
    } else if (line[0] == '#') {
      if (!sentence_.words.empty()) fail("a comment inside a sentence; expected an empty line before it");
      sentence_.comments.push_back(line);
    } else {
      word(line);
    }
  }

  size_t ended() const { return sentences_.size(); }
  /// Takes the first of the sentences that have ended, at most so many.
  std::vector<ConlluSentence> take(size_t most) {
    const auto last = sentences_.begin() + static_cast<std::ptrdiff_t>(std::min(most, sentences_.size()));
    std::vector<ConlluSentence> taken(std::make_move_iterator(sentences_.begin()),
                                      std::make_move_iterator(last));
    sentences_.erase(sentences_.begin(), last);
    return taken;
  }
  /// The text ends here, and so does its last sentence.
  void finish() {
    if (!sentence_.words.empty() || !sentence_.comments.empty() || !sentence_.extras.empty())
      end_of_sentence();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}:{}: {}", name_, line_, what));
  }

  void word(const std::string& line) {
    std::array<std::string_view, kColumns> columns;
    size_t count = 0, begin = 0;
    while (true) {
      const size_t tab = line.find('\t', begin);
      const auto column = std::string_view(line).substr(begin, tab == std::string::npos ? tab : tab - begin);
      if (count < kColumns) columns[count] = column;
      ++count;
      if (column.empty()) fail(fmt::format("column {} is empty; CoNLL-U writes _ for nothing", count));
      if (tab == std::string::npos) break;
      begin = tab + 1;
    }
    if (count != kColumns)
      fail(fmt::format("expected {} columns with tabs between, got {}", kColumns, count));

    if (is_extra(columns[0])) {
      sentence_.extras.push_back({sentence_.words.size(), line});
      return;
    }
    const auto id = whole_number(columns[0]);
    const size_t expected = sentence_.words.size() + 1;
    if (!id || static_cast<size_t>(*id) != expected) {
      fail(fmt::format("expected word number {}, got {}", expected, in_quotes(columns[0])));
    }
    const auto head = whole_number(columns[6]);
    if (!head) fail(fmt::format("expected a number as head, got {}", in_quotes(columns[6])));
    ConlluWord word;
    word.form = columns[1];
    word.lemma = columns[2];
    word.upos = columns[3];
    word.xpos = columns[4];
    word.features = columns[5];
    word.head = *head - 1;
    word.relation = columns[7];
    word.enhanced = columns[8];
    word.misc = columns[9];
    sentence_.words.push_back(std::move(word));
  }

  /// "3-4" or "8.1".
  bool is_extra(std::string_view id) const {
    const size_t mark = id.find_first_of("-.");
    if (mark == std::string_view::npos || mark == 0) return false;
    const auto first = whole_number(id.substr(0, mark)), second = whole_number(id.substr(mark + 1));
    if (!first || !second) return false;
    const auto words = static_cast<int>(sentence_.words.size());
    return id[mark] == '.' ? *first == words : *first == words + 1 && *second > *first;
  }

  void end_of_sentence() {
    const auto size = static_cast<int>(sentence_.words.size());
    if (size == 0)
      fail(sentence_.comments.empty() ? "empty nodes without a sentence" : "comments without a sentence");
    for (int i = 0; i < size; ++i) {
      const int head = sentence_.words[static_cast<size_t>(i)].head;
      if (head >= size) {
        fail(fmt::format("the sentence that ends here has {} words, but {} is the head of word {}", size,
                         head + 1, i + 1));
      }
    }
    if (!is_tree(sentence_.tree()))
      fail("the sentence that ends here is no tree: one root, no circles expected");
    sentences_.push_back(std::move(sentence_));
    sentence_ = {};
  }

  std::string name_;
  size_t line_ = 0;
  ConlluSentence sentence_;
  std::vector<ConlluSentence> sentences_;
};

std::vector<Word> ConlluSentence::tree() const {
  return {words.begin(), words.end()};
}

std::vector<ConlluSentence> parse_conllu(std::span<const std::string> lines, std::string_view name) {
  ConlluLines reader(name);
  for (const std::string& line : lines) reader.line(line);
  reader.finish();
  return reader.take(reader.ended());
}

struct ConlluFileReader::State {
  explicit State(const std::filesystem::path& path) : file(path), sentences(path.string()) {}

  LineReader file;
  ConlluLines sentences;
};

ConlluFileReader::ConlluFileReader(const std::filesystem::path& path)
    : state_(std::make_unique<State>(path)) {}
ConlluFileReader::~ConlluFileReader() = default;

std::vector<ConlluSentence> ConlluFileReader::next(size_t most) {
  ConlluLines& sentences = state_->sentences;
  while (sentences.ended() < most && !state_->file.ended()) {
    for (const std::string& line : state_->file.next({.max_lines = kLinesAtOnce})) sentences.line(line);
    if (state_->file.ended()) sentences.finish();
  }
  return sentences.take(most);
}

std::string format_conllu(std::span<const ConlluSentence> sentences) {
  std::string text;
  for (const ConlluSentence& sentence : sentences) {
    for (const std::string& comment : sentence.comments) text.append(comment) += '\n';
    size_t extra = 0;
    const auto put_extras = [&](size_t before) {
      for (; extra < sentence.extras.size() && sentence.extras[extra].before == before; ++extra) {
        text.append(sentence.extras[extra].line) += '\n';
      }
    };
    for (size_t i = 0; i < sentence.words.size(); ++i) {
      put_extras(i);
      const ConlluWord& word = sentence.words[i];
      fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", i + 1, word.form,
                     word.lemma, word.upos, word.xpos, word.features, word.head + 1, word.relation,
                     word.enhanced, word.misc);
    }
    put_extras(sentence.words.size());
    text += '\n';
  }
  return text;
}

std::string format_conllu(std::span<const Word> words, std::string_view sentence_id) {
  ConlluSentence sentence;
  sentence.comments = {fmt::format("# sent_id = {}", sentence_id), "# text = " + text_of(words)};
  for (const Word& word : words) {
    sentence.words.emplace_back();
    static_cast<Word&>(sentence.words.back()) = word;
  }
  return format_conllu(std::span(&sentence, 1));
}

}  // namespace mh
