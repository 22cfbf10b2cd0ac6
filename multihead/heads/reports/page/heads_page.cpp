#include "multihead/heads/reports/page/heads_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/heads/reports/page/page_json.h"
#include "multihead/heads/reports/page/page_maps.h"
#include "multihead/heads/reports/page/page_opening.h"
#include "multihead/heads/reports/page/page_template.h"
#include "multihead/heads/reports/report_json.h"
#include "multihead/heads/reports/trace/trace.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/nn/attention_place.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// From so many tokens on queries and keys take less than the square roots of weights.
constexpr int64_t kManyTokens = 200;
/// Beside roots, queries and keys are kept of the first texts as long as they take no more, in bytes.
constexpr size_t kMostProducts = size_t{3} << 20;

/// What a run may have of each text, and the field of the text that it becomes.
struct TextAnalysis {
  const char *field, *things;
  std::vector<std::string> PageRun::*of;
};
constexpr TextAnalysis kTextAnalyses[] = {{"attribution", "attributions", &PageRun::attributions},
                                          {"contributions", "contributions", &PageRun::contributions},
                                          {"lens", "lenses", &PageRun::lenses}};

/// With a decoder a classifier is shown as a translator is.
const char* family_of(const ModelFolder& folder) {
  if (folder.model->stack_configs().size() > 1) return "translator";
  return is_causal(folder) ? "causal" : "encoder";
}

const char* name_of(PageMode mode) {
  if (mode == PageMode::kOne) return "one";
  return mode == PageMode::kCompare ? "compare" : "time";
}

HeadsJson parsed(const std::string& json) {
  return json.empty() ? HeadsJson() : HeadsJson::parse(json);
}

/// Names of relations are the file's; those that would turn the writing of the page round are escaped.
HeadsJson with_printable_relations(HeadsJson json) {
  if (json.is_object() && json.contains("relation") && json["relation"].is_string())
    json["relation"] = printable(json["relation"].get<std::string>());
  for (auto& value : json) {
    if (value.is_structured()) value = with_printable_relations(std::move(value));
  }
  return json;
}

HeadsJson json_of(const PageEvidence& evidence) {
  return {{"of", evidence.of},
          {"stats", parsed(evidence.stats)},
          {"similar", parsed(evidence.similar)},
          {"relations", with_printable_relations(parsed(evidence.relations))},
          {"alignment", parsed(evidence.alignment)},
          {"where", parsed(evidence.where)},
          {"circuits", parsed(evidence.circuits)},
          {"importance", parsed(evidence.importance)},
          {"ablation", parsed(evidence.ablation)}};
}

/// Where the tokens of a translation lie that a search made: as its text is cut again, if that gives the same tokens.
void place_in(const Tokenizer& tokenizer, const std::string& text, size_t first, ObservedTokens& tokens) {
  tokens.offsets.assign(tokens.ids.size(), {0, 0});
  const Encoding again = tokenizer.encode(text, false);
  for (size_t i = 0; i < again.ids.size(); ++i) {
    if (first + i >= tokens.ids.size() || tokens.ids[first + i] != again.ids[i]) return;
  }
  for (size_t i = 0; i < again.ids.size(); ++i) tokens.offsets[first + i] = again.offsets[i];
}

/// "Encoder 0, head 2".
std::string place_in_words(const Model& model, const HeadName& name) {
  const AttentionPlace place = model.place(name.attention);
  const char* side = place.kind == AttentionKind::kEncoderSelf   ? "Encoder"
                     : place.kind == AttentionKind::kDecoderSelf ? "Decoder"
                                                                 : "Cross-attention";
  return fmt::format("{} {}, head {}", side, place.layer, name.head);
}

}  // namespace

HeadsText corpus_text(const std::vector<PageText>& texts) {
  HeadsText text;
  for (const PageText& one : texts) text.sources.push_back(one.source);
  if (!texts.empty() && !texts.front().target.empty()) {
    for (const PageText& one : texts) text.targets.push_back(one.target);
  }
  return text;
}

struct HeadsPage::Data {
  PageNumbers numbers = {};
  HeadsJson runs = HeadsJson::array();
  PageOpening opens = {};
  std::string opens_at = {};  // place_in_words() of its head
  int query = 0;
  size_t products = 0;  // bytes of those that stand beside roots

  /// seen: what the model has inside while it reads the text, with the values at the sites of `keep`.
  HeadsJson text(const PageRun& run, const PageText& text, int64_t number,
                 const std::vector<std::string>& keep, PageMapCollector& maps, Observation& seen);
  static int focus(const Observation& seen, const HeadName& head, const HeadsJson& evidence);
};

