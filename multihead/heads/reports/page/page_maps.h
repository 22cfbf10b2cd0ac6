// The maps of all heads on one text for a page: collected while the model reads the text, attention after attention, so that no
// more than one attention's weights are there in full.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/heads/reports/page/page_numbers.h"
#include "multihead/models/model.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {

/// What a page keeps of the weights of an attention.
enum class PageCoding {
  kRoots,             // square roots in 8 bits: a = (byte / 255)^2, with an error of at most 1 / 255
  kRootsAndProducts,  // and the queries and keys that they come from
  kProducts,          // queries and keys alone, which take less from about 200 tokens on
};
/// Most that a weight of a page differs from the model's.
inline constexpr float kLargestPageError = 0.004f;

/// Of all heads of one attention on one text; docs/file-formats.md, Maps.
struct PageMaps {
  int64_t queries = 0, keys = 0;
  std::optional<PageNumbers::Block> roots = std::nullopt;
  std::optional<PageNumbers::Block> halves =
      std::nullopt;  // float16, where weights may be below 0 or above 1
  struct Products {
    PageNumbers::Block q = {}, k = {};
    float scale = 0;
    std::optional<float> soft_cap = std::nullopt;
    std::optional<PageNumbers::Block> bias = std::nullopt;
    int64_t window = 0;
  };
  std::optional<Products> products = std::nullopt;
  std::optional<PageNumbers::Block> value_lengths = std::nullopt;
};

/// Called at the sites of one forward pass over one text.
class PageMapCollector final : public Sites {
 public:
  /// REQUIRES: both outlive this.
  PageMapCollector(const Model& model, PageNumbers& numbers) : model_(model), numbers_(numbers) {}

  /// Before a text. Products are kept where they give the weights back; where they do not (differential and talking heads,
  /// biases of queries, heads that were changed), roots are.
  void begin(PageCoding coding) { coding_ = coding, maps_.clear(); }
  /// By the names of attentions.
  const std::map<std::string, PageMaps, std::less<>>& maps() const { return maps_; }

  bool wants(const Site& site) const override;
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;

 private:
  struct Attention {
    ConstMatrixView queries = {}, keys = {}, values = {};
    int64_t key_count = 0;
    std::vector<std::vector<float>> scores = {}, weights = {};  // of each head, [queries, keys]
    std::vector<Mask::Range> visible = {};                      // of each query
  };
  /// What the lengths of v W^O need of an attention, the same for all texts: |v W|^2 = v (W W^T) v^T.
  struct Outputs {
    std::vector<DoubleMatrix> squares = {};  // of each head, [d_value, d_value]; empty: it has no such matrix
    int64_t value_heads = 0;
  };
  const Outputs& outputs(std::string_view name);
  void finish(std::string_view name);
  std::optional<PageMaps::Products> products(std::string_view name, const Attention& seen);
  std::optional<PageNumbers::Block> value_lengths(std::string_view name, const Attention& seen);
  void keep_weights(const Attention& seen, PageMaps& maps);

  const Model& model_;
  PageNumbers& numbers_;
  PageCoding coding_ = PageCoding::kRoots;
  Attention seen_ = {};
  std::map<std::string, Outputs, std::less<>> outputs_ = {};
  std::map<std::string, PageMaps, std::less<>> maps_ = {};
};

}  // namespace mh
