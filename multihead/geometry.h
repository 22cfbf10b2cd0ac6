// Describes heads of your own. A HeadGeometry says what each head reads of a row, how scores are computed, which
// heads share keys and values, which weights average the values, and how projections are initialised;
// docs/geometries.md lists all kinds of heads.
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
