// Broken and malicious files: always a FormatError of one line that names the file, never a crash.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <tuple>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string bpe(const std::string& vocab, const std::string& merges, const std::string& more = "") {
  return fmt::format(R"({{"model":{{"type":"BPE","vocab":{},"merges":{}{}}}}})", vocab, merges, more);
}
std::string words(const std::string& vocab, const std::string& members = "") {
  return fmt::format(R"({{{}"model":{{"type":"WordLevel","vocab":{},"unk_token":"a"}}}})", members, vocab);
}
std::string nested(const std::string& open, int depth, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

std::string complaint(const std::string& json) {
  try {
    Tokenizer::from_json(json, "bad.json");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "accepted";
}

struct Case {
  std::string json;
  std::string expected;
};

TEST(HostileTokenizer, IsRefusedInOneLine) {
  const std::string ab = R"({"a":0,"b":1,"ab":2})";
  const std::vector<Case> cases = {
      {"", "cut short"},
      {"{", "cut short"},
      {"null", "expected an object"},
      {"[]", "expected an object"},
      {"42", "expected an object"},
      {"{}", "\"model\""},
      {R"({"model":[]})", "model: expected an object"},
      {R"({"model":null})", "\"model\""},
      {R"({"model":{"type":"BPE"}})", "\"vocab\""},
      {R"({"model":{"type":3}})", "model.type: expected a string"},
      {R"({"model":{"type":"Words","vocab":[]}})",
       "model.type: expected one of WordLevel, BPE, WordPiece, Unigram, got 'Words'"},
      {R"({"model":{"type":"Unigram","vocab":{"a":0}}})", "model.vocab: expected an array"},
      {R"({"model":{"type":"Unigram","vocab":[["a"]]}})", "model.vocab[0]: expected a piece and its score"},
      {R"({"model":{"type":"Unigram","vocab":[["a","b"]]}})", "model.vocab[0][1]: expected a number"},
      {R"({"model":{"type":"Unigram","vocab":[["a",0],["a",0]]}})", "the token 'a' is there twice"},
      {R"({"model":{"type":"Unigram","unk_id":1,"vocab":[["a",0]]}})",
       "model.unk_id: expected an id below 1"},
      {R"({"model":{"type":"Unigram","unk_id":0,"vocab":[]}})", "model.unk_id: expected an id below 0"},
      {"{\"model\":{\"type\":\"bad\\nline\"}}", "'bad\\u000aline'"},
      {words(R"({"a":0}})") + "garbage", "not JSON: at line"},
      {words("[]"), "model.vocab: expected an object"},
      {words(R"({"a":0,"a":1})"), "the token 'a' is there twice"},
      {R"({"model":{},"model":{}})", "the key \"model\" stands twice"},
      {words(R"({"a":-1})"), "the id of 'a'"},
      {words(R"({"a":0,"b":2147483648})"), "the id of 'b'"},
      {words(R"({"a":0,"b":18446744073709551616})"), "the id of 'b'"},
      {words(R"({"a":0,"b":1.5})"), "the id of 'b'"},
      {words(R"({"a":0,"b":"1"})"), "the id of 'b'"},
      {words(R"({"a":0,"b":2147483647})"), "without holes; 'b' has id 2147483647"},
      {words(R"({"a":0,"b":2})"), "without holes"},
      {words(R"({"a":0,"b":0})"), "two tokens have id 0"},
      {words("{\"a\":0,\"\xff\":1}"), "is not UTF-8"},
      {words(R"({"a":0,"\ud800":1})"), "not JSON: at line"},
      {nested("[", 100'000, "]"), "nested deeper than 24"},
      {nested("{\"x\":", 100'000, "}"), "nested deeper than 24"},
      {std::string(100'000, '['), "nested deeper than 24"},
      {R"({"normalizer":)" + nested(R"({"type":"Sequence","normalizers":[)", 40, "]}") + R"(,"model":{}})",
       "nested deeper than 24"},
      {bpe(ab, R"(["a b","a c"])"), "model.merges[1]: 'c' is not in model.vocab"},
      {bpe(ab, R"(["b a"])"), "model.merges[0]: 'ba' is not in model.vocab"},
      {bpe(ab, R"(["ab"])"), "model.merges[0]: expected two tokens"},
      {bpe(ab, R"(["a b c"])"), "model.merges[0]: expected two tokens"},
      {bpe(ab, R"([["a","b","c"]])"), "model.merges[0]: expected two tokens"},
      {bpe(ab, R"([["a",1]])"), "model.merges[0][1]: expected a string"},
      {bpe(ab, R"([7])"), "model.merges[0]: expected a string"},
      {bpe(ab, R"({"a":"b"})"), "model.merges: expected an array"},
      {bpe(ab, "[]", R"(,"dropout":0.1)"), "model.dropout"},
      {bpe(ab, "[]", R"(,"fuse_unk":"yes")"), "model.fuse_unk: expected true or false"},
      {bpe(ab, R"(["a b"])", R"(,"continuing_subword_prefix":"##")"), "lacks the continuing_subword_prefix"},
      {words(R"({"a":0})", R"("added_tokens":[{"id":-1,"content":"x"}],)"), "added_tokens[0].id"},
      {words(R"({"a":0})", R"("added_tokens":[{"id":99999999999,"content":"x"}],)"), "added_tokens[0].id"},
      {words(R"({"a":0})", R"("added_tokens":[{"id":7,"content":"x"}],)"), "without holes; 'x' has id 7"},
      {words(R"({"a":0})", R"("added_tokens":[{"id":1,"content":"a"}],)"),
       "'a' has id 1 here and id 0 elsewhere"},
      {words(R"({"a":0})", R"("added_tokens":[{"id":0,"content":"x"}],)"), "two tokens have id 0"},
      {words(R"({"a":0})", R"("added_tokens":[{"id":1,"content":""}],)"), "without content"},
      {words(R"({"a":0})", R"("added_tokens":{"id":1},)"), "added_tokens: expected an array"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Precompile"},)"), "normalizer.type: 'Precompile' is not"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"A"},)"), "base64"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"A*=="},)"),
       "base64"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AA=="},)"),
       "map of 1 bytes has no trie of 0 bytes"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/P///wAA"},)"),
       "map of 6 bytes has no trie of 4294967292 bytes"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAD/"},)"),
       "not UTF-8 at byte 8"},
      {words(R"({"a":0})", R"("normalizer":"NFC",)"), "normalizer: expected an object"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Replace","pattern":{"Regex":"(a+)+"},"content":""},)"),
       "the regular expression '(a+)+' is not supported"},
      {words(R"({"a":0})",  // in full
             R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + std::string(90, 'b') +
                 R"(c+"},"behavior":"Isolated"},)"),
       "bbc+' is not supported"},
      {words(R"({"a":0})", R"("normalizer":{"type":"Replace","pattern":{"String":""},"content":"x"},)"),
       "normalizer.pattern.String"},
      {words(R"({"a":0})", R"("pre_tokenizer":{"type":"UnicodeScripts"},)"),
       "'UnicodeScripts' is not supported"},
      {words(R"({"a":0})", R"("truncation":{"max_length":-1},)"), "truncation.max_length: expected a whole"},
      {words(R"({"a":0})", R"("truncation":{"max_length":9,"direction":"Up"},)"),
       "expected one of Right, Left"},
      {R"({"model":{"type":"WordPiece","vocab":{"a":0},"max_input_chars_per_word":-3}})",
       "model.max_input_chars_per_word: expected a whole number"},
      {words(R"({"a":0})", R"("normalizer":{"type":"BertNormalizer","strip_accents":"no"},)"),
       "normalizer.strip_accents: expected true or false"},
      {words(R"({"a":0})", R"("pre_tokenizer":{"type":"Metaspace","replacement":""},)"),
       "expected one character"},
      {words(R"({"a":0})", R"("pre_tokenizer":{"type":"Metaspace","replacement":"__"},)"),
       "expected one character"},
      {words(R"({"a":0})", R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"x"},)"),
       "expected one of always, first, never, got 'x'"},
      {words(R"({"a":0})", R"("post_processor":{"type":"BertProcessing"},)"),
       "post_processor: expected a member \"cls\""},
      {words(R"({"a":0})", R"("post_processor":{"type":"BertProcessing","cls":["a",0,1],"sep":["a",0]},)"),
       "post_processor.cls: expected a token and its id"},
      {words(R"({"a":0})", R"("post_processor":{"type":"RobertaProcessing","cls":["a",0],"sep":["b",7]},)"),
       "the id 7 of 'b' is not in the vocabulary"},
      {words(R"({"a":0})",
             R"("post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}},)"),
       "expected the sequence A once"},
      {words(R"({"a":0})",
             R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},)"
             R"({"SpecialToken":{"id":"x"}}],"special_tokens":{}},)"),
       "'x' is not among special_tokens"},
      {words(R"({"a":0})",
             R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}],)"
             R"("special_tokens":{"x":{"id":"x","ids":[5],"tokens":["x"]}}},)"),
       "the id 5 of 'x' is not in the vocabulary"},
      {words(R"({"a":0})",
             R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}],)"
             R"("special_tokens":{"x":{"id":"x","ids":[0,0],"tokens":["x"]}}},)"),
       "as many ids as tokens"},
      {words(R"({"a":0})", R"("decoder":{"type":"CTC"},)"), "decoder.type: 'CTC' is not supported"},
      {words(R"({"a":0})", R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0},)"),
       "decoder.start"},
      {words(R"({"a":0})", R"("decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{}]},)"),
       "decoder.decoders[1]: expected a member \"type\""},
  };
  const std::string padding(1 << 20,
                            ' ');  // makes a large file, whose lists are checked before they are kept
  for (const Case& hostile : cases) {
    SCOPED_TRACE(hostile.json.substr(0, 200));
    for (const std::string& json : {hostile.json, hostile.json + padding})
      EXPECT_THAT(complaint(json),
                  AllOf(StartsWith("bad.json: "), HasSubstr(hostile.expected), Not(HasSubstr("\n"))));
  }
}

