// Heads of your own description. A HeadGeometry says what each head reads of a row, how scores are made, who shares
// keys and values, what weighs the values, and how the projections start; docs/geometries.md shows each way with its
// formula and source.
//
//   mh::HeadGeometry heads{.heads = 6, .d_key = 5, .key_heads = 2};            // grouped-query attention
//   heads = mh::named_geometry(R"({"scores": "merged", "d_value": 8})", 6, 24);  // or by name, or as JSON
//   mh::Ledger costs = mh::ledger(heads, 24, 100, 100);                        // parameters, operations, bytes
//
// layer.h makes a layer of it; examples/own_heads.cpp is a whole program.
#pragma once

#include "multihead/models/named_geometry.h"
#include "multihead/nn/head_columns.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/ledger.h"
