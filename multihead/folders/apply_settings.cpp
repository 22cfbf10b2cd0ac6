#include "multihead/folders/apply_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "multihead/folders/class_steps.h"
#include "multihead/folders/tokenizer_fit.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

/// As transformers cleans decoded text up.
bool cleans_up(const TokenizerSettings& settings, const TokenModel& model) {
  const bool bpe = model.kind == TokenModel::Kind::kBpe || model.kind == TokenModel::Kind::kScoredBpe;
  return settings.clean_up_spaces && (!bpe || settings.clean_up_spaces_of_bpe);
}

class Applied {
 public:
  Applied(const TokenizerSettings& settings, const std::string& file, TokenizerParts& parts)
      : settings_(settings), file_(file), parts_(parts) {}

  std::vector<std::string> lines() && { return std::move(lines_); }

  void put_steps(const ChosenClass& chosen) {
    if (!chosen.known) {
      say("{}: tokenizer_class {} is not known here; the steps are those of {}", by_whom(), chosen.name,
          file_);
    } else if (!fits_class(chosen.kind, parts_.model)) {
      say("{}: {}, which transformers 5 opens it with, is for models of another kind; it is read as it is "
          "written",
          file_, chosen.name);
    } else {
      if (settings_.lists_all_added && chosen.kind != TokenizerClass::kAsWritten) hide_unlisted(chosen.kind);
      const auto changed = put_class_steps(chosen.kind, settings_.options, parts_);
      if (!changed.empty()) {
        say("{}: {} {} not used: {} of transformers 5 has its own; tokenizer_class PreTrainedTokenizerFast "
            "in "
            "tokenizer_config.json keeps those of the file",
            file_, fmt::join(changed, ", "), changed.size() == 1 ? "is" : "are", chosen.name);
      }
    }
    parts_.gives_types = settings_.gives_types.value_or(chosen.gives_types);
    parts_.cut = settings_.cut;
  }

  /// Some added tokens at the end of the file for which the model has no row, such as Gemma 3's for images beside a model that
  /// reads texts alone.
  void leave_out_tokens_without_row() {
    const int32_t rows = settings_.rows;
    std::unordered_set<std::string_view> above;
    for (const AddedToken& token : parts_.added_tokens) {
      if (token.id >= rows) above.insert(token.content);
    }
    const bool others =
        std::any_of(parts_.model.vocabulary.begin(), parts_.model.vocabulary.end(),
                    [&](const auto& entry) { return entry.second >= rows && !above.contains(entry.first); });
    if (rows == 0 || others || static_cast<int64_t>(above.size()) > rows / kPart) return;
    for (const AddedToken& token : parts_.added_tokens) {
      if (token.id >= rows) without_row_.push_back(in_quotes(token.content));
    }
    if (!without_row_.empty()) says_so_ = file_;
    std::erase_if(parts_.model.vocabulary, [&](const auto& entry) { return entry.second >= rows; });
    std::erase_if(parts_.added_tokens, [&](const AddedToken& token) { return token.id >= rows; });
  }

  void add_tokens(TokenizerClass kind) {
    std::unordered_map<std::string_view, int32_t> ids;
    for (const auto& [text, id] : parts_.model.vocabulary) {
      ids.emplace(text, id);
      next_ = std::max(next_, id + 1);
    }
    for (const AddedToken& token : parts_.added_tokens) next_ = std::max(next_, token.id + 1);
    const std::vector<TokenToAdd> wanted_tokens = tokens_to_add(kind);
    const auto new_ones =
        std::count_if(wanted_tokens.begin(), wanted_tokens.end(), [&](const TokenToAdd& wanted) {
          return !wanted.only_if_known && !ids.contains(wanted.token.content) &&
                 added(wanted.token.content) == parts_.added_tokens.end();
        });
    if (is_of_another_model(new_ones)) return;
    for (const TokenToAdd& wanted : wanted_tokens) {
      const auto has = added(wanted.token.content);
      if (has != parts_.added_tokens.end()) {
        const int32_t id = has->id;
        if (wanted.as_it_says) *has = wanted.token;
        has->id = id;
        continue;
      }
      AddedToken token = wanted.token;
      const auto known = ids.find(token.content);
      if (known == ids.end() && !takes_new_id(wanted)) continue;
      token.id = known == ids.end() ? next_++ : known->second;
      parts_.added_tokens.push_back(std::move(token));
    }
    if (!without_row_.empty()) {
      say("{}: the model, of {} tokens, has none for {}, which {} not looked for in texts", says_so_,
          settings_.rows, fmt::join(without_row_, ", "), without_row_.size() == 1 ? "is" : "are");
    }
    if (settings_.split_special_tokens) {
      for (AddedToken& token : parts_.added_tokens) token.in_text = token.in_text && !token.special;
    }
  }

