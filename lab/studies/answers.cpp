// The questions, and the sentences of which their answers are made.
#include <array>

#include "lab/studies/diversity/claims.h"
#include "lab/studies/one_product/claims.h"
#include "lab/studies/split_or_project/claims.h"
#include "lab/studies/study.h"
#include "lab/studies/table3/claims.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "lab/studies/unique_heads/claims.h"

namespace mh {
namespace {

constexpr Sentence kSlices = {"000.7", 0,
                              "Heads that read only a slice of the row were worse from equal starts, in "
                              "models of equal size, larger than canonical ones.",
                              "Heads that read only a slice of the row were better from equal starts, in "
                              "models of equal size, larger than canonical ones.",
                              "Whether heads that read only a slice of the row are worse from equal starts, "
                              "in models of equal size, larger than canonical ones, these runs leave open."};

constexpr Sentence kSplit[] = {
    {"000.1", 0,
     "It is duplicated: every head reads the whole row, and projects it with matrices of its own from d "
     "numbers to d/h."},
    {"000.5", 0,
     "What shrinks is the projection, not the input. The reshape in code that looks like a split comes after "
     "it."},
    {"000.6", 0, "Several such heads were better than one of size d at equal cost in these runs.",
     "Several such heads were worse than one of size d at equal cost in these runs.",
     "Whether several such heads are better than one of size d at equal cost, these runs leave open."},
    kSlices};

constexpr Sentence kSplitAlone[] = {
    kSlices,
    {"000.8", 0, "Sixteen heads were better than four of the same size, in a model of twice the parameters.",
     "Sixteen heads were worse than four of the same size, in a model of twice the parameters.",
     "Whether sixteen heads are better than four of the same size, these runs leave open."},
    {"000.8", 2, "They were better, too, than four heads in a model of as many parameters.",
     "They were worse than four heads in a model of as many parameters.",
     "Whether they are better than four heads in a model of as many parameters, these runs leave open."},
    {"000.8", 1, "Sixteen heads that share the size of the row were worse than four that do.",
     "Sixteen heads that share the size of the row were better than four that do.",
     "Whether sixteen heads that share the size of the row are worse than four that do, these runs leave "
     "open."}};

constexpr Sentence kFlatRows = {
    "001.3", 3,
    "A penalty on |A_i * A_j| made models better. It is on each head's own sharp rows, too, so no gain by "
    "difference is shown.",
    "A penalty on |A_i * A_j| made models worse.",
    "These runs do not show that a penalty on |A_i * A_j| makes models better."};

/// Of the sentence before it.
constexpr Sentence changed_by_less_than_the_margin(size_t clause) {
  return {"001.3", clause, "It changed their loss by less than 0.05 nats a token.",
          "It changed their loss by more than 0.05 nats a token.",
          "It may change their loss by more than 0.05 nats a token."};
}

constexpr Sentence kDiversity[] = {
    {"001.2", 1, "Random numbers do it: heads whose matrices differ get different gradients."},
    {"001.2", 0, "Heads that are equal to the last bit, their part of W^O included, get equal gradients."},
    {"001.2, trained", 0, "Trained so, they stayed equal to the last bit.",
     "Trained so, they parted all the same in some runs: rounding told them apart.", ""},
    {"001.1", 1,
     "In training the rows of heads that start random diverged more, as rows that become sharper do.",
     "In training the rows of heads that start random diverged less.",
     "Whether training makes the rows of random heads diverge more, these runs leave open."},
    {"001.1", 3, "By A_i A_j, the likeness of their rows, they moved apart.",
     "By A_i A_j, the likeness of their rows, they moved together.",
     "Whether they move apart by A_i A_j, the likeness of their rows, these runs leave open."},
    kFlatRows,
    {"001.6", 0, "The embedding is not cut into segments to make heads differ: every head reads all of it."},
    {"001.4, trained", 0,
     "Heads that read contiguous segments of it were worse than heads that project the whole.",
     "Heads that read contiguous segments of it were better than heads that project the whole.",
     "Whether heads that read contiguous segments of it are worse, in models of the canonical size, these "
     "runs leave open."}};

constexpr Sentence kDiversityAlone[] = {
    {"001.3", 1, "A penalty on similar values made models better.",
     "A penalty on similar values made models worse.",
     "These runs do not show that a penalty on similar values makes models better."},
    changed_by_less_than_the_margin(6),
    kFlatRows,
    changed_by_less_than_the_margin(7),
    {"001.3", 5, "A penalty on similar outputs made models better.",
     "A penalty on similar outputs made models worse.",
     "These runs do not show that a penalty on similar outputs makes models better."},
    changed_by_less_than_the_margin(8),
    {"001.4, trained", 0,
     "Heads that read contiguous segments of the embedding were worse than heads that project the whole.",
     "Heads that read contiguous segments of the embedding were better than heads that project the whole.",
     "Whether heads that read contiguous segments of the embedding are worse, these runs leave open."}};

constexpr Sentence kMatrices[] = {
    {"002.1", 0, "One matrix W_i = W_i^Q W_i^K^T computes the same scores."},
    {"002.3", 0,
     "Two thin matrices hold it in 2 d d_k numbers instead of d^2: 65,536 instead of 262,144 a head at d = "
     "512 and d_k = 64."},
    {"002.2", 0, "What they give up is rank: a head's W_i has rank d_k at most."},
    {"002.2", 2, "Trained heads did not need all of that: half of it was as good.",
     "Trained heads needed it: half of it was not enough.",
     "Whether trained heads need all of that, these runs leave open."},
    {"002.4", 0, "At equal parameters, models with two factors were as good as models with one matrix.",
     "At equal parameters, models with two factors and models with one matrix differed by more than the "
     "margin.",
     "Whether two factors are as good as one matrix at equal parameters, these runs leave open."}};

constexpr Sentence kMatricesAlone[] = {
    {"002.6, loaded", 1,
     "The loaded model has one matrix for the queries of all heads. A head's own is d/h columns of it, and "
     "there is no W^Q before it."},
    {"002.9", 0,
     "Heads need not each have W^Q and W^K of their own: four that shared both at half the usual size, each "
     "with a mixing vector, were as good as four with their own.",
     "Four heads that share W^Q and W^K of half the usual size, each with a mixing vector, differed from "
     "four with their own by more than the margin.",
     "Whether four heads that share W^Q and W^K of half the usual size are as good as four with their own, "
     "these runs leave open."},
    {"002.9", 2, "When little is left of W^Q and W^K, sharing it was better than dividing it.",
     "When little is left of W^Q and W^K, sharing it was worse than dividing it.",
     "Whether sharing the little that is left of W^Q and W^K is better than dividing it, these runs leave "
     "open."}};

constexpr Sentence kUnique[] = {
    {"003.2", 0,
     "Not that q, k and v are broken into smaller pieces: heads of full size get different gradients, too, "
     "when they start different."},
    {"003.1", 0, "All heads see the same input. Each has weights of its own, from a random start."},
    {"003.2", 1, "Heads that start equal get equal gradients, however small they are."},
    {"003.4", 2,
     "In models made to read by position as well, one head finds a verb's direct object more often than any "
     "fixed offset does; how many relations have no such head, 003.4 (j) counts.",
     "In models made to read by position as well, no head finds a verb's direct object as often as a fixed "
     "offset does.",
     "Whether one head finds a verb's direct object more often than a fixed offset does, these runs leave "
     "open."},
    {"003.6, trained", 0, "Heads that were kept equal made a worse model.",
     "Heads that were kept equal made a better model.",
     "Whether heads that are kept equal make a worse model, these runs leave open."}};

constexpr Sentence kProduct[] = {
    {"004.1", 0,
     "One product is how the heads are computed, not what they are: stacking their matrices side by side "
     "changes no number."},
    {"004.6", 0,
     "After that product every head takes a softmax of its own: there are h matrices of T x T weights."},
    {"004.3", 0, "A single head with the same numbers has one such matrix, and computes something else."}};

constexpr Sentence kNarrowerKeys = {
    "table 3 (B)", 0, "Queries and keys of a quarter of the size made a worse model, as in the paper.",
    "Queries and keys of a quarter of the size made a better model, other than in the paper.",
    "Whether queries and keys of a quarter of the size make a worse model, these runs leave open."};
constexpr Sentence kTable3Alone[] = {kNarrowerKeys};

constexpr Sentence kTable3[] = {
    {"table 3", 0,
     "What changes the loss here changes the paper's perplexity the same way, more often than chance would.",
     "What changes the loss here does not change the paper's perplexity the same way.",
     "Whether what changes the loss here changes the paper's perplexity the same way, these runs leave "
     "open."},
    {"table 3", 1,
     "What changes our BLEU changes the paper's BLEU the same way, more often than chance would.",
     "What changes our BLEU does not change the paper's BLEU the same way.",
     "Whether what changes our BLEU changes the paper's BLEU the same way, these runs leave open."},
    kNarrowerKeys};

const std::array kStudies = {
    Study{"split-or-project", "Is the input split over the heads, or duplicated for each?", kSplit,
          kSplitAlone, "000.7", split_or_project::algebra(), split_or_project::trained(),
          "On real text they were worse by 0.187 ± 0.013 nats a token "
          "(docs/answers/paper/split-or-project.md)."},
    Study{"diversity", "How are heads made different at the start, and what keeps them different?",
          kDiversity, kDiversityAlone, "001.2, trained", diversity::algebra(), diversity::trained(),
          "On real text they were worse by 0.179 ± 0.041 nats a token (docs/answers/paper/diversity.md)."},
    Study{"two-matrices-or-one", "Why W^Q and W^K, and not the one matrix that their product is?", kMatrices,
          kMatricesAlone, "002.2", two_matrices_or_one::algebra(), two_matrices_or_one::trained()},
    Study{"unique-heads",
          "What makes the learning of each head unique?",
          kUnique,
          {},
          "003.4",
          unique_heads::algebra(),
          unique_heads::trained()},
    Study{"one-product",
          "Why is it called multi-head when one big product computes all heads?",
          kProduct,
          {},
          "004.2, trained",
          one_product::algebra(),
          one_product::trained()},
    Study{"table3",
          "What are heads, their size, depth and width worth? (Table 3 of the paper, in miniature)",
          kTable3,
          kTable3Alone,
          "table 3",
          {},
          table3::trained()}};

}  // namespace

std::span<const Study> studies() {
  return kStudies;
}

}  // namespace mh
