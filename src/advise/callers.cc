// The return address tells most; behind a language's binding the stack is unwound, and behind
// mpi4py's the interpreter is asked, which holds its lock for that moment.
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

// What is known of an address that a function returns to.
struct Known {
  std::uintptr_t address;
  // The function's own return address lies so far above the place of this one, in bytes; 0: not
  // known. It is the same at each call but in a function whose frame has no fixed size.
  std::uint16_t up;
  std::uint16_t seen;  // so often in a row by unwinding
  Binding binding;
  bool follows_call;
};
constexpr std::uint16_t kSure = 3, kVaries = UINT16_MAX;
constexpr std::uintptr_t kLargest = 1024;  // bytes of a binding's frame
// By return address; a thread's own, so that no lock is needed.
constexpr std::size_t kKnown = 256;
constinit thread_local Known known[kKnown] __attribute__((tls_model("initial-exec"))) = {};

// Whether a call comes right before this address in a file's code: anything else is no address that
// a function returns to.
bool follows_call(std::uintptr_t address, const char* file) {
#if defined(__x86_64__)
  constexpr int kLongestCall = 7;  // bytes
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

Known& known_at(std::uintptr_t address) {
  Known& entry = known[(address >> 2) % kKnown];
  if (entry.address == address) return entry;
  // Not dladdr, which also looks through all symbols of that file.
  const Place place = place_of(address - 1);
  entry = {address, 0, 0, binding_of(place.file), follows_call(address, place.file)};
  return entry;
}

Binding binding_at(std::uintptr_t address) {
  return known_at(address).binding;
}

void learn(std::uintptr_t address, std::uintptr_t up) {
  Known& entry = known_at(address);
  if (entry.seen == kVaries || entry.binding == Binding::none) return;
  if (up == 0 || up > kLargest || up % sizeof(void*) != 0 || (entry.up && entry.up != up)) {
    entry.seen = kVaries;
    return;
  }
  entry.up = static_cast<std::uint16_t>(up);
  entry.seen = std::min<std::uint16_t>(kSure, static_cast<std::uint16_t>(entry.seen + 1));
}

// From frame to frame, as the tables of each file describe them, which takes microseconds.
std::uintptr_t behind_binding() {
  struct Walk {
    std::uintptr_t found, address, place;
  } walk{};
  const auto visit = [](_Unwind_Context* frame, void* data) {
    auto& so_far = *static_cast<Walk*>(data);
    const std::uintptr_t address = _Unwind_GetIP(frame);
    if (!address) return _URC_END_OF_STACK;
    const std::uintptr_t place = _Unwind_GetCFA(frame);
    if (so_far.address) learn(so_far.address, place - so_far.place);
    so_far.address = address;
    so_far.place = place;
    if (binding_at(address) != Binding::none) return _URC_NO_REASON;
    so_far.found = address;
    return _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(visit, &walk);
  return walk.found;
}

// The same by what has been learnt; 0: not all of it is known, or something else lies where the
// return address should.
std::uintptr_t behind_known_binding(Called called) {
#if defined(__x86_64__)
  auto address = reinterpret_cast<std::uintptr_t>(called.address);
  auto place = reinterpret_cast<std::uintptr_t>(called.frame_end) - sizeof address;
  for (int frames = 0; frames < 8; ++frames) {
    const Known& entry = known_at(address);
    if (!entry.follows_call) return 0;
    if (entry.binding == Binding::none) return address;
    if (entry.seen != kSure) return 0;
    place += entry.up;
    std::memcpy(&address, reinterpret_cast<const void*>(place), sizeof address);
  }
#endif
  return 0;
}

// Every so often by unwinding all the same, which finds out where a frame's size varies.
std::uintptr_t caller_of_binding(Called called) {
  constexpr std::uint32_t kCheck = 64;
  static constinit thread_local std::uint32_t calls = 0;
  const std::uintptr_t quick = ++calls % kCheck ? behind_known_binding(called) : 0;
  return quick ? quick : behind_binding();
}

// What is used of Python's C interface (3.9 and later), from the interpreter that is in this
// process.
struct Python {
  int (*GILState_Ensure)();
  void (*GILState_Release)(int);
  void* (*GetFrame)();      // borrowed
  void* (*GetCode)(void*);  // new
  int (*GetLine)(void*);
  void* (*GetAttr)(void*, const char*);  // new
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
    p.ready = bind(p.GILState_Ensure, "PyGILState_Ensure") &&
              bind(p.GILState_Release, "PyGILState_Release") &&
              bind(p.GetFrame, "PyEval_GetFrame") && bind(p.GetCode, "PyFrame_GetCode") &&
              bind(p.GetLine, "PyFrame_GetLineNumber") &&
              bind(p.GetAttr, "PyObject_GetAttrString") && bind(p.Utf8, "PyUnicode_AsUTF8") &&
              bind(p.Release, "Py_DecRef") && bind(p.ForgetError, "PyErr_Clear");
    return p;
  }();
  return calls;
}

// What a line of a program's function is called, which takes thousands of instructions to find out.
// The function's code is held, so that no other one comes to lie there. A thread's own, so that no
// lock is needed, and made when it is, since a thread's stack has to hold its variables; never
// released.
struct Written {
  void* code;
  int line;
  char place[kWhere];
};
constexpr std::size_t kWritten = 32;
constinit thread_local Written* written __attribute__((tls_model("initial-exec"))) = nullptr;

void write_place(const Python& p, void* code, int line, char* place) {
  void* const file = p.GetAttr(code, "co_filename");
  void* const name = p.GetAttr(code, "co_name");
  const char* const path = file ? p.Utf8(file) : nullptr;
  const char* const function = name ? p.Utf8(name) : nullptr;
  // Such as of a path that is no UTF-8. The program must not meet it.
  if (!path || !function) p.ForgetError();
  // Of a path that is longer its end.
  constexpr std::size_t kLongest = 430;
  const std::size_t length = path ? std::strlen(path) : 0;
  std::snprintf(place, kWhere, "%s:%d:%.64s",
                length > kLongest ? path + length - kLongest
                : length          ? path
                                  : "?",
                line, function ? function : "?");
  for (void* object : {name, file})
    if (object) p.Release(object);
}

// Takes the reference over.
const char* place_in(const Python& p, void* code, int line) {
  constexpr std::uintptr_t kAligned = 16;
  const std::uintptr_t key =
      reinterpret_cast<std::uintptr_t>(code) / kAligned + static_cast<std::uintptr_t>(line);
  Written& entry = written[key % kWritten];
  if (entry.code == code && entry.line == line) {
    p.Release(code);
    return entry.place;
  }
  if (entry.code) p.Release(entry.code);
  entry.code = code;
  entry.line = line;
  write_place(p, code, line, entry.place);
  return entry.place;
}

const char* python_caller() {
  const Python& p = python();
  if (!p.ready) return "";
  if (!written) written = static_cast<Written*>(std::calloc(kWritten, sizeof(Written)));
  if (!written) return "";
  const int state = p.GILState_Ensure();
  void* const frame = p.GetFrame();
  void* const code = frame ? p.GetCode(frame) : nullptr;
  const char* const place = code ? place_in(p, code, p.GetLine(frame)) : "";
  p.GILState_Release(state);
  return place;
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
  const std::uintptr_t behind = binding == Binding::fortran ? caller_of_binding(called) : 0;
  return behind ? behind : address;
}

Caller find_caller(Called called) {
  const auto address = reinterpret_cast<std::uintptr_t>(called.address);
  const Binding binding = binding_at(address);
  if (binding == Binding::python) return {address, python_caller(), binding};
  return {caller_address(called), "", binding};
}

}  // namespace weft::advise
