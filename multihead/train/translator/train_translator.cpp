#include "multihead/train/translator/train_by_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/distributed/agreement.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/config.h"
#include "multihead/kernels/simd.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/train/training_run.h"
#include "multihead/train/translation_objective.h"
#include "multihead/train/translator/first_rank.h"
#include "multihead/train/translator/training_options.h"
#include "multihead/train/translator/training_refusals.h"
#include "multihead/train/translator/training_settings.h"
#include "multihead/train/translator/training_summary.h"
#include "multihead/train/translator/translator_corpus.h"
#include "multihead/train/translator/translator_validation.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClosedHeads = "closed_heads.txt";

// Checkpoints must agree with the kept settings, which have absolute paths.
TranslatorSettings settled(const TranslatorSettings& given) {
  TranslatorSettings settings = resolved(given);
  if (!settings.init_from.empty())
    settings.init_from = std::filesystem::absolute(settings.init_from).lexically_normal().string();
  return settings;
}

// One training, from reading the text to the final folder.
class Training {
 public:
  Training(const TranslatorSettings& given, const TrainingWatcher& watcher, ProcessGroup& group)
      : given_(given),
        settings_(settled(given)),
        run_(run_options(settings_)),
        watcher_(watcher),
        group_(group),
        first_(group.rank() == 0) {}

  TrainingResult run() {
    check_settings(given_);
    refuse_differing_ranks();
    std::unique_ptr<CheckpointStore> store;  // of rank 0, as everything that is written
    std::optional<Checkpoint> saved;
    ParallelText text;
    std::optional<ParallelText> valid_text;
    if (first_) refuse_foreign_folder(settings_.model);
    if (reads()) {
      const TextLimits& limits = settings_.text_limits;
      text = read_parallel_text(settings_.train_source, settings_.train_target, limits);
      if (!settings_.valid_source.empty())
        valid_text = read_parallel_text(settings_.valid_source, settings_.valid_target, limits);
    }
    if (first_) {
      store = std::make_unique<CheckpointStore>(settings_.model, LockWait{.remark = watcher_.remark});
      if (const auto updates = store->updates(); !updates.empty()) saved = store->load(updates.back());
      if (!settings_.init_from.empty() && !saved) begin_with(settings_.init_from);
      tokenizers_ = tokenizers(saved, text);
    }
    tokenizers_ = tokenizers_of_first_rank(group_, tokenizers_);
    encode(text, valid_text);
    text = {};
    std::optional<EncoderDecoderConfig> config;
    if (first_) {
      store->set_tokenizers(&tokenizers_->source,
                            tokenizers_->own_target ? &*tokenizers_->own_target : nullptr);
      if (saved) refuse_changes(settings_, saved->state, other_texts(saved->state));
      config = saved ? saved->folder.translator().config() : new_config();
    }
    config = config_of_first_rank(group_, config);
    config->encoder.dropout = config->decoder.dropout = model_shape(settings_, 1, 0).dropout;

    const bool goes_on = saved.has_value();
    EncoderDecoder model(*config);
    TranslationObjective objective(model, corpus_, translation_options(settings_));
    Trainer trainer(objective, trainer_options(settings_, group_));
    if (first_) begin(model, trainer, *store, std::move(saved));
    objective_ = &objective;
    trainer.start_as_first_rank();
    if (any_rank(group_, first_ && goes_on && was_finished(trainer, *store))) return result_;
    std::unique_ptr<MetricsLog> metrics;
    if (first_) {
      keep_settings(given_);
      metrics = std::make_unique<MetricsLog>(settings_.model, trainer.state().update);
    }
    result_.end = run_training(trainer, store.get(), metrics.get(), run_, hooks(model));
    result_.updates = trainer.state().update;
    finish(model, trainer, store.get(), metrics.get());
    return result_;
  }

 private:
  void remark(const std::string& line) const {
    if (watcher_.remark) watcher_.remark(line);
  }

  // Whether this rank has the text from files.
  bool reads() const { return first_ || !settings_.share_corpus; }

