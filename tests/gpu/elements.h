// Elements of several types and the tests' own operations on them. These are independent of Weft's
// operators, so that Weft's results can be compared with theirs.
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

// The types that the functions below support.
inline constexpr weft_gpu_type kElementTypes[] = {WEFT_GPU_INT8,   WEFT_GPU_INT32, WEFT_GPU_INT64,
                                                  WEFT_GPU_UINT16, WEFT_GPU_FLOAT, WEFT_GPU_DOUBLE};

// Converts the numbers to elements of the type. Numbers that the type cannot hold wrap.
Bytes elements_of(weft_gpu_type type, const Numbers& numbers);

// add_elements: to = to + from. The next function: data = data * factor + addend. Integers wrap.
void add_elements(weft_gpu_type type, const std::byte* from, std::byte* to, std::size_t count);
void affine_elements(weft_gpu_type type, std::byte* data, std::size_t count, Number factor,
                     Number addend);

// Returns where the elements first differ; "" if they are equal. All NaN count as equal.
std::string first_difference(weft_gpu_type type, const Bytes& found, const Bytes& right);

}  // namespace weft::gpu
