#include "multihead/heads/sites/site_pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "multihead/nn/head_name.h"

namespace mh {
namespace {

TEST(SitePattern, FitsTheSitesWhoseNamesTheTextFits) {
  int found = 0;
  for (const char* text : {"",
                           "*",
                           "**",
                           ".",
                           "*.",
                           "*5",
                           "*.5",
                           "*.1*",
                           "encoder.3.input",
                           "*.input",
                           "*input",
                           "*put",
                           "*t",
                           "encoder.3.self_attention.weights.5",
                           "*.weights.*",
                           "*.weights.5",
                           "*weights.15",
                           "*.weights.05",
                           "*s.5",
                           "encoder.*.heads",
                           "*.heads",
                           "*heads",
                           "*_attention.heads",
                           "encoder.states",
                           "*coder.states",
                           "decoder.logits",
                           "encoder.1*",
                           "*.feed_forward.*",
                           "*hidden",
                           "feed_forward.hidden",
                           "*.contributions.*",
                           "*.scores.1",
                           "weights",
                           "*.gates",
                           "encoder.3.self_attention.gates",
                           "encoder.3.self_attention.weights",
                           "encoder.3.self_attention.weights.",
                           "*projected_queries",
                           "*queries"}) {
    const SitePattern pattern(text);
    EXPECT_EQ(pattern.text(), text);
    for (const std::string owner :
         {"encoder", "decoder", "encoder.3", "decoder.11", "encoder.3.self_attention",
          "decoder.1.cross_attention", "sentence", "5",
          "a layer whose name has more characters than anybody would give to one, so that its sites' do not "
          "fit"}) {
      for (int part = 0; part <= static_cast<int>(kLastSitePart); ++part) {
        for (const int head : {0, 1, 5, 15, 105}) {
          const Site site{owner, static_cast<SitePart>(part), head};
          SiteName name(site);
          const bool fits_text = fits(site.name(), text);
          EXPECT_EQ(pattern.fits(name), fits_text) << site.name() << " and " << text;
          EXPECT_EQ(name.text(), site.name());
          found += fits_text ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(SitePattern, KnowsTheParts) {
  EXPECT_EQ(SitePattern("*.weights.*").parts(), 2 * bit_of(kLastSitePart) - 1) << "any";
  EXPECT_EQ(SitePattern("*.heads").parts(), bit_of(SitePart::kHeads));
  EXPECT_EQ(SitePattern("*.weights.2").parts(), bit_of(SitePart::kWeights));
  EXPECT_EQ(SitePattern("encoder.0.input").parts(),
            bit_of(SitePart::kInput) | bit_of(SitePart::kAttentionInput));
  EXPECT_EQ(SitePattern("encoder").parts(), SiteParts{0});
}

}  // namespace
}  // namespace mh