  // What decides which numbers come out, and how ranks talk to each other.
  void refuse_differing_ranks() {
    NamedValues mine{{"multihead's version", MULTIHEAD_VERSION}};
    for (const Setting& setting : fixed_settings(settings_))
      mine.emplace_back("`" + setting.name + "`", setting.value);
    mine.emplace_back("`share_corpus`", settings_.share_corpus ? "true" : "false");
    mine.emplace_back("`shard_optimiser`", settings_.shard_optimiser ? "true" : "false");
    mine.emplace_back("`updates`", std::to_string(settings_.updates));
    mine.emplace_back("`epochs`", std::to_string(settings_.epochs));
    mine.emplace_back("`patience`", std::to_string(settings_.patience));
    // Other instructions round otherwise.
    if (settings_.reproducible) mine.emplace_back("the kernels' instruction set", dispatch_target());
    check_same(group_, mine);
  }

  bool was_finished(Trainer& trainer, const CheckpointStore& store) {
    const auto end = ended(trainer.state(), run_);
    if (!end) return false;
    const auto summary = read_training_summary(settings_.model);
    if (!summary || summary->updates != trainer.state().update ||
        summary->averaged != chosen(trainer, store)) {
      return false;
    }
    result_.was_finished = true;
    result_.end = *end;
    result_.updates = summary->updates;
    result_.averaged = summary->averaged;
    result_.final = summary->final;
    return true;
  }

  void begin_with(const std::string& folder) {
    begin_with_ = load_model_folder(folder);
    if (const std::string line = begin_with_->remark(); !line.empty()) remark(line);
  }

  // Takes them out of the checkpoint, if there is one.
  TranslatorTokenizers tokenizers(std::optional<Checkpoint>& saved, const ParallelText& text) const {
    if (saved) {
      ModelFolder& folder = saved->folder;
      folder.source_tokens();  // throws where there are none
      return {*std::move(folder.tokenizer), std::move(folder.target_tokenizer)};
    }
    if (begin_with_ && settings_.tokenizer.empty())
      return {begin_with_->source_tokens(), begin_with_->target_tokenizer};
    return make_tokenizers(settings_, text);
  }

  void encode(const ParallelText& text, const std::optional<ParallelText>& valid_text) {
    MessageWriter shared;
    TrainingCorpus valid;
    std::vector<std::string> references;
    bool validates = valid_text.has_value();
    if (reads()) {
      EncodedText encoded = encode_text(text, *tokenizers_, settings_.max_length);
      report_left_out(encoded, text.size(), settings_.train_source);
      result_.left_out = static_cast<int64_t>(encoded.left_out.size());
      corpus_ = std::move(encoded.corpus);
      if (validates) {
        EncodedText both = encode_text(*valid_text, *tokenizers_, settings_.max_length);
        report_left_out(both, valid_text->size(), settings_.valid_source);
        for (const int64_t line : both.corpus.lines)
          references.push_back(valid_text->target[static_cast<size_t>(line - 1)]);
        valid = std::move(both.corpus);
      }
    }
    if (settings_.share_corpus && group_.size() > 1) {
      if (first_) {
        add_corpus(shared, corpus_);
        shared.add(static_cast<char>(validates));
        if (validates) add_corpus(shared, valid);
        for (const std::string& line : references) shared.add(std::string_view(line));
      }
      const std::string all = of_first_rank(group_, shared.bytes());
      if (!first_) {
        MessageReader reader(all);
        corpus_ = read_corpus(reader);
        validates = reader.number<char>() != 0;
        if (validates) valid = read_corpus(reader);
        for (size_t i = 0; i < valid.lines.size(); ++i) references.emplace_back(reader.text());
      }
    }
    data_ = fingerprint(corpus_);
    if (validates) {
      data_ += "-" + fingerprint(valid);
      validation_ = std::make_unique<TranslatorValidation>(
          std::move(valid), std::move(references), tokenizers_->target(),
          TranslatorValidation::Options{.beam_size = settings_.validate_beam,
                                        .max_length = settings_.max_length,
                                        .lowercase = settings_.lowercase,
                                        .batches_apart = settings_.reproducible});
    }
    check_same(group_, {{"the fingerprint of the text", data_}});
  }

