#include "multihead/heads/measures/heads_where.h"

#include <string>
#include <utility>

#include "multihead/heads/sites/inspected_texts.h"

namespace mh {

WhereReport heads_where(const ModelFolder& folder, HeadsCorpus& corpus, const WhereOptions& options) {
  const Model& model = options.read.model != nullptr ? *options.read.model : *folder.model;
  EvidenceModel about{.mask = [&](std::string_view attention) { return model.mask(attention); },
                      .target_label = [&](int32_t id) { return folder.target_tokens().shown(id); }};
  for (const HeadPattern& pattern : options.evidence.heads) {
    for (HeadName& head : model.heads_named(pattern)) {
      about.kinds.insert(model.place(head.attention).kind);
      about.heads.push_back(std::move(head));
    }
  }
  HeadEvidenceObserver observer(options.evidence, std::move(about));
  CorpusObserver* const observers[] = {&observer};
  ObserveHeadsOptions with_words = options.read;
  with_words.words = true;
  WhereReport report;
  report.read = observe_heads(folder, corpus, observers, with_words);
  report.heads = observer.heads();

  for (HeadEvidence& head : report.heads) {
    const AttentionKind kind = head.place.kind;
    const Tokenizer& source = folder.source_tokens();
    const Tokenizer& target = translates(folder) ? folder.target_tokens() : source;
    const Tokenizer& of_keys = kind == AttentionKind::kDecoderSelf ? target : source;
    const Tokenizer& of_queries = kind == AttentionKind::kEncoderSelf ? source : target;
    for (auto* sentences : {&head.strongest, &head.usual}) {
      for (EvidenceSentence& sentence : *sentences) {
        sentence.query.token = of_queries.shown(sentence.query.id);
        sentence.key.token = of_keys.shown(sentence.key.id);
      }
    }
    for (TokenShare& share : head.key_tokens) share.token = of_keys.shown(share.id);
    for (TokenShare& share : head.query_tokens) share.token = of_queries.shown(share.id);
  }
  return report;
}

}  // namespace mh
