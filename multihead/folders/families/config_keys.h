// Keys that the config.json of every family may have: those of Hugging Face's PretrainedConfig, and what older versions and
// other programs write.
#pragma once

#include "multihead/folders/known_keys.h"

namespace mh {

KnownKeys keys_of_every_config();

}  // namespace mh
