// Finds the functions that call MPI by their return addresses. If the call comes from a language
// binding, the stack is unwound. If it comes from mpi4py, the Python interpreter is asked, while
// its lock is held.
#include "advise/callers.h"

#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "advise/record.h"

namespace weft::advise {
namespace {

// Cached facts about a return address of the program.
struct Known {
  std::uintptr_t address;
  // The distance in bytes on the stack from this return address to the next outer return address; 0
  // if unknown. It is constant unless the function between them has a stack frame of variable size.
  std::uint32_t up;
  std::uint16_t seen;  // how often in a row unwinding has found the same `up`
  Binding binding;
  bool follows_call;
  bool own;   // true if the address lies in the executable itself, not in a library
  bool last;  // true if the function is the outermost one on the stack
};
constexpr std::uint16_t kSure = 3, kVaries = UINT16_MAX;
// The largest plausible size of a stack frame, in bytes.
constexpr std::uintptr_t kLargest = 1 << 20;
// The number of entries of the cache. Each thread has a cache of its own, so that no lock is
// needed.
constexpr std::size_t kKnown = 1024;
constinit thread_local Known known[kKnown] __attribute__((tls_model("initial-exec"))) = {};

// Returns whether the instruction before this address is a call instruction in the code of `file`.
// If it is not, the address is no return address.
bool follows_call(std::uintptr_t address, const char* file) {
#if defined(__x86_64__)
  constexpr int kLongestCall = 7;  // length of the longest call instruction, in bytes
  const bool in_file = std::strcmp(file, "?") != 0;
  if (!in_file || std::strcmp(place_of(address - kLongestCall).file, file) != 0) return false;
  const auto* const code = reinterpret_cast<const unsigned char*>(address);
  constexpr unsigned char kCall = 0xe8, kCallByPlace = 0xff, kKind = 0x38, kIsCall = 0x10;
  if (code[-5] == kCall) return true;
  for (int bytes = 2; bytes <= kLongestCall; ++bytes)
    if (code[-bytes] == kCallByPlace && (code[1 - bytes] & kKind) == kIsCall) return true;
#else
  (void)address, (void)file;
#endif
  return false;
}

static_assert(kKnown == std::size_t{1} << (64 - 54));

Known& known_at(std::uintptr_t address) {
  Known& entry = known[address * UINT64_C(0x9e3779b97f4a7c15) >> 54];
  if (entry.address == address) return entry;
  // place_of() is used instead of dladdr(), which would also search all symbols of the file.
  const Place place = place_of(address - 1);
  entry = {.address = address,
           .up = 0,
           .seen = 0,
           .binding = binding_of(place.file),
           .follows_call = follows_call(address, place.file),
           .own = place.file[0] == '\0',
           .last = false};
  return entry;
}

Binding binding_at(std::uintptr_t address) {
  return known_at(address).binding;
}

void learn(std::uintptr_t address, std::uintptr_t up) {
  Known& entry = known_at(address);
  if (entry.seen == kVaries) return;
  if (up == 0 || up > kLargest || up % sizeof(void*) != 0 || (entry.up && entry.up != up)) {
    entry.seen = kVaries;
    return;
  }
  entry.up = static_cast<std::uint32_t>(up);
  entry.seen = std::min<std::uint16_t>(kSure, static_cast<std::uint16_t>(entry.seen + 1));
}

// Collects return addresses of the stack, from the innermost function outwards. add() tells when no
// more are needed.
class Way {
 public:
  // all: true to collect the whole call path; false to collect only the function that made the MPI
  // call.
  explicit Way(bool all) : all_(all) {}

  // Adds a return address if it belongs to the result. Returns whether the next one is needed.
  bool add(const Known& entry) {
    if (caller.address == 0 && entry.binding != Binding::none) return ++bindings_ < kMostBindings;
    caller.way = (caller.way ^ entry.address) * UINT64_C(0x9e3779b97f4a7c15);
    if (caller.address == 0) {
      caller.address = entry.address;
      caller.own = entry.own;
    } else if (own_ > 0 && !entry.own) {
      return false;  // this frame is beyond the program's own functions
    } else if (caller.outers < (entry.own ? kOuter : kOuter - kOwn + 1)) {
      caller.outer[caller.outers++] = {.address = entry.address, .own = entry.own};
    }
    own_ += entry.own;
    return all_ && own_ < kOwn && ++frames_ < kMost;
  }

  Caller caller;

