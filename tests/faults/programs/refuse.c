// A PMPI tool behind Weft in the chain. Once the MPI library is initialised, the system refuses
// what FAULTS_REFUSE names; or MPI_Init fails. This is done here and not in the program, since MPI
// libraries start their own threads in MPI_Init.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void must(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  _Exit(9);
}

static void lower(int resource, rlim_t value) {
  const struct rlimit limit = {value, value};
  must(setrlimit(resource, &limit), "setrlimit");
}

// Makes the stack of each new thread larger than the permitted address space.
static void limit_memory(void) {
  const size_t gib = (size_t)1 << 30;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  must(pthread_attr_setstacksize(&attributes, 256 * gib), "pthread_attr_setstacksize");
  must(pthread_setattr_default_np(&attributes), "pthread_setattr_default_np");
  lower(RLIMIT_AS, 128 * gib);
}

static void refuse_call(unsigned number, unsigned error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {4, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

// The system calls that can be refused, with the names that FAULTS_REFUSE gives them.
static const struct {
  const char* what;
  unsigned number, error;
} kCalls[] = {
    {"clone", SYS_clone3, ENOSYS},
    {"clone", SYS_clone, EPERM},
    {"affinity", SYS_sched_setaffinity, EPERM},
    {"prctl", SYS_prctl, EINVAL},
    {"yield", SYS_sched_yield, EPERM},
    {"memfd", SYS_memfd_create, EPERM},
    {"readv", SYS_process_vm_readv, EPERM},
    {"readv", SYS_process_vm_writev, EPERM},
    {"madvise", SYS_madvise, EINVAL},
};

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const char* what = getenv("FAULTS_REFUSE");
  if (what && strcmp(what, "init") == 0) return MPI_ERR_OTHER;
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!what) return code;
  if (strcmp(what, "threads") == 0) lower(RLIMIT_NPROC, 1);
  if (strcmp(what, "threads-on-rank-1") == 0 && rank == 1) lower(RLIMIT_NPROC, 1);
  if (strcmp(what, "memory") == 0) limit_memory();
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; ++i)
    if (strcmp(what, kCalls[i].what) == 0) refuse_call(kCalls[i].number, kCalls[i].error);
  return code;
}

int MPI_Init(int* argc, char*** argv) {
  int provided = 0;
  return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}
