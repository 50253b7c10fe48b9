#include "attachable_memory.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace {

constexpr std::size_t kArena_bytes = std::size_t{1} << 32;
constexpr std::size_t kPage_bytes = 4096;

char* arena() {
  static void* const begin =
      mmap(nullptr, kArena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return static_cast<char*>(begin);
}

std::map<char*, std::size_t> used;  // size of each allocation, by its address

char* first_room(std::size_t bytes) {
  char* room = arena();
  for (const auto& [begin, taken] : used) {
    if (begin - room >= static_cast<std::ptrdiff_t>(bytes)) break;
    room = begin + taken;
  }
  return room;
}

void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

AttachableMemory::AttachableMemory(std::size_t bytes)
    : bytes_((bytes + kPage_bytes - 1) / kPage_bytes * kPage_bytes),
      file_(memfd_create("attachable", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) give_up("memfd_create");
  char* const room = first_room(bytes_);
  data_ = mmap(room, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0);
  if (data_ == MAP_FAILED) give_up("mmap");
  used[room] = bytes_;
}

AttachableMemory::~AttachableMemory() {
  mmap(data_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  close(file_);
  used.erase(static_cast<char*>(data_));
}

void follow_owners() {
  using Follow = void();
  void* const library = dlopen("libweft-xpmem-standin.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
  reinterpret_cast<Follow*>(dlsym(library, "xpmem_standin_follow"))();
  dlclose(library);
}
