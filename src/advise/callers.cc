// Finds callers by the return address. Behind a language's binding it unwinds the stack. Behind
// mpi4py it asks the Python interpreter, holding the interpreter's lock.
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

// Cached facts about a return address.
struct Known {
  std::uintptr_t address;
  // The distance in bytes from this return address on the stack up to the function's own one; 0 if
  // it is not known. It is constant unless the function's frame has a variable size.
  std::uint32_t up;
  std::uint16_t seen;  // number of times in a row that unwinding found `up` unchanged
  Binding binding;
  bool follows_call;
  bool own;   // the address lies in the program's own executable
  bool last;  // the function is the outermost on the stack
};
constexpr std::uint16_t kSure = 3, kVaries = UINT16_MAX;
constexpr std::uintptr_t kLargest = 1 << 20;  // largest plausible frame, in bytes
// The cache is indexed by return address. Each thread has its own, so that no lock is needed.
constexpr std::size_t kKnown = 1024;
constinit thread_local Known known[kKnown] __attribute__((tls_model("initial-exec"))) = {};

// Returns whether the instruction before this address is a call in the code of `file`; otherwise
// the address is not a return address.
bool follows_call(std::uintptr_t address, const char* file) {
#if defined(__x86_64__)
  constexpr int kLongestCall = 7;  // longest encoding of a call instruction, in bytes
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
  // The file is found by place_of(), since dladdr would also search all symbols of the file.
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

// Collects return addresses from the innermost outwards until no more are needed.
class Way {
 public:
  // all: whether callers of a wrapper are collected as well as the wrapper itself.
  explicit Way(bool all) : all_(all) {}

  // Adds an address if it belongs to the result. Returns whether the next address is needed.
  bool add(const Known& entry) {
    if (caller.address == 0 && entry.binding != Binding::none) return ++bindings_ < kMostBindings;
    caller.way = (caller.way ^ entry.address) * UINT64_C(0x9e3779b97f4a7c15);
    if (caller.address == 0) {
      caller.address = entry.address;
      caller.own = entry.own;
    } else if (own_ > 0 && !entry.own) {
      return false;  // this frame lies outside the program's own functions
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

// Unwinds frame by frame by each file's unwind tables, which takes microseconds.
Caller by_unwinding(bool all) {
  struct Walk {
    Way way;
    std::uintptr_t address, place;
  } walk{Way(all), 0, 0};
  const auto visit = [](_Unwind_Context* frame, void* data) {
    auto& so_far = *static_cast<Walk*>(data);
    const std::uintptr_t address = _Unwind_GetIP(frame);
    if (!address) return _URC_NO_REASON;  // the end of the stack is reached
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

// Walks up the stack by cached frame sizes. Returns true if that succeeded; false if a size is
// unknown, or if a word that should be a return address is not one.
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

// Finds the caller by cached frame sizes, and at intervals by unwinding, which detects frames of
// variable size.
Caller way_to(Called called, bool all) {
  constexpr std::uint32_t kCheck = 64;
  static constinit thread_local std::uint32_t calls = 0;
  Way way(all);
  if (++calls % kCheck && by_what_is_known(called, way)) return way.caller;
  Caller found = by_unwinding(all);
  if (!found.address) found.address = reinterpret_cast<std::uintptr_t>(called.address);
  return found;
}

// The functions of Python's C interface (3.9 and later) that are used, taken from the interpreter
// in this process.
struct Python {
  int (*IsInitialized)();
  int (*GILState_Ensure)();
  void (*GILState_Release)(int);
  void* (*GetFrame)();      // borrowed reference
  void* (*GetBack)(void*);  // new reference; nullptr if there is no outer frame
  void* (*GetCode)(void*);  // new reference
  int (*GetLine)(void*);
  void* (*GetAttr)(void*, const char*);  // new reference
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

// A cached description of a line in a function of the program, which takes thousands of
// instructions to find. It holds a reference to the function's code, so that the code's address is
// not reused. Each thread has its own cache, so that no lock is needed. It is allocated at first
// use to keep thread-local storage small, and never released.
struct Written {
  void* code;
  int line;
  bool own;  // belongs to the program, not to a library
  // Number of the stack walk that used the entry last and may still point into it.
  std::uint32_t walk;
  char place[kWhere];
  char file[kPath];
};
constexpr std::size_t kWritten = 64;
constinit thread_local Written* written __attribute__((tls_model("initial-exec"))) = nullptr;

// Returns whether the path belongs to Python or to an installed package.
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
  // An error, such as that of a path which is not UTF-8, is cleared, since the program must not see
  // it.
  if (!path || !function) p.ForgetError();
  // Length of a stored path; of a longer one only the end is kept.
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

// Returns the cached description of the line. Takes over the caller's reference to `code`.
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

// Adds the Python functions on the stack to the caller, from the innermost outwards until one
// belongs to no library, as class Way does; only the innermost one if not `all`. Every frame but
// the first is an owned reference.
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
  if (!p.ready || !p.IsInitialized()) return caller;  // mpi4py finalises MPI after the interpreter
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
