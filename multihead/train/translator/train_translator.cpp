#include "multihead/train/translator/train_by_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/data/parallel_tokens.h"
#include "multihead/distributed/agreement.h"
#include "multihead/folders/kept_folder.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/train/training_run.h"
#include "multihead/train/translation_objective.h"
#include "multihead/train/translator/first_rank.h"
#include "multihead/train/translator/training_options.h"
#include "multihead/train/translator/training_refusals.h"
#include "multihead/train/translator/training_settings.h"
#include "multihead/train/translator/training_summary.h"
#include "multihead/train/translator/training_text.h"
#include "multihead/train/translator/translator_corpus.h"

namespace mh {
namespace {

// What a training writes besides its model, which another one that begins with this model must not take over.
constexpr std::string_view kFilesOfTrainings[] = {"training.json", "training_state.json", "closed_heads.txt"};

// Checkpoints must agree with the kept settings, which have absolute paths.
TranslatorSettings settled(const TranslatorSettings& given) {
  TranslatorSettings settings = resolved(given);
  settings.init_from = settled_folder(settings.init_from);
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
    refuse_differing_ranks(group_, settings_);
    if (first_) refuse_foreign_folder(settings_.model);
    std::unique_ptr<CheckpointStore> store;  // of rank 0, as everything that is written
    std::optional<Checkpoint> saved;
    const TrainingText text(settings_, group_, watcher_.remark, [&] {
      store = std::make_unique<CheckpointStore>(settings_.model, LockWait{.remark = watcher_.remark});
      if (const auto updates = store->updates(); !updates.empty()) saved = store->load(updates.back());
      if (!settings_.init_from.empty() && !saved) begin_with(settings_.init_from);
      return known_tokenizers(saved);
    });
    text_ = &text;
    result_.left_out = text.left_out();
    std::optional<EncoderDecoderConfig> config;
    if (first_) {
      const TranslatorTokenizers& tokenizers = text.tokenizers();
      if (kept_) {
        store->set_folder(&*kept_);
      } else {
        store->set_tokenizers(&tokenizers.source, tokenizers.own_target ? &*tokenizers.own_target : nullptr);
      }
      if (saved) refuse_changes(settings_, saved->state, text.differences_from(saved->state));
      config = saved ? saved->folder.translator().config() : new_config();
    }
    config = config_of_first_rank(group_, config);
    config->encoder.dropout = config->decoder.dropout = model_shape(settings_, 1, 0).dropout;

    const bool goes_on = saved.has_value();
    EncoderDecoder model(*config);
    TranslationObjective objective(model, text.corpus(), translation_options(settings_));
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
    begin_with_->translator();  // it must be one
    if (const std::string line = begin_with_->remark(); !line.empty()) remark(line);
  }

  // Those of the checkpoint, out of which they are taken, or of the model to begin with; none: they are to be made.
  std::optional<TranslatorTokenizers> known_tokenizers(std::optional<Checkpoint>& saved) {
    ModelFolder* const folder = saved ? &saved->folder : begin_with_ ? &*begin_with_ : nullptr;
    if (folder == nullptr) return std::nullopt;
    const bool further = !settings_.init_from.empty() && settings_.tokenizer.empty();
    if (!further && !saved) {
      refuse_own_tokenizer(*folder, settings_);
      return std::nullopt;
    }
    if (!further) return TranslatorTokenizers{folder->source_tokens(), folder->target_tokenizer};
    kept_ = kept_folder(*folder, kFilesOfTrainings);
    return tokenizers_of(*folder, *kept_, settings_.pair_texts);
  }

  EncoderDecoderConfig new_config() const {
    const TranslatorTokenizers& tokenizers = text_->tokenizers();
    const Tokenizer& source = tokenizers.source;
    const std::string name = settings_.tokenizer.empty() ? "the tokenizer" : settings_.tokenizer;
    if (begin_with_) {
      EncoderDecoderConfig config = begin_with_->translator().config();
      refuse_other_shape(given_, shape_of(config));
      if (!settings_.tokenizer.empty()) {
        special_ids(source, name);  // it must have them
        refuse_other_tokens(source, config, settings_);
      }
      config.max_positions = std::max(config.max_positions, settings_.max_length);
      return config;
    }
    const SpecialIds special = special_ids(source, name);
    TranslatorShape shape =
        model_shape(settings_, source.size(), tokenizers.own_target ? tokenizers.own_target->size() : 0);
    shape.eos_id = special.end;
    shape.pad_id = shape.decoder_start_id = special.pad;
    EncoderDecoderConfig config = shape.config();
    refuse_too_large(config);
    return config;
  }

  void begin(EncoderDecoder& model, Trainer& trainer, const CheckpointStore& store,
             std::optional<Checkpoint> saved) {
    int64_t tokens = 0;
    const ParallelTokens& pairs = text_->corpus().tokens;
    for (const auto& target : pairs.target) tokens += static_cast<int64_t>(target.size());
    remark(fmt::format("{} pairs, {} target tokens, vocabulary {}, {} parameters, seed {}", pairs.size(),
                       tokens, model.config().target_vocabulary(), model.parameter_count(), settings_.seed));
    if (saved) {
      trainer.adam().hold_all();
      store.restore(*saved, trainer);
      if (!ended(trainer.state(), run_))
        remark(fmt::format("going on from {}", store.path(trainer.state().update).string()));
      return;
    }
    trainer.state().settings = fixed_settings(settings_);
    trainer.state().data = text_->fingerprint();
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
    if (text_->validation() != nullptr)
      hooks.validate = [this, &model] {
        const auto folded = objective_->fold();
        return (*text_->validation())(model, group_);
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
      if (text_->validation() != nullptr) {
        result_.final = (*text_->validation())(model, group_);
        result_.final->update = result_.updates;
        result_.final->perplexity = perplexity_of(result_.final->loss);
      }
      if (first_) store->publish(trainer.objective());
    }
    if (first_ && settings_.head_gates) remark(list_closed_heads(settings_.model, *settings_.head_gates));
    if (first_) summarise(trainer, *metrics);
    all_are_well();
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
  std::optional<ModelFolder> begin_with_;
  std::optional<ModelFolder> kept_;            // in whose format everything is saved; nothing: in our own
  const TrainingText* text_ = nullptr;         // while run() is
  TranslationObjective* objective_ = nullptr;  // the same
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