TEST(HostileTokenizer, CutAnywhereIsRefused) {
  const auto path = std::filesystem::path(goldens_folder()) / "text" / "hf_word_level.json";
  const std::string whole = read_file(path);
  const size_t size = whole.find_last_of('}');
  for (size_t n = 0; n <= size; n += n < 600 ? 1 : 13) {
    ASSERT_THAT(complaint(whole.substr(0, n)), AllOf(StartsWith("bad.json: "), Not(HasSubstr("\n")))) << n;
  }
}

TEST(HostileTokenizer, ALargeFileMayHaveItsMembersInAnyOrder) {
  const std::string padding(1 << 20, ' ');
  const std::string vocabulary = R"("vocab":{"a":0,"##b":1,"ab":2})",
                    prefix = R"("continuing_subword_prefix":"##")";
  const std::string merges = R"("merges":["a ##b"])", unknown = R"("merges":["a ##b","a ##c"])";
  for (const std::string& ends : {padding, std::string()}) {
    for (const auto& [first, second, third] :
         {std::tuple(vocabulary, prefix, 2), std::tuple(prefix, vocabulary, 2),
          std::tuple(vocabulary, prefix, 1), std::tuple(prefix, vocabulary, 1),
          std::tuple(vocabulary, prefix, 0), std::tuple(prefix, vocabulary, 0)}) {
      const auto json = [&, one = first, two = second, place = third](const std::string& list) {
        std::vector<std::string> members = {one, two};
        members.insert(members.begin() + place, list);
        return fmt::format(R"({{"model":{{"type":"BPE",{}}}}})", fmt::join(members, ",")) + ends;
      };
      EXPECT_EQ(Tokenizer::from_json(json(merges), "t").encode_ids("ab"), std::vector<int32_t>{2})
          << json("");
      EXPECT_THAT(complaint(json(unknown)), HasSubstr("model.merges[1]: '##c' is not in model.vocab"));
      EXPECT_THAT(complaint(json(R"("merges":["a a"])")), HasSubstr("lacks the continuing_subword_prefix"));
    }
  }
  // Merges are read of BPE alone.
  const std::string words = R"({"model":{"type":"WordLevel","merges":["x y"],"vocab":{"a":0}}})";
  EXPECT_EQ(Tokenizer::from_json(words + padding, "t").encode_ids("a"), std::vector<int32_t>{0});
  EXPECT_EQ(Tokenizer::from_json(words, "t").encode_ids("a"), std::vector<int32_t>{0});
}

