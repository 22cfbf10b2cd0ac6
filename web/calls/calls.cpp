#include "web/calls/calls.h"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/importance/heads_importance.h"
#include "multihead/heads/reports/json_parts.h"
#include "multihead/heads/reports/page/page_run.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/use_precision.h"
#include "multihead/nn/attention_place.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/fill_words.h"
#include "multihead/tasks/generate_text.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_into.h"
#include "web/calls/changes.h"
#include "web/calls/following_words.h"

namespace mh::web {
namespace {

/// A matrix as the list of its rows.
HeadsJson json_of(ConstMatrixView numbers) {
  HeadsJson rows = HeadsJson::array();
  for (int64_t i = 0; i < numbers.rows; ++i)
    rows.push_back(std::vector<float>(numbers.row(i), numbers.row(i) + numbers.cols));
  return rows;
}

HeadsJson json_of(const ObservedTokens& tokens) {
  return {
      {"ids", tokens.ids}, {"tokens", tokens.tokens}, {"labels", tokens.labels}, {"offsets", tokens.offsets}};
}

HeadsJson json_of(const std::vector<FilledWord>& words) {
  return json_items(words, [](const FilledWord& one) {
    return HeadsJson{{"id", one.token}, {"word", one.word}, {"probability", one.probability}};
  });
}

/// What a task is given.
template <class Options>
struct Texts {
  std::vector<std::string> texts = {};
  Changes changes = {};
  Options options = {};

  template <class V>
  void visit(V& v) {
    v("texts", texts, {.required = true});
    v("changes", changes);
    v("options", options);
  }
};

template <class Given>
Given read(const nlohmann::json& given, const char* call) {
  Given fields;
  from_json(fields, given.dump(), call);
  return fields;
}

/// The changes that a task is given; null: there are none.
class Changed {
 public:
  Changed(const Changes& changes, const ScoredModel& model) : values_(changes.values()) {
    model.folder().model->check(values_);
  }
  Sites* sites() { return values_.empty() ? nullptr : &values_; }

 private:
  SiteValues values_;
};

/// Lines worth knowing go back with the answer.
struct Remarks {
  std::vector<std::string> lines = {};
  std::function<void(const std::string&)> hear() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
  HeadsJson with(HeadsJson answer) const {
    answer["remarks"] = lines;
    return answer;
  }
};

HeadsJson about(const ScoredModel& model, const nlohmann::json&) {
  const ModelFolder& folder = model.folder();
  HeadsJson attentions = HeadsJson::array();
  for (const Model::Attention& attention : folder.model->attentions())
    attentions.push_back(
        {{"name", attention.name}, {"layer", attention.place.layer}, {"heads", attention.heads}});
  return {{"type", folder.model_type},
          {"kind", translates(folder)  ? "translator"
                   : is_causal(folder) ? "causal"
                                       : "encoder"},
          {"predicts", folder.model->predicts()},
          {"parameters", folder.model->parameter_count()},
          {"longest", folder.model->facts().max_positions},
          {"attentions", std::move(attentions)},
          {"remarks", model.remarks()}};
}

/// Each token as people read it, but for the first so many.
HeadsJson labels_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, size_t without = 0) {
  HeadsJson labels = HeadsJson::array();
  for (size_t i = without; i < ids.size(); ++i) labels.push_back(tokenizer.shown(ids[i]));
  return labels;
}

struct TokensGiven {
  std::string text = {};
  template <class V>
  void visit(V& v) {
    v("text", text, {.required = true});
  }
};

HeadsJson tokens(const ScoredModel& model, const nlohmann::json& given) {
  const auto fields = read<TokensGiven>(given, "tokens");
  const Encoding found = model.folder().source_tokens().encode(fields.text);
  return {{"ids", found.ids},
          {"labels", labels_of(model.folder().source_tokens(), found.ids)},
          {"offsets", found.offsets}};
}

HeadsJson translations(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<Texts<TranslateOptions>>(given, "translate");
  const ModelFolder& folder = model.folder();
  Changed changed(fields.changes, model);
  Remarks remarks;
  const LanguagePair languages = language_pair(folder, fields.options.languages);
  complete_search(folder, languages, fields.options.search);
  fields.options.sites = changed.sites();
  ModelText text(folder, {.remark = remarks.hear(),
                          .languages = languages,
                          .prefix = fields.options.source_prefix.value_or("")});
  const auto sources = text.sources_to_translate(fields.texts, {.name = "text"});
  text.unknown().tell(remarks.hear());
  Translator translator(folder.translator());
  HeadsJson all = HeadsJson::array();
  for (const auto& hypotheses : translate_into(folder, translator, sources, {}, fields.options)) {
    all.push_back(json_items(hypotheses, [&](const Hypothesis& one) {
      return HeadsJson{
          {"text", text.text(one.tokens)}, {"score", one.score}, {"log_probability", one.log_probability}};
    }));
  }
  return remarks.with({{"translations", std::move(all)}});
}

struct ScoreGiven {
  std::vector<std::string> texts = {}, targets = {};
  Changes changes = {};

