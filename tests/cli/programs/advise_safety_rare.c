/* What fewer programs do with the result of a collective, or at the same time: signals and their
 * stacks, threads, contexts, other mappings, operations in flight. Usage: advise_safety_rare
 * [CASE], like advise_safety. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "advise_safety.h"

#define BYTES (COUNT * sizeof(double))

/* Returns a result that lies right behind the first bytes of `block`, so that they share a page. */
static double* behind(char** block, size_t bytes) {
  *block = calloc(1, bytes + BYTES + 8192);
  return (double*)(*block + bytes);
}
static void spin(long turns) {
  for (volatile long i = 0; i < turns; ++i) {
  }
}

static volatile int ticks, failures;
static void on_signal(int number) {
  ++ticks;
}
static void catch_with(int number, void (*handler)(int), int flags, struct sigaction* before) {
  struct sigaction mine = {.sa_handler = handler, .sa_flags = flags};
  sigaction(number, &mine, before);
}
static void every_us(int microseconds) {
  const struct itimerval often = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &often, NULL);
}

static void case_raise(void) {
  static const int signals[] = {SIGSEGV, SIGTRAP, SIGSYS};
  ticks = 0;
  for (int i = 0; i < 3; ++i) {
    struct sigaction before;
    catch_with(signals[i], on_signal, 0, &before);
    double* out = fresh();
    raise(signals[i]);
    raise(signals[i]);
    mix(out, BYTES);
    mix_number(ticks);
    free(out);
    sigaction(signals[i], &before, NULL);
  }
}
static void case_breakpoint(void) {
  struct sigaction before;
  ticks = 0;
  catch_with(SIGTRAP, on_signal, 0, &before);
  double* out = fresh();
#if defined(__x86_64__)
  __asm__ volatile("int3");
#endif
  mix(out, BYTES);
  mix_number(ticks);
  free(out);
  sigaction(SIGTRAP, &before, NULL);
}
static ucontext_t main_context, other_context;
static double* beside;
static void on_other_stack(void) {
  double local[300];
  reduce_into(beside);
  MPI_Allreduce(in, local, 300, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  mix(local, sizeof local);
  swapcontext(&other_context, &main_context);
  reduce_into(beside);
  mix(beside, BYTES);
}
static void case_context(void) {
  char* stack;
  const size_t bytes = (64 << 10) + 1008;
  beside = behind(&stack, bytes);
  getcontext(&other_context);
  other_context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
  other_context.uc_link = &main_context;
  makecontext(&other_context, on_other_stack, 0);
  swapcontext(&main_context, &other_context);
  mix(beside, BYTES);
  swapcontext(&main_context, &other_context);
  free(stack);
}
static void case_signal_stack(void) {
  struct sigaction before;
  char* block;
  const size_t bytes = (64 << 10) + 1008;
  double* out = behind(&block, bytes);
  const stack_t mine = {.ss_sp = block, .ss_size = bytes};
  stack_t old;
  mix_number(sigaltstack(NULL, &old));
  mix_number(old.ss_flags);
  mix_number(sigaltstack(&mine, &old));
  mix_number(old.ss_flags);
  catch_with(SIGALRM, on_signal, SA_ONSTACK, &before);
  ticks = 0;
  every_us(1000);
  for (int i = 0; i < 4; ++i) {
    reduce_into(out);
    for (const int seen = ticks; ticks == seen;) {
    }
    mix(out, BYTES);
  }
  every_us(0);
  sigaction(SIGALRM, &before, NULL);
  mix_number(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, &old));
  mix_number(old.ss_size);
  free(block);
}
static double* watched;
static int file;
static void on_tick(int number) {
  failures += pwrite(file, watched, 64, 0) != 64;
  ++ticks;
}
static void case_signal_in_call(void) {
  struct sigaction before;
  file = scratch_file();
  watched = fresh();
  catch_with(SIGALRM, on_tick, SA_RESTART, &before);
  failures = 0;
  every_us(300);
  for (int i = 0; i < 60; ++i) {
    reduce_into(watched);
    for (const int seen = ticks; ticks < seen + 2;) getppid();
  }
  every_us(0);
  sigaction(SIGALRM, &before, NULL);
  mix_number(failures);
  mix(watched, BYTES);
  close(file);
  free(watched);
}
static sigjmp_buf jump;
static void on_jump(int number) {
  siglongjmp(jump, 1);
}
static void case_jump(void) {
  struct sigaction before;
  catch_with(SIGALRM, on_jump, 0, &before);
  for (int i = 0; i < 5; ++i) {
    double* out = fresh();
    if (!sigsetjmp(jump, 1)) {
      const struct itimerval once = {{0, 0}, {0, 1000}};
      setitimer(ITIMER_REAL, &once, NULL);
      for (;;) getppid();
    }
    mix(out, BYTES);
    free(out);
  }
  sigaction(SIGALRM, &before, NULL);
}
static void case_queued_signal(void) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, &before);
  double* out = fresh();
  const union sigval value = {.sival_int = 41};
  mix_number(pthread_sigqueue(pthread_self(), SIGUSR1, value));
  siginfo_t info;
  mix_number(sigwaitinfo(&set, &info) == SIGUSR1 ? info.si_value.sival_int : -1);
  const int descriptor = signalfd(-1, &set, 0);
  raise(SIGUSR1);
  struct signalfd_siginfo* read_info = (void*)reduce_into(out);
  mix_number(read(descriptor, read_info, sizeof *read_info));
  mix_number(read_info->ssi_signo);
  close(descriptor);
  sigprocmask(SIG_SETMASK, &before, NULL);
  mix((char*)out + 200, BYTES - 200);
  free(out);
}
static void case_send_beside(void) {
  enum { LONG = 1 << 20 };
  char *block, *got = malloc(LONG);
  double* out = behind(&block, LONG);
  MPI_Request requests[2];
  for (int i = 0; i < 3; ++i) {
    memset(block, i + rank, LONG);
    reduce_into(out);
    MPI_Irecv(got, LONG, MPI_BYTE, !rank, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(block, LONG, MPI_BYTE, !rank, 5, MPI_COMM_WORLD, &requests[1]);
    if (rank) spin(20000000);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    mix(got, LONG);
    mix(out, BYTES);
  }
  free(block);
  free(got);
}
static void* receive(void* block) {
  MPI_Recv(block, 40000, MPI_BYTE, !rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}
static void case_thread_receives(void) {
  char *block, other[40000];
  double* out = behind(&block, 40000);
  pthread_t thread;
  memset(other, 3 + round_number, sizeof other);
  if (level < MPI_THREAD_MULTIPLE) return;
  for (int i = 0; i < 3; ++i) {
    pthread_create(&thread, NULL, receive, block);
    usleep(1000);
    reduce_into(out);
    MPI_Send(other, sizeof other, MPI_BYTE, !rank, 6, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
    mix(block, 40000);
    mix(out, BYTES);
  }
  free(block);
}
static void case_wait_beside(void) {
  MPI_Request request;
  char* block;
  double* out = behind(&block, 3000);
  for (int i = 0; i < 3; ++i) {
    MPI_Irecv(block, 3000, MPI_BYTE, !rank, 7, MPI_COMM_WORLD, &request);
    reduce_into(out);
    memset(in, i, 3000);
    MPI_Send(in, 3000, MPI_BYTE, !rank, 7, MPI_COMM_WORLD);
    for (int flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    mix(block, 3000);
    mix(out, BYTES);
  }
  free(block);
}
static void case_vfork(void) {
  double* out = fresh();
  strcpy((char*)out, "exit 6");
  char* const words[] = {"sh", "-c", (char*)out, NULL};
  reduce_into(out);
  strcpy((char*)out, "exit 6");
  const pid_t child = vfork();
  if (child == 0) {
    execv("/bin/sh", words);
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);
  mix_number(status);
  FILE* pipe = popen("echo 12", "r");
  char* text = (char*)reduce_into(out);
  mix_number(fgets(text, 10, pipe) == text);
  mix(out, BYTES);
  pclose(pipe);
  free(out);
}
static void case_pipes(void) {
  double* out = fresh();
  int ends[2];
  char back[4096];
  if (pipe(ends)) abort();
  struct iovec part = {out + 10, 4000};
  mix_number(vmsplice(ends[1], &part, 1, 0));
  mix_number(read(ends[0], back, 4000));
  mix(back, 4000);
  struct pollfd* wanted = (void*)reduce_into(out);
  wanted[0] = (struct pollfd){.fd = ends[1], .events = POLLOUT};
  reduce_into(out + 1);
  mix_number(poll(wanted, 1, 100));
  mix_number(wanted->revents);
  close(ends[0]);
  close(ends[1]);
  mix(out + 1, 4000);
  free(out);
}
static void case_aio(void) {
  double *out = fresh(), back[COUNT];
  const int target = scratch_file();
  struct aiocb job = {.aio_fildes = target, .aio_buf = out, .aio_nbytes = BYTES};
  const struct aiocb* jobs[] = {&job};
  reduce_into(out);
  mix_number(aio_write(&job));
  while (aio_error(&job) == EINPROGRESS) aio_suspend(jobs, 1, NULL);
  mix_number(aio_return(&job));
  mix(back, pread(target, back, BYTES, 0));
  close(target);
  free(out);
}
static void case_two_mappings(void) {
  const int memory = memfd_create("weft", 0);
  if (ftruncate(memory, BYTES)) abort();
  double* out = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  double* alias = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  double* copy = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory, 0);
  reduce_into(out);
  alias[7] += 1;
  mix(alias, BYTES);
  mix(copy, BYTES);
  mix(reduce_into(copy), BYTES);
  munmap(out, BYTES);
  munmap(alias, BYTES);
  munmap(copy, BYTES);
  close(memory);
}
static void case_attached(void) {
  const int segment = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
  double* out = shmat(segment, NULL, 0);
  shmctl(segment, IPC_RMID, NULL);
  reduce_into(out);
  const pid_t child = fork();
  if (child == 0) {
    out[5] = 11;
    _exit(0);
  }
  waitpid(child, NULL, 0);
  mix(out, BYTES);
  reduce_into(out);
  mix_number(shmdt(out));
}
static void case_forget(void) {
  double* out = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  reduce_into(out + 3);
  mix_number(madvise(out, 1 << 20, MADV_DONTNEED));
  mix(out, BYTES);
  reduce_into(out + 3);
  mix_number(mlock(out, BYTES) == 0 || errno == ENOMEM || errno == EPERM);
  mix(out, BYTES);
  munmap(out, 1 << 20);
  double* some = fresh();
  malloc_trim(0);
  mix(some, BYTES);
  free(some);
  malloc_trim(0);
}
static void case_filled(void) {
  double* out = fresh();
  char name[100];
  snprintf(name, sizeof name, "/proc/%d/exe", getpid());
  mix_number(readlink(name, (char*)out, 4) == 4);
  mix_number(getcwd((char*)reduce_into(out), 4096) == (char*)out);
  mix_number(getrandom(reduce_into(out), 64, 0));
  mix((char*)out + 4096, BYTES - 4096);
  FILE* stream = tmpfile();
  setvbuf(stream, (char*)reduce_into(out), _IOFBF, BYTES);
  for (int i = 0; i < 900; ++i) fprintf(stream, "%d %g\n", i, in[i]);
  rewind(stream);
  int number = 0;
  double value = 0;
  while (fscanf(stream, "%d %lg", &number, &value) == 2) mix(&value, sizeof value);
  fclose(stream);
  free(out);
}
static __thread double own_result[COUNT];
static void* with_own_result(void* unused) {
  reduce_into(own_result);
  mix(own_result, BYTES);
  return NULL;
}
static void case_thread_memory(void) {
  pthread_t thread;
  reduce_into(own_result);
  mix(own_result, BYTES);
  if (level < MPI_THREAD_SERIALIZED) return;
  pthread_create(&thread, NULL, with_own_result, NULL);
  pthread_join(thread, NULL);
}
static pthread_key_t key;
static void at_exit_of_thread(void* data) {
  mix(data, BYTES);
}
static void* leaves(void* data) {
  pthread_setspecific(key, data);
  while (!ticks) sched_yield();
  pthread_exit(NULL);
}
static void* never_ends(void* data) {
  for (;;) {
    failures += pwrite(file, data, 3000, 0) != 3000;
    pthread_testcancel();
    ticks = 1;
  }
}
static void case_thread_ends(void) {
  pthread_t thread;
  double* out = fresh();
  ticks = failures = 0;
  pthread_key_create(&key, at_exit_of_thread);
  pthread_create(&thread, NULL, leaves, out);
  reduce_into(out);
  ticks = 1;
  pthread_join(thread, NULL);
  pthread_key_delete(key);
  ticks = 0;
  file = scratch_file();
  char* block;
  double* next = behind(&block, 3000);
  pthread_create(&thread, NULL, never_ends, block);
  while (!ticks) sched_yield();
  for (int i = 0; i < 20; ++i) mix(reduce_into(next), BYTES);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  close(file);
  mix_number(failures);
  free(block);
  free(out);
}
static void case_threads(void) {
  double *out = fresh(), total = 0;
  for (int i = 0; i < 5; ++i) {
    reduce_into(out);
#pragma omp parallel for reduction(+ : total) num_threads(3)
    for (int k = 0; k < COUNT; ++k) total += (long)out[k];
  }
  mix(&total, sizeof total);
  free(out);
}
static void case_local_calls(void) {
  double *out = fresh(), packed[COUNT];
  int position = 0;
  MPI_Reduce_local(in, out, COUNT, MPI_DOUBLE, MPI_SUM);
  mix(out, BYTES);
  reduce_into(out);
  MPI_Pack(out, COUNT, MPI_DOUBLE, packed, BYTES, &position, MPI_COMM_WORLD);
  mix(packed, BYTES);
  free(out);
}
static void case_io_request(void) {
  double *out = fresh(), *back = calloc(COUNT, sizeof *back);
  char name[100];
  snprintf(name, sizeof name, "/tmp/weft-safety-%d", getpid());
  MPI_File target;
  MPI_Request request;
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &target);
  MPI_File_iwrite_at(target, 0, out, COUNT, MPI_DOUBLE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_iread_at(target, 0, back, COUNT, MPI_DOUBLE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&target);
  mix(back, BYTES);
  free(out);
  free(back);
}
static void case_window(void) {
  char* block;
  double *out = behind(&block, 4000), *mine = (double*)block;
  MPI_Win window;
  reduce_into(out);
  MPI_Win_create(block, 4000, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  reduce_into(out);
  const double number = 5 + rank;
  MPI_Put(&number, 1, MPI_DOUBLE, !rank, 3, 1, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  mix(mine, 4000);
  mix(out, BYTES);
  MPI_Win_free(&window);
  free(block);
}
static volatile double hot;
static double static_result[COUNT];
static void case_hot(void) {
  for (int i = 0; i < 3; ++i) {
    reduce_into(static_result);
    for (int k = 0; k < 100000; ++k) hot += 1;
    mix(static_result, BYTES);
  }
  mix_number((long)hot);
}

static const struct Case cases[] = {
    {"raise", case_raise},
    {"breakpoint", case_breakpoint},
    {"context", case_context},
    {"signal_stack", case_signal_stack},
    {"signal_in_call", case_signal_in_call},
    {"jump", case_jump},
    {"queued_signal", case_queued_signal},
    {"send_beside", case_send_beside},
    {"thread_receives", case_thread_receives},
    {"wait_beside", case_wait_beside},
    {"vfork", case_vfork},
    {"pipes", case_pipes},
    {"aio", case_aio},
    {"two_mappings", case_two_mappings},
    {"attached", case_attached},
    {"forget", case_forget},
    {"filled", case_filled},
    {"thread_memory", case_thread_memory},
    {"thread_ends", case_thread_ends},
    {"threads", case_threads},
    {"local_calls", case_local_calls},
    {"io_request", case_io_request},
    {"window", case_window},
    {"hot", case_hot},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
