/* Replaces process_vm_readv() in a rank. NO_READV=refuse: it fails like the kernel if its rules
 * for debuggers forbid to read other processes. Only reads of a single word fail, by which Weft
 * probes whether reading is permitted, since MPICH uses the call for longer data.
 * NO_READV=count: prints the number of calls at the end. NO_READV=hide: other processes cannot
 * read this rank. */
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
