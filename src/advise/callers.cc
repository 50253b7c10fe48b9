// The return address tells most; behind a language's binding the stack is unwound, and behind
// mpi4py's the interpreter is asked, which holds its lock for that moment.
#include "advise/callers.h"

#include <dlfcn.h>
#include <unwind.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "advise/record.h"

namespace weft::advise {
namespace {

struct Known {
  std::uintptr_t address;
  Binding binding;
};
// By return address; a thread's own, so that no lock is needed.
constexpr std::size_t kKnown = 64;
constinit thread_local Known known[kKnown] __attribute__((tls_model("initial-exec"))) = {};

Binding binding_at(std::uintptr_t address) {
  Known& entry = known[(address >> 2) % kKnown];
  if (entry.address == address) return entry.binding;
  // Not dladdr, which also looks through all symbols of that file.
  entry = {address, binding_of(place_of(address - 1).file)};
  return entry.binding;
}

std::uintptr_t behind_binding() {
  std::uintptr_t found = 0;
  const auto visit = [](_Unwind_Context* frame, void* data) {
    const std::uintptr_t address = _Unwind_GetIP(frame);
    if (!address) return _URC_END_OF_STACK;
    if (binding_at(address) != Binding::none) return _URC_NO_REASON;
    *static_cast<std::uintptr_t*>(data) = address;
    return _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(visit, &found);
  return found;
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
              bind(p.Release, "Py_DecRef");
    return p;
  }();
  return calls;
}

constinit thread_local char python_place[kWhere] __attribute__((tls_model("initial-exec"))) = "";

void write_place(const Python& p, void* frame) {
  void* const code = p.GetCode(frame);
  void* const file = code ? p.GetAttr(code, "co_filename") : nullptr;
  void* const name = code ? p.GetAttr(code, "co_name") : nullptr;
  const char* const path = file ? p.Utf8(file) : nullptr;
  const char* const function = name ? p.Utf8(name) : nullptr;
  // Of a path that is longer its end.
  constexpr std::size_t kLongest = 430;
  const std::size_t length = path ? std::strlen(path) : 0;
  std::snprintf(python_place, sizeof python_place, "%s:%d:%.64s",
                length > kLongest ? path + length - kLongest
                : length          ? path
                                  : "?",
                p.GetLine(frame), function ? function : "?");
  for (void* object : {name, file, code})
    if (object) p.Release(object);
}

const char* python_caller() {
  const Python& p = python();
  python_place[0] = '\0';
  if (!p.ready) return python_place;
  const int state = p.GILState_Ensure();
  if (void* const frame = p.GetFrame()) write_place(p, frame);
  p.GILState_Release(state);
  return python_place;
}

}  // namespace

Caller find_caller(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  switch (binding_at(address)) {
    case Binding::none:
      return {address, ""};
    case Binding::python:
      return {address, python_caller()};
    case Binding::fortran:
      break;
  }
  const std::uintptr_t behind = behind_binding();
  return {behind ? behind : address, ""};
}

}  // namespace weft::advise
