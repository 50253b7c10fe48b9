/* Before a rank: the kernel's answer where its rule for debuggers forbids to read other processes
 * (NO_READV=refuse), for a single word, by which Weft tries it out: MPICH copies longer data so by
 * itself. Or a count of calls at the end (NO_READV=count); or the rank is not to be read itself
 * (NO_READV=hide). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls;

static int is(const char* word) {
  const char* asked = getenv("NO_READV");
  return asked && strcmp(asked, word) == 0;
}

__attribute__((constructor)) static void begin(void) {
  if (is("hide")) prctl(PR_SET_DUMPABLE, 0);
}

__attribute__((destructor)) static void end(void) {
  if (is("count")) fprintf(stderr, "process_vm_readv: %ld calls\n", calls);
}

ssize_t process_vm_readv(pid_t process, const struct iovec* own, unsigned long owns,
                         const struct iovec* others, unsigned long count, unsigned long flags) {
  ++calls;
  if (process != getpid() && own->iov_len == 8 && is("refuse")) {
    errno = EPERM;
    return -1;
  }
  return syscall(SYS_process_vm_readv, process, own, owns, others, count, flags);
}
