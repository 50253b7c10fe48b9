// Compares what Weft reads of a loaded object in memory with what the dynamic linker says about it.
#include "base/loaded_object.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace weft {
namespace {

LoadedObject object_of(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  return LoadedObject(*map);
}

LoadedObject c_library() {
  return object_of(dlsym(RTLD_DEFAULT, "getenv"));
}

TEST(LoadedObject, FindsWhatTheLinkerFinds) {
  void* const handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  const LoadedObject library = c_library();
  EXPECT_STREQ(library.linked_name(), "libc.so.6");
  for (const char* name : {"getenv", "abort", "open64", "pthread_create", "atoi", "qsort"})
    EXPECT_EQ(library.defined(name), dlsym(handle, name)) << name;
  for (const char* name : {"", "MPI_Init", "getenvs", "no such symbol"})
    EXPECT_EQ(library.defined(name), nullptr) << name;
}

TEST(LoadedObject, WhatIsOnlyUsedIsNotDefined) {
  const LoadedObject program = object_of(reinterpret_cast<const void*>(&c_library));
  EXPECT_EQ(program.defined("dladdr1"), nullptr);
}

TEST(LoadedObject, SlotsHoldWhatTheProgramCalls) {
  const LoadedObject program = object_of(reinterpret_cast<const void*>(&c_library));
  std::set<std::string> names;
  program.for_each_slot([&](const LoadedObject::Slot& slot) {
    names.insert(slot.symbol);
    if (std::string(slot.symbol) == "dladdr1" && !slot.may_wait) {
      EXPECT_EQ(*slot.place, dlsym(RTLD_DEFAULT, "dladdr1"));
    }
  });
  EXPECT_TRUE(names.count("dladdr1"));
  EXPECT_FALSE(names.count(""));
}

}  // namespace
}  // namespace weft