  void report_left_out(const EncodedText& encoded, size_t all, const std::string& file) const {
    if (encoded.corpus.lines.empty()) {
      throw UsageError(
          fmt::format("{}: all {} pairs have more than `max_length` {} tokens; raise `max_length`", file, all,
                      settings_.max_length));
    }
    if (encoded.left_out.empty()) return;
    constexpr size_t kShown = 5;
    const size_t shown = std::min(kShown, encoded.left_out.size());
    remark(fmt::format(
        "{}: left out {} of {} pairs with more than {} tokens on a side (lines {}{}); raise `max_length` "
        "to train on them",
        file, encoded.left_out.size(), all, settings_.max_length,
        fmt::join(encoded.left_out.begin(), encoded.left_out.begin() + static_cast<int64_t>(shown), ", "),
        encoded.left_out.size() > shown ? ", ..." : ""));
  }

  // Of what may differ besides settings. The texts are compared, wherever they lie; so is a tokenizer that the
  // run did not have from the beginning.
  std::vector<std::string> other_texts(const TrainingState& saved) const {
    std::vector<std::string> clauses;
    const std::string& tokenizer = settings_.tokenizer;
    const auto kept = kept_settings(settings_.model);
    const bool known = tokenizer.empty() || (kept && kept->tokenizer == tokenizer);
    if (!known && Tokenizer::from_json(read_regular_file(tokenizer), tokenizer).files() !=
                      tokenizers_->source.files()) {
      clauses.push_back(fmt::format("`tokenizer` {} is not the run's", tokenizer));
    }
    if (saved.data != data_) clauses.emplace_back("the text is not the one the run was started with");
    return clauses;
  }

  EncoderDecoderConfig new_config() const {
    const Tokenizer& source = tokenizers_->source;
    const std::string name = settings_.tokenizer.empty() ? "the tokenizer" : settings_.tokenizer;
    const SpecialIds special = special_ids(source, name);
    if (begin_with_) {
      EncoderDecoderConfig config = begin_with_->translator().config();
      refuse_other_shape(given_, shape_of(config));
      if (!settings_.tokenizer.empty()) refuse_other_tokens(source, config, settings_);
      config.max_positions = std::max(config.max_positions, settings_.max_length);
      return config;
    }
    TranslatorShape shape =
        model_shape(settings_, source.size(), tokenizers_->own_target ? tokenizers_->own_target->size() : 0);
    shape.eos_id = special.end;
    shape.pad_id = shape.decoder_start_id = special.pad;
    EncoderDecoderConfig config = shape.config();
    refuse_too_large(config);
    return config;
  }

  void begin(EncoderDecoder& model, Trainer& trainer, const CheckpointStore& store,
             std::optional<Checkpoint> saved) {
    int64_t tokens = 0;
    for (const auto& target : corpus_.tokens.target) tokens += static_cast<int64_t>(target.size());
    remark(fmt::format("{} pairs, {} target tokens, vocabulary {}, {} parameters, seed {}",
                       corpus_.tokens.size(), tokens, model.config().target_vocabulary(),
                       model.parameter_count(), settings_.seed));
    if (saved) {
      trainer.adam().hold_all();
      store.restore(*saved, trainer);
      if (!ended(trainer.state(), run_))
        remark(fmt::format("going on from {}", store.path(trainer.state().update).string()));
      return;
    }
    trainer.state().settings = fixed_settings(settings_);
    trainer.state().data = data_;
    if (begin_with_) {
      copy_parameters(named_parameters(*begin_with_->model), named_parameters(model), settings_.init_from);
      begin_with_.reset();
    } else {
      model.initialise(settings_.seed, settings_.embedding_init);
    }
  }

  RunHooks hooks(EncoderDecoder& model) {
    RunHooks hooks{.validate = {},
                   .progress = watcher_.progress,
                   .validated = watcher_.validated,
                   .stop = watcher_.stop};
    if (validation_)
      hooks.validate = [this, &model] {
        const auto folded = objective_->fold();
        return (*validation_)(model, group_);
      };
    return hooks;
  }

  std::vector<int64_t> chosen(Trainer& trainer, const CheckpointStore& store) const {
    return chosen_checkpoints(trainer.state(), run_, store.updates());
  }

