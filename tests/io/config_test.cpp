#include "multihead/io/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "hostile.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using test::expect_one_line_error;
using testing::ElementsAre;

enum class Norm { kPost, kPre };

struct Layer {
  std::string name = "x";
  std::vector<int32_t> heads;
  template <class V>
  void visit(V& v) {
    v("name", name);
    v("heads", heads, {.low = 0, .high = 15});
  }
};

struct Sample {
  int32_t d_model = 512;
  int64_t updates = 7;
  uint64_t seed = 1;
  float dropout = 0.1f;
  double rate = 1e-3;
  bool tied = true;
  std::string activation = "relu";
  Norm norm = Norm::kPost;
  std::optional<int32_t> window;
  Layer layer;
  std::vector<Layer> layers;
  std::vector<std::vector<double>> table;

  template <class V>
  void visit(V& v) {
    v.literal("model_type", "multihead");
    v("d_model", d_model, {.low = 1, .high = 65536, .required = true});
    v("updates", updates);
    v("seed", seed);
    v("dropout", dropout, {.low = 0, .high = 1});
    v("rate", rate);
    v("tied", tied);
    v("activation", activation);
    v("norm", norm, {{"post", Norm::kPost}, {"pre", Norm::kPre}});
    v("window", window, {.low = 1});
    v("layer", layer);
    v("layers", layers);
    v("table", table);
  }
};

std::string with(const std::string& more) {
  return R"({"model_type":"multihead","d_model":3,)" + more + "}";
}

TEST(Config, WritesFieldsInTheirOrder) {
  Sample sample{
      .window = 5, .layer = {"y", {2, 3}}, .layers = {{"a", {}}, {"b\n", {1}}}, .table = {{0.5}, {}}};
  EXPECT_EQ(
      to_json_line(sample),
      R"({"model_type":"multihead","d_model":512,"updates":7,"seed":1,"dropout":0.1,"rate":0.001,"tied":true,)"
      R"("activation":"relu","norm":"post","window":5,"layer":{"name":"y","heads":[2,3]},)"
      R"("layers":[{"name":"a","heads":[]},{"name":"b\n","heads":[1]}],"table":[[0.5],[]]})");
  EXPECT_THAT(to_json(sample),
              testing::StartsWith("{\n  \"model_type\": \"multihead\",\n  \"d_model\": 512,\n"));
  sample.rate = std::nan("");
  expect_one_line_error([&] { to_json(sample); }, "no number", "NaN");
}

TEST(Config, ReadsBackWhatItWrote) {
  Sample sample;
  sample.updates = std::numeric_limits<int64_t>::min();
  sample.seed = std::numeric_limits<uint64_t>::max();
  sample.dropout = 0.3f;
  sample.rate = 0.1 + 0.2;
  sample.norm = Norm::kPre;
  sample.layers = {{"a", {1}}, {"b", {}}};
  sample.table = {{1e300, -0.0}, {5e-324}};
  Sample again;
  from_json(again, to_json(sample), "sample.json");
  EXPECT_EQ(again.updates, sample.updates);
  EXPECT_EQ(again.seed, sample.seed);
  EXPECT_EQ(again.dropout, sample.dropout);
  EXPECT_EQ(again.rate, sample.rate);
  EXPECT_EQ(again.norm, Norm::kPre);
  EXPECT_FALSE(again.window.has_value());
  EXPECT_EQ(again.table, sample.table);
  EXPECT_EQ(to_json(again), to_json(sample));
}

TEST(Config, MissingKeysKeepTheirValue) {
  Sample sample;
  sample.updates = 99;
  sample.window = 4;
  from_json(sample, with(R"("dropout":1,"layer":{"heads":[15]})"), "f");
  EXPECT_EQ(sample.updates, 99);
  EXPECT_EQ(sample.d_model, 3);
  EXPECT_EQ(sample.dropout, 1.0f);
  EXPECT_EQ(sample.window, 4);
  EXPECT_EQ(sample.layer.name, "x");
  EXPECT_THAT(sample.layer.heads, ElementsAre(15));
  from_json(sample, with(R"("window":null)"), "f");
  EXPECT_FALSE(sample.window.has_value());
}

TEST(Config, ListsAllProblemsAtOnceAndChangesNothing) {
  Sample sample;
  try {
    from_json(sample,
              R"({"model_type":"bert","updates":"x","layers":[{},{"heads":[1,16]}],"norm":"mid","dopout":1})",
              "config.json");
    FAIL();
  } catch (const FormatError& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, testing::StartsWith("config.json: "));
    for (const char* part :
         {"model_type: expected \"multihead\", got \"bert\"", "d_model: missing",
          "updates: expected an integer", "layers[1].heads[1]: expected an integer from 0 to 15, got 16",
          "norm: expected one of \"post\", \"pre\", got \"mid\"", "unknown key \"dopout\""}) {
      EXPECT_THAT(message, testing::HasSubstr(part));
    }
  }
  EXPECT_EQ(sample.updates, 7);
  EXPECT_TRUE(sample.layers.empty());
}

