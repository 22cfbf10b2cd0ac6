#include "multihead/base/embed.h"
#include "multihead/check/check_request.h"

// MULTIHEAD_ORACLE is share/check/site_oracle.py of the sources.
MH_EMBED(mh_site_oracle, MULTIHEAD_ORACLE);

namespace mh {

std::string_view site_oracle() {
  return {mh_site_oracle, static_cast<size_t>(mh_site_oracle_end - mh_site_oracle)};
}

}  // namespace mh
