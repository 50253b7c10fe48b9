/* Usage: opened COMMAND.... It prints each file that COMMAND opens until it executes another
 * program. It replaces strace, which need not be installed. It stops the traced process at every
 * system call. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void print_text(pid_t pid, unsigned long address) {
  for (;; address += sizeof(long)) {
    const long word = ptrace(PTRACE_PEEKDATA, pid, (void*)address, NULL);
    for (unsigned i = 0; i < sizeof word; ++i) {
      const char c = ((const char*)&word)[i];
      putchar(c ? c : '\n');
      if (!c) return;
    }
  }
}

/* Prints the name of the file if the process enters a system call that opens one. */
static void look(pid_t pid) {
  struct user_regs_struct registers;
  ptrace(PTRACE_GETREGS, pid, NULL, &registers);
  const int entered = registers.rax == (unsigned long)-ENOSYS;
  if (entered && registers.orig_rax == SYS_open) print_text(pid, registers.rdi);
  if (entered && registers.orig_rax == SYS_openat) print_text(pid, registers.rsi);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execvp(argv[1], argv + 1);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0); /* the child has stopped at its own exec */
  if (!WIFSTOPPED(status)) return 3;
  ptrace(PTRACE_SETOPTIONS, pid, NULL, (void*)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC));
  for (;;) {
    ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status)) return 4;
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) break;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) look(pid);
  }
  fflush(stdout);
  ptrace(PTRACE_DETACH, pid, NULL, NULL);
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}