  /// As transformers writes decoded text with clean_up_tokenization_spaces.
  void clean_up() {
    if (!cleans_up(settings_, parts_.model)) return;
    if (parts_.decoders.empty()) {
      say("{}: clean_up_tokenization_spaces is not used, since {} has no decoder", settings_.file, file_);
      return;
    }
    parts_.decoders.push_back({.kind = DecoderStep::Kind::kFuse});
    constexpr std::pair<const char*, const char*> kCleaned[] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kCleaned)
      parts_.decoders.push_back(
          {.kind = DecoderStep::Kind::kReplace, .content = to, .pattern = {.literal = from}});
  }

  /// Keys that say otherwise than what is done, where transformers 5 does not obey them either.
  void tell_what_is_not_obeyed(const ChosenClass& chosen) {
    std::vector<std::string> keys;
    const auto note = [&](const char* key, const std::optional<bool>& asked, std::optional<bool> done) {
      if (asked && done && *asked != *done) keys.push_back(fmt::format("{} ({})", key, *asked));
    };
    note("add_bos_token", settings_.add_bos_token, puts(TextEnd::kStart, settings_.options.bos));
    note("add_eos_token", settings_.add_eos_token, puts(TextEnd::kEnd, settings_.options.eos));
    if (chosen.kind == TokenizerClass::kAsWritten) {
      for (const NormalizerStep& step : parts_.normalizers) {
        if (step.kind != NormalizerStep::Kind::kBert) continue;
        note("do_lower_case", settings_.options.do_lower_case, step.lowercase);
        note("strip_accents", settings_.options.strip_accents, step.strip_accents.value_or(step.lowercase));
        note("tokenize_chinese_chars", settings_.options.tokenize_chinese_chars, step.handle_chinese_chars);
      }
      for (const PreTokenizerStep& step : parts_.pre_tokenizers) {
        if (step.kind == PreTokenizerStep::Kind::kByteLevel)
          note("add_prefix_space", settings_.options.add_prefix_space, step.add_prefix_space);
      }
    }
    if (keys.empty()) return;
    say("{}: {} {} not obeyed, as in transformers 5: {} says otherwise", settings_.file,
        fmt::join(keys, ", "), keys.size() == 1 ? "is" : "are", file_);
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> words, Args&&... args) {
    lines_.push_back(fmt::format(words, std::forward<Args>(args)...));
  }

  const std::string& by_whom() const { return settings_.file.empty() ? file_ : settings_.file; }

  std::vector<AddedToken>::iterator added(std::string_view content) {
    return std::find_if(parts_.added_tokens.begin(), parts_.added_tokens.end(),
                        [&](const AddedToken& token) { return token.content == content; });
  }

  /// In the order in which they get their ids, each once.
  std::vector<TokenToAdd> tokens_to_add(TokenizerClass kind) const {
    std::vector<TokenToAdd> all = settings_.listed;
    const auto add = [&](const TokenToAdd& wanted) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const TokenToAdd& other) {
        return other.token.content == wanted.token.content;
      });
      if (same == all.end()) {
        all.push_back(wanted);
      } else {
        same->token.special = true;
      }
    };
    const bool spaced_mask = kind == TokenizerClass::kMpnet || kind == TokenizerClass::kCamembert;
    for (const std::string_view key : kNamedTokens) {
      TokenToAdd wanted;
      if (const auto named = settings_.named.find(key); named != settings_.named.end()) {
        wanted = named->second;
      } else if (const std::string_view token = default_token(kind, key); !token.empty()) {
        wanted = {.token = {.content = std::string(token)}, .as_text = true};
      } else {
        continue;
      }
      if (spaced_mask && key == "mask_token" && wanted.as_text) wanted.token.lstrip = true;
      wanted.only_if_known = is_needed(key);
      add(wanted);
    }
    for (const TokenToAdd& token : settings_.extra) add(token);
    return all;
  }

  /// Whether the vocabulary with all of these is still too small for the model (tokenizer_fit.h), which is said of the file alone.
  bool is_of_another_model(int64_t new_ones) const {
    const int64_t rows = settings_.rows, tokens = next_ + new_ones;
    return rows - tokens > rows / kPart && !is_rounded_up(tokens, rows);
  }

  /// A vocabulary without such a token is refused (tokenizer_fit.h) rather than given a new one.
  bool is_needed(std::string_view key) const {
    return key == "unk_token" || key == "sep_token" || key == "cls_token" ||
           (settings_.translates && (key == "eos_token" || key == "pad_token"));
  }

  /// Whether a token that the vocabulary lacks gets a new id; notes one that has no row in the model.
  bool takes_new_id(const TokenToAdd& wanted) {
    if (wanted.only_if_known) return false;
    if (settings_.rows == 0 || next_ < settings_.rows) return true;
    if (!wanted.file.empty()) {  // else it is only what the class would take
      without_row_.push_back(in_quotes(wanted.token.content));
      says_so_ = wanted.file;
    }
    return false;
  }

  /// Added tokens of tokenizer.json that added_tokens_decoder does not have are none for a class with its own steps.
  void hide_unlisted(TokenizerClass kind) {
    const std::vector<TokenToAdd> wanted = tokens_to_add(kind);
    for (AddedToken& token : parts_.added_tokens) {
      const bool listed = std::any_of(wanted.begin(), wanted.end(), [&](const TokenToAdd& one) {
        return one.token.content == token.content;
      });
      token.in_text = token.in_text && listed;
    }
  }

  /// Whether the template puts this token at that end of a text; nothing when there is no such token.
  std::optional<bool> puts(TextEnd end, const std::optional<std::string>& token) const {
    if (!token) return std::nullopt;
    for (const PostProcessorStep& step : parts_.post_processors) {
      if (step.single.empty()) continue;
      const TemplatePiece& piece = end == TextEnd::kStart ? step.single.front() : step.single.back();
      if (piece.sequence == 0 && piece.special == *token) return true;
    }
    return false;
  }

  static constexpr int64_t kPart = 1000;

  const TokenizerSettings& settings_;
  const std::string& file_;
  TokenizerParts& parts_;
  std::vector<std::string> lines_ = {}, without_row_ = {};
  std::string says_so_ = {};  // the file that names the tokens without a row
  int32_t next_ = 0;          // id of a new token
};

}  // namespace