TEST(Config, UnknownKeysCanBeSomebodyElsesBusiness) {
  Sample sample;
  from_json(sample, with(R"("transformers_version":"4","layer":{"x":[1]})"), "f", UnknownKeys::kIgnore);
  EXPECT_EQ(sample.d_model, 3);
  expect_one_line_error([&] { from_json(sample, with(R"("layer":{"x\ny":[1]})"), "f"); },
                        R"(layer: unknown key "x\ny")", "nested");
}

TEST(HostileConfig, Values) {
  const std::pair<std::string, const char*> hostile[] = {
      {with(R"("d_model":4)"), "twice"},
      {R"({"model_type":"multihead","d_model":0})", "from 1 to 65536, got 0"},
      {R"({"model_type":"multihead","d_model":65537})", "got 65537"},
      {R"({"model_type":"multihead","d_model":-1})", "got -1"},
      {R"({"model_type":"multihead","d_model":3.0})", "an integer"},
      {R"({"model_type":"multihead","d_model":1e3})", "an integer"},
      {R"({"model_type":"multihead","d_model":"3"})", "an integer"},
      {R"({"model_type":"multihead","d_model":[3]})", "an integer"},
      {R"({"model_type":"multihead","d_model":null})", "an integer"},
      {R"({"model_type":"multihead","d_model":4294967299})", "got 4294967299"},
      {R"({"model_type":"multihead","d_model":18446744073709551619})", "an integer"},
      {R"({"model_type":["multihead"],"d_model":3})", "model_type"},
      {R"({"d_model":3})", "model_type: missing"},
      {with(R"("updates":9223372036854775808)"), "updates"},
      {with(R"("seed":-1)"), "seed: expected an integer from 0 to 18446744073709551615, got -1"},
      {with(R"("seed":18446744073709551616)"), "seed"},
      {with(R"("dropout":1.5)"), "from 0 to 1"},
      {with(R"("dropout":-0.1)"), "from 0 to 1"},
      {with(R"("dropout":NaN)"), "\"dropout\" is NaN or infinite; expected a finite number"},
      {with(R"("rate":Infinity)"), "\"rate\" is NaN or infinite; expected a finite number"},
      {with(R"("rate":-Infinity)"), "\"rate\" is NaN or infinite; expected a finite number"},
      {with(R"("rate":Nope)"), "not JSON"},
      {with(R"("rate":1e999)"), "f: "},
      {with(R"("rate":"0.1")"), "a number"},
      {with(R"("tied":1)"), "true or false"},
      {with(R"("tied":"true")"), "true or false"},
      {with(R"("activation":3)"), "a text"},
      {with(R"("activation":"\udc00")"), "not JSON"},
      {with("\"activation\":\"a\xff\""), "UTF-8"},
      {with("\"activation\":\"a\nb\""), "not JSON"},
      {with(R"("norm":0)"), "one of"},
      {with(R"("norm":null)"), "one of"},
      {with(R"("window":0)"), "from 1 to"},
      {with(R"("layer":[])"), "an object"},
      {with(R"("layer":null)"), "an object"},
      {with(R"("layers":{})"), "a list"},
      {with(R"("layers":[1])"), "layers[0]: expected an object"},
      {with(R"("layer":{"heads":[2147483648]})"), "layer.heads[0]"},
      {with(R"("layer":{"name":"a","name":"b"})"), "twice"},
      {with(R"("table":[[1],2])"), "table[1]"},
      {with(R"("x":1)") + "}", "not JSON"},
      {with(R"("updates":1,)"), "not JSON"},
      {with("// note\n\"updates\":1"), "not JSON"},
      {"", "not JSON"},
      {"[]", "an object"},
      {"3", "an object"},
      {"\xff\xfe{\0}\0", "f: "},
      {std::string("{}\0{}", 5), "NUL"},
      {std::string(1'000'000, '['), "nested deeper"},
      {with("\"layer\":" + std::string(100'000, '{')), "not JSON"},
      {with("\"" + std::string(100'000, 'k') + "\":1"), "unknown key"},
      {with("\"activation\":\"" + std::string(100'000, 'k')), "not JSON"},
  };
  for (const auto& [text, part] : hostile) {
    Sample sample;
    expect_one_line_error([&, &text = text] { from_json(sample, text, "f"); }, part, text.substr(0, 80));
  }
}

TEST(HostileConfig, TruncatedAtEveryByte) {
  Sample sample;
  sample.window = 5;
  sample.layers = {{"a", {1}}};
  const std::string text = to_json_line(sample);
  for (size_t length = 0; length < text.size(); ++length) {
    expect_one_line_error([&] { from_json(sample, text.substr(0, length), "f"); }, "f: not JSON",
                          "cut short");
  }
}

TEST(StrictJson, ParsesWhatIsGood) {
  const auto value = parse_json_strictly(R"( {"b":[1,-2,3.5,"\u20ac",true,null,{}],"a":{"":[[]]}} )", "f");
  EXPECT_EQ(value.dump(), "{\"a\":{\"\":[[]]},\"b\":[1,-2,3.5,\"\u20ac\",true,null,{}]}");
  EXPECT_NO_THROW(parse_json_strictly("[[[1]]]", "f", {.deepest = 3}));
  EXPECT_THROW(parse_json_strictly("[[[[1]]]]", "f", {.deepest = 3}), FormatError);
  EXPECT_EQ(parse_json_strictly("7", "f"), 7);
}

TEST(StrictJson, ValuesTakeAtMost40MiB) {
  std::string zeros = "[0", members = "{\"0\":0", texts = "[\"\"", lists = "[[]";
  for (int i = 1; i < 1'500'000; ++i) {
    zeros += ",0";
    members += fmt::format(",\"{}\":0", i);
    texts += ",\"\"";
    lists += ",[]";
  }
  const std::string limit = "f: its values would take more than ";
  for (const std::string& text : {zeros + "]", members + "}", texts + "]", lists + "]"}) {
    expect_one_line_error([&] { parse_json_strictly(text, "f"); }, limit, text.substr(0, 9));
    EXPECT_EQ(parse_json_strictly(text, "f", {.memory = size_t{1} << 30}).size(), 1'500'000u);
  }
  EXPECT_EQ(parse_json_strictly(zeros.substr(0, 1'000'000) + "]", "f").size(), 500'000u);
  const std::string part = "f: a text, a number or its space has more than 8388608 bytes";
  for (const char* unit : {"x", "\\\"", "\\\\"}) {
    std::string letters;
    while (letters.size() < 8 << 20) letters += unit;
    const std::string fits = letters.substr(16);  // quotes and commas count
    EXPECT_NO_THROW(parse_json_strictly("[\"" + fits + "\",\"\"]", "f"));
    for (const char* end : {"\"]", "", "\\"})
      expect_one_line_error([&] { parse_json_strictly("[\"" + letters + unit + end, "f"); }, part, unit);
  }
  const std::string spaces(7 << 20, ' '), digits((8 << 20) + 1, '1');
  EXPECT_NO_THROW(
      parse_json_strictly("[" + spaces + "0," + spaces + "-1," + spaces + "\"\"" + spaces + "]", "f"));
  expect_one_line_error([&] { parse_json_strictly("[" + spaces + "[]" + spaces + "]", "f"); }, part,
                        "spaces");
  expect_one_line_error([&] { parse_json_strictly("[" + digits + "]", "f"); }, part, "digits");
}

TEST(StrictJson, HandsOverTheItemsOfLongLists) {
  std::vector<std::string> taken;
  const JsonLists lists = {
      .paths = {"a", "m.v", "m.w"}, .take = [&](const JsonItem& item) {
        taken.push_back(fmt::format("{} {} {}", item.list, item.key ? *item.key : "-", item.value.dump()));
      }};
  const std::string text =
      R"({"a":[{"v":1},[2,[3]],null],"v":[4],"m":{"v":{"x":5,"y":{"z":6}},"w":[],"u":{"v":[7]}},"w":{"m":8}})";
  EXPECT_EQ(parse_json_strictly(text, "f", {}, lists).dump(),
            R"({"a":[],"m":{"u":{"v":[7]},"v":{},"w":[]},"v":[4],"w":{"m":8}})");
  EXPECT_THAT(taken,
              testing::ElementsAre("0 - {\"v\":1}", "0 - [2,[3]]", "0 - null", "1 x 5", "1 y {\"z\":6}"));

  // What is handed over takes no memory, but each item has its limits.
  taken.clear();
  std::string many = "[0";
  for (int i = 1; i < 1000; ++i) many += ",0";
  parse_json_strictly("{\"a\":" + many + "]}", "f", {.memory = 1000}, lists);
  EXPECT_EQ(taken.size(), 1000u);
  expect_one_line_error([&] { parse_json_strictly("{\"a\":[" + many + "]]}", "f", {.memory = 1000}, lists); },
                        "f: its values would take more than 1000 bytes", "one item");
  expect_one_line_error([&] { parse_json_strictly(R"({"a":[],"a":[]})", "f", {}, lists); }, "stands twice",
                        "list");
}

}  // namespace
}  // namespace mh
