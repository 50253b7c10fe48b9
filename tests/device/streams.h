// What the stand-in's streams execute: tasks, and the checks before them.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "standin.h"

namespace standin {

using Task = std::function<void()>;

// Enqueues the task in the stream, or adds it to the graph into which the stream is being captured.
int enqueue(void* stream, Task task);

// Waits for the stream's work before a copy from or to pageable memory. Returns an error, which
// ends the capture, if the stream is being captured.
int wait_before_copy(void* stream);

extern thread_local int device_here;  // number of the device whose work this thread does

struct Range {
  Address begin;
  std::size_t bytes;
};

// Returns whether all ranges are allocated. What a graph copies may have been freed since the
// capture, which is an error of the device.
bool may_run(const std::vector<Range>& ranges);
// Returns whether a kernel may access all ranges: they must be allocated and accessible from its
// own device.
bool kernel_may_run(const std::vector<Range>& ranges);

}  // namespace standin