TEST(HostileTokenizer, FlippedBitsNeverCrash) {
  const std::string whole = read_file(std::filesystem::path(goldens_folder()) / "text" / "hf_metaspace.json");
  for (size_t i = 0; i < whole.size(); i += 3) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i / 3 % 8)));
    try {
      const Tokenizer tokenizer = Tokenizer::from_json(flipped, "bad.json");
      tokenizer.decode(tokenizer.encode_ids("The cat </s> sits ßé"));
    } catch (const FormatError& error) {
      ASSERT_THAT(error.what(), Not(HasSubstr("\n")));
    }
  }
}

TEST(HostileText, IsRefusedOrHandled) {
  const Tokenizer tokenizer = Tokenizer::from_json(bpe(R"({"a":0,"b":1,"ab":2})", R"(["a b"])"), "t");
  EXPECT_THROW(tokenizer.encode("a\xff"), FormatError);
  EXPECT_THROW(tokenizer.encode_ids("\xc3"), FormatError);
  EXPECT_THROW(tokenizer.token_of(3), UsageError);
  EXPECT_THROW(tokenizer.token_of(-1), UsageError);
  EXPECT_EQ(tokenizer.token_of(2), "ab");
  EXPECT_EQ(tokenizer.decode_known(std::vector<int32_t>{2, -5, 77, 0}), "ab a");
  EXPECT_THROW(tokenizer.decode(std::vector<int32_t>{2, -5, 77, 0}), UsageError);
  EXPECT_TRUE(tokenizer.encode("").ids.empty());
  EXPECT_EQ(tokenizer.unknown_id(), std::nullopt);
  EXPECT_EQ(tokenizer.encode_ids("xaybz"),
            (std::vector<int32_t>{2}));  // without <unk>, what is unknown vanishes

  std::string word;  // one word of a million letters takes a heap, not the square
  for (int i = 0; i < 500'000; ++i) word += "ab";
  EXPECT_EQ(tokenizer.encode_ids(word), std::vector<int32_t>(500'000, 2));
}

TEST(HostileText, UnknownWordWithoutUnknownTokenIsNamed) {
  const Tokenizer tokenizer = Tokenizer::from_json(R"({"model":{"type":"WordLevel","vocab":{"a":0}}})", "t");
  EXPECT_EQ(tokenizer.encode_ids("a"), (std::vector<int32_t>{0}));
  try {
    tokenizer.encode_ids("b\n");
    ADD_FAILURE() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'b\\u000a'"));
  }
}

}  // namespace
}  // namespace mh
