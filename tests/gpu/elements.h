// Elements of several types and what the tests compute with them: apart from Weft's own operators,
// so that these can be held against it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/operators.h"
#include "weft_gpu.h"

namespace weft::gpu {

using Number = std::int64_t;
using Numbers = std::vector<Number>;
using Bytes = std::vector<std::byte>;

// The types that these functions know.
inline constexpr weft_gpu_type kElementTypes[] = {WEFT_GPU_INT8,   WEFT_GPU_INT32, WEFT_GPU_INT64,
                                                  WEFT_GPU_UINT16, WEFT_GPU_FLOAT, WEFT_GPU_DOUBLE};

// As many as there are numbers; what a type cannot hold wraps.
Bytes elements_of(weft_gpu_type type, const Numbers& numbers);

// to = to + from, and data = data * factor + addend. Integers wrap.
void add_elements(weft_gpu_type type, const std::byte* from, std::byte* to, std::size_t count);
void affine_elements(weft_gpu_type type, std::byte* data, std::size_t count, Number factor,
                     Number addend);

// Empty, or where they differ first. What is no number is equal to what is none.
std::string first_difference(weft_gpu_type type, const Bytes& found, const Bytes& right);

}  // namespace weft::gpu