  void finish(EncoderDecoder& model, Trainer& trainer, CheckpointStore* store, MetricsLog* metrics) {
    if (first_) result_.averaged = chosen(trainer, *store);
    if (!any_rank(group_, result_.averaged.size() > 1)) {
      if (first_) {
        const int64_t update = result_.averaged.at(0);
        store->publish(update);
        for (const Validation& validation : trainer.state().validations) {
          if (validation.update == update) result_.final = validation;
        }
      }
    } else {
      if (first_) store->average(result_.averaged, named_parameters(model));
      // What was averaged has its gates folded in.
      if (HeadGates* const gates = objective_->gates()) gates->reset();
      all_are_well();
      trainer.parameters_of_first_rank();
      if (validation_) {
        result_.final = (*validation_)(model, group_);
        result_.final->update = result_.updates;
        result_.final->perplexity = perplexity_of(result_.final->loss);
      }
      if (first_) store->publish(trainer.objective());
    }
    if (first_ && settings_.head_gates) list_closed_heads();
    if (first_) summarise(trainer, *metrics);
    all_are_well();
  }

  // As `heads prune --heads-from` takes them.
  void list_closed_heads() const {
    const ModelFolder folder = load_model_folder(settings_.model);
    int64_t heads = 0;
    for (const auto& attention : folder.model->attentions()) heads += attention.heads;
    const std::vector<std::string> closed = closed_heads(*folder.model);
    std::string list;
    for (const std::string& head : closed) list += head + "\n";
    const fs::path file = fs::path(settings_.model) / kClosedHeads;
    write_file_atomically(file, list);
    if (std::ssize(closed) == heads) {
      remark(fmt::format(
          "`head_gates` {} closed all {} heads, so that no attention is left; a smaller one keeps some",
          *settings_.head_gates, heads));
    } else {
      remark(fmt::format("{} of {} heads are closed; {} names them, for multihead heads prune --heads-from",
                         closed.size(), heads, file.string()));
    }
  }

  // Ranks that wait for another one learn here that it has failed.
  void all_are_well() { any_rank(group_, false); }

  void summarise(Trainer& trainer, MetricsLog& metrics) const {
    if (result_.final) metrics.add(*result_.final, "final");
    const TrainingSummary summary{.updates = result_.updates,
                                  .end = run_end_text(result_.end),
                                  .averaged = result_.averaged,
                                  .final = result_.final,
                                  .settings = trainer.state().settings};
    write_training_summary(settings_.model, summary);
  }

  const TranslatorSettings& given_;
  const TranslatorSettings settings_;
  const RunOptions run_;
  const TrainingWatcher& watcher_;
  ProcessGroup& group_;
  const bool first_;
  std::optional<TranslatorTokenizers> tokenizers_;
  std::optional<ModelFolder> begin_with_;
  TrainingCorpus corpus_;
  std::unique_ptr<TranslatorValidation> validation_;
  std::string data_;                           // fingerprint of both texts
  TranslationObjective* objective_ = nullptr;  // while run() is
  TrainingResult result_;
};

}  // namespace

TrainingResult train_translator(const TranslatorSettings& settings, const TrainingWatcher& watcher,
                                ProcessGroup& group) {
  TrainingWatcher silent;
  silent.stop = watcher.stop;
  // Ranks end together, between updates; one process ends at any time.
  std::optional<StopScope> scope;
  if (group.size() > 1) {
    scope.emplace(nullptr);
  } else if (watcher.stop) {
    scope.emplace(watcher.stop);
  }
  try {
    return Training(settings, group.rank() == 0 ? watcher : silent, group).run();
  } catch (const AgreedFailure&) {
    throw;
  } catch (const LostRank&) {
    throw;
  } catch (const std::exception& failure) {
    try {
      tell_failure(group, failure);
    } catch (const LostRank&) {
      // What went wrong first is worth more.
    }
    throw;
  }
}

TrainingResult train_translator(const TranslatorSettings& settings, const TrainingWatcher& watcher) {
  OneProcess alone;
  return train_translator(settings, watcher, alone);
}

}  // namespace mh
