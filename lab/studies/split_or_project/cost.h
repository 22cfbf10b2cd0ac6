// 000.3: what heads cost.
#pragma once

#include "lab/studies/study.h"

namespace mh::split_or_project {

Claim cost(const AlgebraCase& a);

}  // namespace mh::split_or_project