HeadsPage::HeadsPage(HeadsPageOptions options)
    : options_(std::move(options)), data_(std::make_unique<Data>()) {}
HeadsPage::~HeadsPage() = default;

/// The query of the text whose largest weight on another token that is none of the special ones is largest; of those tokens first at
/// which the head is sure more often than at others in the corpus, if the text has any.
int HeadsPage::Data::focus(const Observation& seen, const HeadName& head, const HeadsJson& evidence) {
  const std::vector<int32_t> sure_at = tokens_of_head(evidence, head.name());
  const ConstMatrixView weights = seen.weights(head);
  const AttentionKind kind = seen.place(head.attention).kind;
  const bool self = kind != AttentionKind::kCross, source_keys = kind != AttentionKind::kDecoderSelf;
  const ObservedTokens& keys = source_keys ? seen.source : seen.target;
  const ObservedTokens& queries = self ? keys : seen.predicted;
  const auto is_word = [](const ObservedTokens& of, int64_t i) {
    return of.offsets[static_cast<size_t>(i)].second > 0;
  };
  // What a token adds: the sooner it stands in that list the more, and only where the head is sure here, too.
  const auto standing_out = [&](int64_t i, float weight) {
    const auto found = std::find(sure_at.begin(), sure_at.end(), queries.ids[static_cast<size_t>(i)]);
    constexpr float kSure = 0.5f;
    return weight >= kSure ? static_cast<float>(sure_at.end() - found) : 0;
  };
  int best = 0;
  float largest = -1;
  for (int64_t i = 0; i < weights.rows; ++i) {
    for (int64_t j = 0; j < weights.cols; ++j) {
      if (self && i == j) continue;
      const float strength = weights(i, j) + standing_out(i, weights(i, j));
      if (is_word(queries, i) && is_word(keys, j) && strength > largest)
        largest = strength, best = static_cast<int>(i);
    }
  }
  return best;
}

HeadsJson HeadsPage::Data::text(const PageRun& run, const PageText& text, int64_t number,
                                const std::vector<std::string>& keep, PageMapCollector& maps,
                                Observation& seen) {
  const ModelFolder& folder = *run.folder;
  const size_t before = numbers.bytes().size();
  const size_t tokens = folder.source_tokens().encode_ids(text.source).size();
  const bool many = static_cast<int64_t>(tokens) >= kManyTokens;
  maps.begin(many                       ? PageCoding::kProducts
             : products < kMostProducts ? PageCoding::kRootsAndProducts
                                        : PageCoding::kRoots);
  SitesInTurn sites(run.sites, maps);
  seen = observe_text(
      folder, text.source, text.target,
      {.keep = keep, .sites = &sites, .number = number, .remark = run.remark, .languages = run.languages});
  HeadsJson json;
  const bool causal = is_causal(folder);
  if (seen.targets == TargetsRead::kGreedy) {
    place_in(folder.target_tokens(), seen.translation, 1, seen.target);
    place_in(folder.target_tokens(), seen.translation, 0, seen.predicted);
  }
  json["source"] = json_of_tokens(causal ? seen.target : seen.source, text.source);
  const bool decodes = !seen.predicted.ids.empty();
  json["target"] = decodes ? json_of_tokens(seen.target, seen.translation) : HeadsJson();
  json["predicted"] = decodes ? json_of_tokens(seen.predicted, seen.translation) : HeadsJson();
  json["maps"] = HeadsJson::array();
  for (const Model::Attention& attention : seen.attentions)
    json["maps"].push_back(mh::json_of(maps.maps().find(attention.name)->second));
  if (!many) products += numbers.bytes().size() - before;
  return json;
}

