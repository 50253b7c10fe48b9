// What streams of the stand-in carry.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "standin.h"

namespace standin {

using Task = std::function<void()>;

// Into the stream, or into the graph that it is captured into.
int enqueue(void* stream, Task task);

extern thread_local int device_here;  // whose work this thread does

struct Range {
  Address begin;
  std::size_t bytes;
};

// What a graph copies may have been freed since it was captured: that is an error of the device.
bool may_run(const std::vector<Range>& ranges);
// The same of a kernel, which reaches its own device's memory alone.
bool kernel_may_run(const std::vector<Range>& ranges);

}  // namespace standin
