// The entry point of the fuzzer for the JSON files beside weights: config.json of every family,
// generation_config.json, tokenizer_config.json. scripts/fuzz builds and runs it. A config.json that is accepted
// makes a model that runs; of any other file there is a result or an error of one line.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/folders/family.h"
#include "multihead/folders/generation_config.h"
#include "multihead/folders/generation_keys.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/context.h"
#include "tests/fuzz/one_line.h"

namespace mh {
namespace {

/// Runs the model, whose weights are all 0, on sequences of up to three tokens.
void run(const Model& model) {
  const ModelFacts facts = model.facts();
  const auto some = [&](int32_t vocabulary) {
    Batch batch;
    for (const int32_t length : {1, 3}) {
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < std::min(length, facts.max_positions); ++i) ids.push_back(i % vocabulary);
      batch.add(ids, length);
    }
    return batch;
  };
  const Batch text = some(facts.vocabulary_read()),
              target = dynamic_cast<const EncoderDecoder*>(&model) ? some(facts.vocabulary) : Batch();
  static Tape tape;  // keeps its memory
  tape.clear();
  Context context{.tape = tape};
  model.read(context, text.view(), target.view());
}

}  // namespace
}  // namespace mh

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<mh::Model> model;
  mh::reads([&] {
    const mh::FolderPlan plan = mh::read_plan(json, "config.json");
    const mh::TensorFiles files(mh::TensorFiles::Tensors{}, "model.safetensors");
    model = mh::make_model(files, plan);
    mh::reads([&] { mh::read_parameters(files, plan, *model); });  // all of them are missing
  });
  if (model) mh::run(*model);
  const mh::ModelFacts facts{
      .source_vocabulary = 97, .vocabulary = 97, .max_positions = 31, .eos_id = 1, .start_id = 2};
  mh::reads([&] {
    mh::SearchOptions options;
    mh::read_generation_config(json, "generation_config.json", facts).complete(options);
    mh::check_search(options);
  });
  mh::reads([&] { mh::generation_remark(json, "generation_config.json", facts); });
  mh::reads([&] { mh::read_tokenizer_config(json, "tokenizer_config.json"); });
  mh::reads([&] { mh::read_chat_template(json, "tokenizer_config.json"); });
  return 0;
}