void HeadsPage::add_run(const PageRun& run, const std::vector<PageText>& texts) {
  const ModelFolder& folder = *run.folder;
  for (const PageText& text : texts) {
    if (text.source.empty()) throw FormatError("a text is empty; give one with words");
  }
  if (texts.empty()) throw FormatError("there is no text; give one");
  for (const TextAnalysis& analysis : kTextAnalyses) {
    const size_t count = (run.*analysis.of).size();
    if (count != 0 && count != texts.size())
      throw FormatError(
          fmt::format("{} {} for {} texts; give one for each", count, analysis.things, texts.size()));
  }
  const HeadsJson evidence = json_of(run.evidence);
  const bool opens = data_->runs.empty();  // the page opens at this run
  if (opens && !options_.head.empty()) {
    const HeadName head = folder.model->heads_named(HeadPattern(options_.head)).front();
    data_->opens = opening_at(*folder.model, evidence, head.name());
  } else if (opens) {
    data_->opens = best_opening(*folder.model, evidence);
  }
  if (!run.walk.empty()) folder.model->attention(run.walk);
  HeadsJson json{{"name", run.name},
                 {"update", run.update ? HeadsJson(*run.update) : HeadsJson()},
                 {"hash", run.hash},
                 {"family", family_of(folder)},
                 {"attentions", HeadsJson::array()},
                 {"texts", HeadsJson::array()},
                 {"evidence", evidence},
                 {"circuit", parsed(run.circuit)},
                 {"retrieval", parsed(run.retrieval)},
                 {"aligners", parsed(run.aligners)},
                 {"walk", nullptr}};
  for (const Model::Attention& attention : folder.model->attentions())
    json["attentions"].push_back(json_of_attention(*folder.model, attention));
  if (!data_->runs.empty()) {
    const HeadsJson& first = data_->runs.front();
    if (first["family"] != json["family"])
      throw UsageError(fmt::format("{} has another kind ({}) than {} ({}); compare models of one kind",
                                   run.name, json["family"].get<std::string>(),
                                   first["name"].get<std::string>(), first["family"].get<std::string>()));
    if (options_.mode == PageMode::kTime && first["attentions"] != json["attentions"])
      throw UsageError(
          fmt::format("{} has other heads than {}; a page through time needs checkpoints of one shape",
                      run.name, first["name"].get<std::string>()));
  }
  PageMapCollector maps(*folder.model, data_->numbers);
  const HeadName opened = parse_head_name(data_->opens.head);
  if (opens) data_->opens_at = place_in_words(*folder.model, opened);
  for (size_t t = 0; t < texts.size(); ++t) {
    const bool walks = t == 0 && !run.walk.empty(), focuses = t == 0 && opens;
    std::vector<std::string> keep =
        walks ? sites_of_trace(*folder.model, run.walk) : std::vector<std::string>();
    if (focuses) keep.push_back(weights_site(opened));
    Observation seen;
    json["texts"].push_back(data_->text(run, texts[t], static_cast<int64_t>(t), keep, maps, seen));
    for (const auto& [field, things, of] : kTextAnalyses)
      json["texts"].back()[field] = (run.*of).empty() ? HeadsJson() : parsed((run.*of)[t]);
    if (focuses) data_->query = Data::focus(seen, opened, evidence);
    if (walks)
      json["walk"] = json_of_walk(trace_attention(*folder.model, run.walk, seen.values), data_->numbers);
    // Deflating and base64 leave about as much as there was.
    if (data_->numbers.bytes().size() > options_.most_bytes())
      throw UsageError(
          fmt::format("the page would have more than {} MB; give fewer or shorter texts, fewer models, or a "
                      "larger `max_size`",
                      options_.most_megabytes));
  }
  data_->runs.push_back(std::move(json));
}

std::string HeadsPage::title() const {
  return fmt::format("{}: {}", data_->opens_at, data_->opens.words);
}

std::string HeadsPage::data() const {
  if (data_->runs.empty()) throw UsageError("a page needs a model");
  const HeadsJson page{{"schema", kHeadsSchema},
                       {"made", {{"version", MULTIHEAD_VERSION}, {"command", options_.command}}},
                       {"opens",
                        {{"run", 0},
                         {"text", 0},
                         {"head", data_->opens.head},
                         {"query", data_->query},
                         {"words", data_->opens.words},
                         {"by", data_->opens.by}}},
                       {"mode", name_of(options_.mode)},
                       {"runs", data_->runs}};
  return packed_page(written(page), data_->numbers.bytes());
}

std::string HeadsPage::html() const {
  std::string html = page_with(data(), live_.html);
  const auto megabytes = [](size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  if (html.size() <= options_.most_bytes()) return html;
  if (live_.html.empty())
    throw UsageError(
        fmt::format("the page has {:.1f} MB, more than {}; give fewer or shorter texts, no `walk`, or a "
                    "larger `max_size`",
                    megabytes(html.size()), options_.most_megabytes));
  std::string fits;
  for (const auto& [weights, bytes] : live_.smaller) {
    const size_t page = html.size() - live_.html.size() + bytes;
    if (page <= options_.most_bytes())
      fits += fmt::format("{}`live_weights` {} ({:.1f} MB)", fits.empty() ? "" : " or ", weights,
                          megabytes(page));
  }
  throw UsageError(fmt::format(
      "the page has {:.1f} MB, {:.1f} of them the model, more than {}; give {}, or a larger `max_size`",
      megabytes(html.size()), megabytes(live_.html.size()), options_.most_megabytes,
      fits.empty() ? "a smaller model" : fits));
}

}  // namespace mh