  template <class V>
  void visit(V& v) {
    v("texts", texts, {.required = true});
    v("targets", targets);
    v("changes", changes);
  }
};

/// log p of each token: of a translator's targets, the end token last, or of a causal model's texts from the second token on.
HeadsJson scores(const ScoredModel& model, const nlohmann::json& given) {
  const auto fields = read<ScoreGiven>(given, "score");
  const ModelFolder& folder = model.folder();
  Changed changed(fields.changes, model);
  Remarks remarks;
  if (translates(folder)) {
    ModelText text(folder, {.remark = remarks.hear(), .languages = language_pair(folder, {})});
    const auto sources = text.sources(fields.texts, {.name = "text"});
    const auto targets = text.targets(fields.targets, {.name = "target"});
    const Tokenizer& tokenizer = folder.target_tokens();
    const auto end = tokenizer.shown(folder.model->facts().eos_id);
    HeadsJson labels =
        json_items(targets, [&](const std::vector<int32_t>& ids) { return labels_of(tokenizer, ids); });
    for (HeadsJson& one : labels) one.push_back(end);
    return remarks.with(
        {{"log_probabilities", score(folder.translator(), sources, targets, {.sites = changed.sites()})},
         {"labels", std::move(labels)}});
  }
  refuse_targets(folder, !fields.targets.empty());
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : fields.texts) ids.push_back(folder.source_tokens().encode_ids(text));
  const auto labels = [&](const std::vector<int32_t>& own) {
    return labels_of(folder.source_tokens(), own, 1);
  };
  return remarks.with(
      {{"log_probabilities", score_windows(folder.causal_model(), ids, {.sites = changed.sites()})},
       {"labels", json_items(ids, labels)}});
}

HeadsJson next(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<Texts<FollowingOptions>>(given, "next");
  Changed changed(fields.changes, model);
  fields.options.sites = changed.sites();
  return Remarks().with({{"words", json_items(fields.texts, [&](const std::string& text) {
                            return json_of(following_words(model.folder(), text, fields.options));
                          })}});
}

HeadsJson generated(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<Texts<GenerateTextOptions>>(given, "generate");
  Changed changed(fields.changes, model);
  Remarks remarks;
  fields.options.generate.sites = changed.sites();
  fields.options.remark = remarks.hear();
  const auto texts = generate_text(model.folder(), fields.texts, fields.options);
  return remarks.with(
      {{"texts", json_items(texts, [](const GeneratedText& one) { return HeadsJson(one.text); })}});
}

HeadsJson embedded(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<Texts<EmbedTextOptions>>(given, "embed");
  Changed changed(fields.changes, model);
  Remarks remarks;
  fields.options.sites = changed.sites();
  fields.options.remark = remarks.hear();
  const Tensor rows = embed_text(model.sentences(), fields.texts, fields.options);
  const Tensor alike = similarities(rows.view(), rows.view(), model.sentences().similarity);
  return remarks.with({{"vectors", json_of(rows.view())}, {"similarities", json_of(alike.view())}});
}

HeadsJson filled(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<Texts<FillOptions>>(given, "fill");
  Changed changed(fields.changes, model);
  Remarks remarks;
  fields.options.sites = changed.sites();
  fields.options.remark = remarks.hear();
  const auto texts = fill_words(model.folder(), fields.texts, fields.options);
  return remarks.with({{"masks", json_items(texts, [](const auto& masks) {
                          return json_items(masks, [](const auto& words) { return json_of(words); });
                        })}});
}

struct ObserveGiven {
  std::string text = {}, target = {};
  std::vector<std::string> sites = {"*.weights.*"};
  Changes changes = {};

  template <class V>
  void visit(V& v) {
    v("text", text, {.required = true});
    v("target", target);
    v("sites", sites);
    v("changes", changes);
  }
};

HeadsJson observed(const ScoredModel& model, const nlohmann::json& given) {
  const auto fields = read<ObserveGiven>(given, "observe");
  Changed changed(fields.changes, model);
  Remarks remarks;
  const Observation seen =
      observe_text(model.folder(), fields.text, fields.target,
                   {.keep = fields.sites, .sites = changed.sites(), .remark = remarks.hear()});
  HeadsJson values = HeadsJson::object();
  for (const std::string& site : sites_named(model.folder().model->sites(), fields.sites))
    values[site] = json_of(seen.values.kept(site).sequence(0));
  return remarks.with({{"source", json_of(seen.source)},
                       {"target", json_of(seen.target)},
                       {"predicted", json_of(seen.predicted)},
                       {"translation", seen.translation},
                       {"values", std::move(values)}});
}

