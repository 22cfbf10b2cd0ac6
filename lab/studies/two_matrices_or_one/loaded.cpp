// 002.6 of a model that was trained and saved: the folder that was given, or one saved here.
#include <fmt/format.h>

#include "lab/studies/comparison.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"

namespace mh::two_matrices_or_one {

Claim loaded(ArmRunner& runner) {
  std::filesystem::path folder = runner.options().checkpoint;
  const bool given = !folder.empty();
  if (!given) {
    folder = runner.options().runs / "canonical-marian";
    save_model_folder(folder, *runner.trained(canonical_arm(runner), runner.seeds()[0]));
  }
  Claim claim = stored(folder);
  claim.id = "002.6, loaded";
  claim.statement = fmt::format(
      "The same of a checkpoint that is loaded: {}.",
      given ? fmt::format("the folder that was given, {}", (folder / "").parent_path().filename().string())
            : "a trained canonical model, saved as a Marian folder");
  claim.original_words.clear();  // 002.6 has them
  claim.original_remark.clear();
  for (Clause& clause : claim.clauses) clause.original = OriginalSays::kNothing;
  if (given) claim.clauses.push_back(every_head(folder));
  return claim;
}

}  // namespace mh::two_matrices_or_one