std::vector<std::string> apply_settings(const TokenizerSettings& settings, const std::string& file,
                                        bool byte_level, TokenizerParts& parts) {
  const ChosenClass chosen = choose_tokenizer_class(settings.model_type, settings.named_class, byte_level);
  Applied applied(settings, file, parts);
  const TokenizerClass kind = fits_class(chosen.kind, parts.model) ? chosen.kind : TokenizerClass::kAsWritten;
  applied.put_steps(chosen);
  applied.tell_what_is_not_obeyed(chosen);
  applied.leave_out_tokens_without_row();
  applied.add_tokens(kind);
  applied.clean_up();
  return std::move(applied).lines();
}

std::string unused_settings(const TokenizerSettings& settings, const std::string& file,
                            const TokenizerParts& parts) {
  std::vector<std::string> keys;
  const ChosenClass chosen = choose_tokenizer_class(settings.model_type, settings.named_class, false);
  if (chosen.kind != TokenizerClass::kAsWritten && fits_class(chosen.kind, parts.model))
    keys.emplace_back("tokenizer_class");
  const bool keeps_the_end = parts.truncation && parts.truncation->keeps_the_end;
  const TextEnd cut = parts.cut.value_or(keeps_the_end ? TextEnd::kStart : TextEnd::kEnd);
  if (settings.cut.value_or(cut) != cut) keys.emplace_back("truncation_side");
  if (cleans_up(settings, parts.model)) keys.emplace_back("clean_up_tokenization_spaces");
  if (settings.split_special_tokens) keys.emplace_back("split_special_tokens");
  for (const auto* tokens : {&settings.listed, &settings.extra}) {
    for (const TokenToAdd& wanted : *tokens) {
      const bool has = std::any_of(parts.added_tokens.begin(), parts.added_tokens.end(),
                                   [&](const auto& token) { return token.content == wanted.token.content; });
      if (!has) keys.push_back(in_quotes(wanted.token.content));
    }
  }
  if (keys.empty()) return "";
  return fmt::format("{} is read as it is written: {} of the files beside it {} not used", file,
                     fmt::join(keys, ", "), keys.size() == 1 ? "is" : "are");
}

}  // namespace mh