struct ImportanceGiven {
  std::vector<std::string> texts = {}, targets = {};
  ImportanceOptions options = {.measure = ImportanceMeasure::kAblation};

  template <class V>
  void visit(V& v) {
    v("texts", texts, {.required = true});
    v("targets", targets);
    v("options", options);
  }
};

/// What the score of the texts loses without each head.
HeadsJson importance(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<ImportanceGiven>(given, "importance");
  Remarks remarks;
  fields.options.texts.read.remark = remarks.hear();
  TextCorpus corpus({.sources = fields.texts, .targets = fields.targets});
  const ImportanceReport report = heads_importance(model, corpus, fields.options);
  return remarks.with({{"score", report.score},
                       {"heads", json_items(report.heads, [](const HeadImportance& head) {
                          return HeadsJson{{"head", head.name.name()}, {"importance", head.importance.mean}};
                        })}});
}

struct PageGiven {
  std::vector<std::string> texts = {}, targets = {};
  Changes changes = {};
  HeadsPageOptions page = {};
  PageRunOptions run = {};

  template <class V>
  void visit(V& v) {
    v("texts", texts, {.required = true});
    v("targets", targets);
    v("changes", changes);
    v("page", page);
    v("run", run);
  }
};

/// The data of the page of `multihead view`, as the page itself holds them.
HeadsJson page_of(const ScoredModel& model, const nlohmann::json& given) {
  auto fields = read<PageGiven>(given, "page");
  check_lists({.sources = fields.texts, .targets = fields.targets});
  std::vector<PageText> texts;
  for (size_t i = 0; i < fields.texts.size(); ++i)
    texts.push_back({fields.texts[i], fields.targets.empty() ? std::string() : fields.targets[i]});
  Changed changed(fields.changes, model);
  Remarks remarks;
  fields.run.sites = changed.sites();
  fields.run.remark = remarks.hear();
  HeadsPage page(fields.page);
  page.add_run(page_run(model, texts, fields.run), texts);
  return remarks.with({{"data", page.data()}, {"title", page.title()}});
}

using Call = HeadsJson (*)(const ScoredModel&, const nlohmann::json&);
const std::map<std::string, Call, std::less<>>& calls() {
  static const std::map<std::string, Call, std::less<>> calls = {
      {"about", about},           {"embed", embedded}, {"fill", filled},           {"generate", generated},
      {"importance", importance}, {"next", next},      {"observe", observed},      {"page", page_of},
      {"score", scores},          {"tokens", tokens},  {"translate", translations}};
  return calls;
}

struct OpenGiven {
  std::string path = {}, precision = precision_name({});
  template <class V>
  void visit(V& v) {
    v("path", path, {.required = true});
    v("precision", precision);
  }
};

std::unique_ptr<const ScoredModel> opened(const OpenGiven& given) {
  const auto precision = precision_named(given.precision);
  if (!precision) {
    throw UsageError(fmt::format("`precision`: expected {}, got {}", precisions_like(given.precision),
                                 given.precision.empty() ? "nothing" : given.precision));
  }
  auto model = std::make_unique<ScoredModel>(load_scored_model(given.path));
  use_precision(*model->folder().model, *precision);
  return model;
}

HeadsJson failed(std::string_view why) {
  return {{"error", why}};
}

}  // namespace

Models::Open::iterator Models::model_of(int number) {
  const auto found = open_.find(number);
  if (found == open_.end())
    throw UsageError(fmt::format("no model {} is open; give the number that `open` returned", number));
  return found;
}

std::string Models::call(std::string_view request) {
  HeadsJson answer;
  try {
    const nlohmann::json asked = parse_json_strictly(request, "request");
    const std::string name = asked.is_object() ? asked.value("call", std::string()) : std::string();
    const nlohmann::json given =
        asked.is_object() ? asked.value("given", nlohmann::json::object()) : nlohmann::json();
    if (name == "open") {
      auto model = opened(read<OpenGiven>(given, "open"));
      answer = about(*model, given);
      open_[++last_] = std::move(model);
      answer["model"] = last_;
    } else if (name == "close") {
      open_.erase(model_of(asked.value("model", 0)));
      answer = HeadsJson::object();
    } else {
      const auto found = calls().find(name);
      if (found == calls().end())
        throw UsageError(fmt::format("no call '{}'; web/README.md lists them", name));
      answer = found->second(*model_of(asked.value("model", 0))->second, given);
    }
  } catch (const std::bad_alloc&) {
    answer = failed("there is not enough memory; take a smaller model or a shorter text");
  } catch (const std::exception& error) {
    answer = failed(error.what());
  }
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mh::web
