/* A tool that makes Weft's clock go twenty times as fast. Weft then waits for a twentieth of the
 * time that it says. Other callers see the system's clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 20 };

static long long began_ns;

static long long of_system(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
  began_ns = of_system();
}

static int is_weft(const void* caller) {
  Dl_info found;
  return dladdr(caller, &found) && found.dli_fname && strstr(found.dli_fname, "libweft-");
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (clock != CLOCK_MONOTONIC || !is_weft(__builtin_return_address(0)))
    return (int)syscall(SYS_clock_gettime, clock, now);
  const long long ns = began_ns + TIMES * (of_system() - began_ns);
  now->tv_sec = ns / 1000000000;
  now->tv_nsec = ns % 1000000000;
  return 0;
}