 private:
  static constexpr int kMostBindings = 8, kOwn = 4, kMost = 32;
  const bool all_;
  int bindings_ = 0, own_ = 0, frames_ = 0;
};

// Finds the call path by unwinding the stack frame by frame with the unwind tables. This takes
// microseconds.
Caller by_unwinding(bool all) {
  struct Walk {
    Way way;
    std::uintptr_t address, place;
  } walk{Way(all), 0, 0};
  const auto visit = [](_Unwind_Context* frame, void* data) {
    auto& so_far = *static_cast<Walk*>(data);
    const std::uintptr_t address = _Unwind_GetIP(frame);
    if (!address) return _URC_NO_REASON;  // the end of the stack
    const std::uintptr_t place = _Unwind_GetCFA(frame);
    if (so_far.address) learn(so_far.address, place - so_far.place);
    so_far.address = address;
    so_far.place = place;
    return so_far.way.add(known_at(address)) ? _URC_NO_REASON : _URC_END_OF_STACK;
  };
  if (_Unwind_Backtrace(visit, &walk) == _URC_END_OF_STACK && walk.address)
    known_at(walk.address).last = true;
  return walk.way.caller;
}

// Finds the call path by the cached sizes of stack frames. Returns false if a size is unknown, or
// if a word on the stack that should be a return address is not one.
bool by_what_is_known(Called called, Way& way) {
#if defined(__x86_64__)
  auto address = reinterpret_cast<std::uintptr_t>(called.address);
  auto place = reinterpret_cast<std::uintptr_t>(called.frame_end) - sizeof address;
  for (;;) {
    const Known& entry = known_at(address);
    if (!entry.follows_call) return false;
    if (!way.add(entry) || entry.last) return true;
    if (entry.seen != kSure) return false;
    place += entry.up;
    std::memcpy(&address, reinterpret_cast<const void*>(place), sizeof address);
  }
#else
  return false;
#endif
}

// Finds the call path by cached sizes of stack frames. Every 64th time, and if that fails, it
// unwinds the stack instead, which also detects frames of variable size.
Caller way_to(Called called, bool all) {
  constexpr std::uint32_t kCheck = 64;
  static constinit thread_local std::uint32_t calls = 0;
  Way way(all);
  if (++calls % kCheck && by_what_is_known(called, way)) return way.caller;
  Caller found = by_unwinding(all);
  if (!found.address) found.address = reinterpret_cast<std::uintptr_t>(called.address);
  return found;
}

// The functions of Python's C interface (3.9 and later) that are used here. They are looked up in
// the interpreter that runs in this process.
struct Python {
  int (*IsInitialized)();
  int (*GILState_Ensure)();
  void (*GILState_Release)(int);
  void* (*GetFrame)();      // returns a borrowed reference
  void* (*GetBack)(void*);  // returns a new reference; nullptr if there is no outer frame
  void* (*GetCode)(void*);  // returns a new reference
  int (*GetLine)(void*);
  void* (*GetAttr)(void*, const char*);  // returns a new reference
  const char* (*Utf8)(void*);
  void (*Release)(void*);
  void (*ForgetError)();
  bool ready;
};

const Python& python() {
  static const Python calls = [] {
    Python p{};
    const auto bind = [](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(RTLD_DEFAULT, name));
      return slot != nullptr;
    };
    p.ready = bind(p.IsInitialized, "Py_IsInitialized") &&
              bind(p.GILState_Ensure, "PyGILState_Ensure") &&
              bind(p.GILState_Release, "PyGILState_Release") &&
              bind(p.GetFrame, "PyEval_GetFrame") && bind(p.GetBack, "PyFrame_GetBack") &&
              bind(p.GetCode, "PyFrame_GetCode") && bind(p.GetLine, "PyFrame_GetLineNumber") &&
              bind(p.GetAttr, "PyObject_GetAttrString") && bind(p.Utf8, "PyUnicode_AsUTF8") &&
              bind(p.Release, "Py_DecRef") && bind(p.ForgetError, "PyErr_Clear");
    return p;
  }();
  return calls;
}

// A cached description of a line of Python code, which takes thousands of instructions to find. It
// holds a reference to the code object, so that the object's address is not reused. Each thread has
// a cache of its own, so that no lock is needed. The cache is allocated at first use, to keep
// thread-local storage small, and is never released.
struct Written {
  void* code;
  int line;
  bool own;  // true if the code belongs to the program, not to a library
  // The number of the walk over the stack that used this entry last. That walk may still point to
  // the entry.
  std::uint32_t walk;
  char place[kWhere];
  char file[kPath];
};
constexpr std::size_t kWritten = 64;
constinit thread_local Written* written __attribute__((tls_model("initial-exec"))) = nullptr;

// Returns whether the path belongs to Python itself or to an installed package.
bool of_library(const char* path) {
  for (const char* part : {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen"})
    if (std::strstr(path, part)) return true;
  return false;
}

void write_place(const Python& p, void* code, Written& entry) {
  void* const file = p.GetAttr(code, "co_filename");
  void* const name = p.GetAttr(code, "co_name");
  const char* const path = file ? p.Utf8(file) : nullptr;
  const char* const function = name ? p.Utf8(name) : nullptr;
  // The Python error (for instance, if the path is not valid UTF-8) is cleared, because the program
  // must not see it.
  if (!path || !function) p.ForgetError();
  // The length of the stored path. Of a longer path only the end is kept.
  constexpr std::size_t kLongest = 430;
  const std::size_t length = path ? std::strlen(path) : 0;
  const auto end_of = [&](std::size_t most) {
    return length > most ? path + length - most : length ? path : "?";
  };
  std::snprintf(entry.place, kWhere, "%s:%d:%.64s", end_of(kLongest), entry.line,
                function ? function : "?");
  std::snprintf(entry.file, kPath, "%s", end_of(kPath - 1));
  entry.own = !of_library(entry.file);
  for (void* object : {name, file})
    if (object) p.Release(object);
}

// Returns the cached description of a line, after adding it if necessary. It takes over one
// reference to `code`.
const Written& place_in(const Python& p, void* code, int line, std::uint32_t walk) {
  constexpr std::uintptr_t kAligned = 16;
  const std::uintptr_t key =
      reinterpret_cast<std::uintptr_t>(code) / kAligned + static_cast<std::uintptr_t>(line);
  std::size_t at = key % kWritten;
  const auto is_it = [&] { return written[at].code == code && written[at].line == line; };
  while (!is_it() && written[at].walk == walk) at = (at + 1) % kWritten;
  Written& entry = written[at];
  entry.walk = walk;
  if (is_it()) {
    p.Release(code);
    return entry;
  }
  if (entry.code) p.Release(entry.code);
  entry.code = code;
  entry.line = line;
  write_place(p, code, entry);
  return entry;
}

// Adds the Python functions on the stack to `caller`, from the innermost outwards until one belongs
// to no library, as class Way does; only the innermost one if not `all`. Every frame but the first
// is an owned reference.
void add_python_frames(const Python& p, Caller& caller, bool all) {
  constexpr int kOwn = 4, kMost = 24;
  static_assert(kMost < kWritten);
  static constinit thread_local std::uint32_t walk = 0;
  ++walk;
  int own = 0;
  void* frame = p.GetFrame();
  for (int frames = 0; frame && frames < kMost; ++frames) {
    void* const code = p.GetCode(frame);
    const Written& here = place_in(p, code, p.GetLine(frame), walk);
    const bool more = frames == 0 || own == 0 || here.own;
    if (frames == 0) {
      caller.where = here.place;
      caller.own = here.own;
    } else if (more && caller.outers < (here.own ? kOuter : kOuter - kOwn + 1)) {
      caller.outer[caller.outers++] = {.file = here.file, .line = here.line, .own = here.own};
    }
    if (more)
      caller.way = (caller.way ^ reinterpret_cast<std::uintptr_t>(here.code)) * 131 +
                   static_cast<std::uint64_t>(here.line);
    own += here.own;
    void* const back = all && more && own < kOwn ? p.GetBack(frame) : nullptr;
    if (frames > 0) p.Release(frame);
    frame = back;
  }
  if (frame) p.Release(frame);
}

Caller python_caller(std::uintptr_t address, bool all) {
  Caller caller{.address = address, .binding = Binding::python};
  const Python& p = python();
  // mpi4py may finalise MPI after the Python interpreter has ended.
  if (!p.ready || !p.IsInitialized()) return caller;
  if (!written) written = static_cast<Written*>(std::calloc(kWritten, sizeof(Written)));
  if (!written) return caller;
  const int state = p.GILState_Ensure();
  add_python_frames(p, caller, all);
  p.GILState_Release(state);
  return caller;
}

}  // namespace

Place toucher(std::uintptr_t address, std::uintptr_t returns_to) {
  const Place place = place_of(address - 1);
  const char* const slash = std::strrchr(place.file, '/');
  const bool in_c_library = std::strncmp(slash ? slash + 1 : place.file, "libc.so", 7) == 0;
  if (!in_c_library) return place_of(address);
  const Place caller = place_of(returns_to);
  return follows_call(returns_to, caller.file) ? caller : place_of(address);
}

std::uintptr_t caller_address(Called called) {
  const auto address = reinterpret_cast<std::uintptr_t>(called.address);
  const Binding binding = binding_at(address);
  if (binding == Binding::python) return 0;
  return binding == Binding::fortran ? way_to(called, false).address : address;
}

Caller find_caller(Called called) {
  const auto address = reinterpret_cast<std::uintptr_t>(called.address);
  const Binding binding = binding_at(address);
  if (binding == Binding::python) return python_caller(address, true);
  Caller found = way_to(called, true);
  found.binding = binding;
  return found;
}

Caller find_line(Called called) {
  Caller found;
  found.address = caller_address(called);
  if (found.address) return found;
  return python_caller(reinterpret_cast<std::uintptr_t>(called.address), false);
}

}  // namespace weft::advise
