/* What programs do with the send buffer of a collective. `weft advise` protects the buffer
 * against writes, which must not disturb the program. Usage: advise_safety_sent [CASE], like
 * advise_safety. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "advise_safety.h"

#define BYTES (COUNT * sizeof(double))
static double out[COUNT];

/* Sends what `mine` holds, and returns `mine`. */
static double* reduce_from(double* mine) {
  MPI_Allreduce(mine, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  mix(out, BYTES);
  return mine;
}
static void fill(double* mine) {
  for (int i = 0; i < COUNT; ++i) mine[i] = i * 0.25 + round_number;
}
/* Returns a buffer that has been sent twice, since only then the advisor watches it. */
static double* fresh_sent(void) {
  double* mine = malloc(BYTES);
  fill(mine);
  return reduce_from(reduce_from(mine));
}
static void done(double* mine) {
  mix(reduce_from(mine), BYTES);
  free(mine);
}

static void case_written(void) {
  double* mine = fresh_sent();
  for (int k = 0; k < 6; ++k) {
    for (int i = 0; i < COUNT; i += 1 + k) mine[i] += k;
    usleep(300);
    mine[COUNT - 1 - k] = k;
    reduce_from(mine);
  }
  done(mine);
}
static void case_read_into(void) {
  double* mine = fresh_sent();
  const int file = open("/proc/version", O_RDONLY);
  mix_number(read(file, mine + 5, 16));
  reduce_from(mine);
  reduce_from(mine);
  struct iovec parts[2] = {{mine, 8}, {mine + 1000, 8}};
  mix_number(preadv(file, parts, 2, 0));
  close(file);
  done(mine);
}
static void case_write_from(void) {
  double *mine = fresh_sent(), back[COUNT];
  const int file = scratch_file();
  mix_number(write(file, mine, BYTES));
  mine[7] = 7;
  mix_number(pwrite(file, mine, BYTES, 0));
  mix(back, pread(file, back, BYTES, 0));
  close(file);
  done(mine);
}
static void case_read_slowly(void) {
  double* mine = fresh_sent();
  int ends[2];
  if (pipe(ends)) abort();
  const pid_t child = fork();
  if (child == 0) {
    usleep(5000);
    _exit(write(ends[1], "abcdefgh", 8) != 8);
  }
  mine[0] = 1;
  mix_number(read(ends[0], mine, 8));
  int status;
  waitpid(child, &status, 0);
  mix_number(status);
  close(ends[0]);
  close(ends[1]);
  done(mine);
}
static void* reads_beside(void* data) {
  int* ends = data;
  char* block = *(char**)(ends + 2);
  mix_number(read(ends[0], block, 8));
  return NULL;
}
static void case_thread_reads_beside(void) {
  struct {
    int ends[2];
    char* block;
  } shared;
  if (pipe(shared.ends)) abort();
  shared.block = calloc(1, BYTES + 8192);
  double* mine = (double*)(shared.block + 64);
  fill(mine);
  reduce_from(reduce_from(mine));
  pthread_t thread;
  pthread_create(&thread, NULL, reads_beside, &shared);
  usleep(1000);
  mine[3] = 3;
  reduce_from(mine);
  mine[4] = 4;
  usleep(3000);
  mix_number(write(shared.ends[1], "12345678", 8));
  pthread_join(thread, NULL);
  mix(shared.block, 64);
  mix(reduce_from(mine), BYTES);
  free(shared.block);
  close(shared.ends[0]);
  close(shared.ends[1]);
}
static void* writes(void* data) {
  double* mine = data;
  for (int k = 0; k < 20; ++k) {
    for (int i = 0; i < COUNT; i += 7) mine[i] += 1;
    usleep(50);
  }
  return NULL;
}
static void case_thread_writes(void) {
  double* mine = fresh_sent();
  for (int k = 0; k < 3; ++k) {
    pthread_t thread;
    pthread_create(&thread, NULL, writes, mine);
    pthread_join(thread, NULL);
    reduce_from(mine);
  }
  done(mine);
}
static void* writes_half(void* data) {
  double* mine = data;
  for (int k = 0; k < 30; ++k) {
    for (int i = 0; i < COUNT / 2; ++i) mine[i] += k;
    usleep(20);
  }
  return NULL;
}
static void case_threads_write(void) {
  double* mine = fresh_sent();
  for (int k = 0; k < 3; ++k) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
      pthread_create(&threads[i], NULL, writes_half, mine + i * COUNT / 2);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    reduce_from(mine);
  }
  done(mine);
}
static void case_openmp(void) {
  double* mine = fresh_sent();
  for (int k = 0; k < 4; ++k) {
#pragma omp parallel for num_threads(3)
    for (int i = 0; i < COUNT; ++i) mine[i] += k;
    reduce_from(mine);
  }
  done(mine);
}
static double* ticked;
static volatile int ticks;
static void on_tick(int number) {
  ticked[ticks % COUNT] = ticks;
  ++ticks;
}
static void case_timer_writes(void) {
  struct sigaction mine = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, before;
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  ticked = fresh_sent();
  ticks = 0;
  sigaction(SIGALRM, &mine, &before);
  for (int k = 0; k < 4; ++k) {
    reduce_from(ticked);
    setitimer(ITIMER_REAL, &often, NULL);
    for (const int seen = ticks; ticks < seen + 3;) {
    }
    setitimer(ITIMER_REAL, &never, NULL);
    fill(ticked);
  }
  sigaction(SIGALRM, &before, NULL);
  done(ticked);
}
static void case_fork_writes(void) {
  double* mine = fresh_sent();
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < COUNT; ++i) mine[i] += 1;
    _exit((int)mine[2] & 127);
  }
  int status;
  mine[5] = 5;
  waitpid(child, &status, 0);
  mix_number(status);
  done(mine);
}
static void case_realloc(void) {
  double* mine = fresh_sent();
  mine = realloc(mine, 50 * BYTES);
  reduce_from(mine);
  mine[1] = 1;
  mine = realloc(reduce_from(mine), BYTES);
  reduce_from(mine);
  free(mine);
  double* other = malloc(BYTES);
  memset(other, round_number, BYTES);
  done(other);
}
static void case_munmap(void) {
  for (int k = 0; k < 3; ++k) {
    double* mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(mine);
    reduce_from(reduce_from(mine));
    if (k == 1) mix_number(mprotect(mine, BYTES, PROT_READ));
    if (k == 2) mix_number(madvise(mine, BYTES, MADV_DONTNEED));
    mix(reduce_from(mine), BYTES);
    munmap(mine, BYTES);
  }
}
static void case_mapped_file(void) {
  const int file = scratch_file();
  if (ftruncate(file, BYTES)) abort();
  double* mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  double* alias = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  fill(mine);
  reduce_from(reduce_from(mine));
  alias[11] = 11;
  mix_number(pwrite(file, "12345678", 8, 800));
  reduce_from(mine);
  mix(mine, BYTES);
  munmap(mine, BYTES);
  munmap(alias, BYTES);
  close(file);
}
static sigjmp_buf jump;
static volatile int faults;
static void on_fault(int signal, siginfo_t* info, void* context) {
  ++faults;
  if (!info->si_addr) siglongjmp(jump, 1);
  mprotect((void*)((unsigned long)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}
/* The program watches its own writes by the same means as the advisor: protected pages and
 * SIGSEGV. */
static void case_own_barrier(void) {
  struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
  char* page = mmap(NULL, 16384, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  double* sent = fresh_sent();
  faults = 0;
  sigaction(SIGSEGV, &mine, &before);
  reduce_from(sent);
  for (int i = 0; i < 4; ++i) page[i * 4096] = (char)i;
  sent[9] = 9;
  reduce_from(sent);
  if (!sigsetjmp(jump, 1)) *(volatile int*)NULL = 1;
  mix_number(faults);
  munmap(page, 16384);
  sigaction(SIGSEGV, &before, NULL);
  done(sent);
}
static void case_receive_into(void) {
  double* mine = fresh_sent();
  MPI_Request request;
  MPI_Irecv(mine + 100, 500, MPI_DOUBLE, !rank, 3, MPI_COMM_WORLD, &request);
  MPI_Send(in, 500, MPI_DOUBLE, !rank, 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  reduce_from(reduce_from(mine));
  MPI_Sendrecv(in, 9, MPI_DOUBLE, !rank, 4, mine, 9, MPI_DOUBLE, !rank, 4, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  reduce_from(mine);
  MPI_Bcast(mine, 50, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, mine, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  done(mine);
}
static void case_in_turn(void) {
  double *one = fresh_sent(), *other = fresh_sent();
  for (int k = 0; k < 6; ++k) {
    MPI_Allreduce(one, other, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(other, one, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    one[k] += 1;
  }
  mix(other, BYTES);
  free(other);
  done(one);
}
static void case_flight(void) {
  double* mine = fresh_sent();
  MPI_Request request;
  for (int k = 0; k < 4; ++k) {
    MPI_Iallreduce(mine, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    usleep(500);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mine[k] = k;
    reduce_from(mine);
  }
  done(mine);
}
static void case_parts(void) {
  double* mine = fresh_sent();
  for (int k = 0; k < 6; ++k) {
    MPI_Allreduce(mine + k, out, COUNT / 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    mine[k + COUNT / 4] = k;
    MPI_Allreduce(mine + COUNT / 3, out, COUNT / 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    reduce_from(mine);
  }
  done(mine);
}
/* Writes that begin before the buffer and end in it, and a copy that goes beyond its end. */
static void case_across(void) {
  char* block = calloc(1, BYTES + 8192);
  double* mine = (double*)(block + 4096 + 24);
  for (int k = 0; k < 6; ++k) {
    fill(mine);
    reduce_from(mine);
    memset((char*)mine - 20, k, 40);
    memset((char*)mine + BYTES - 20, k, 40);
    reduce_from(mine);
    mix(block, BYTES + 8192);
  }
  free(block);
}
static void case_busy_beside(void) {
  char* block = calloc(1, BYTES + 8192);
  double* mine = (double*)(block + 256);
  volatile long* counter = (volatile long*)block;
  fill(mine);
  for (int k = 0; k < 4; ++k) {
    reduce_from(mine);
    for (int i = 0; i < 20000; ++i) *counter += i;
    mine[k] += (double)*counter;
  }
  mix(reduce_from(mine), BYTES);
  free(block);
}
static ucontext_t main_context, other_context;
static double* beside_stack;
static void on_other_stack(void) {
  double mine[COUNT];
  for (int k = 0; k < 5; ++k) {
    fill(mine);
    reduce_from(mine);
    fill(beside_stack);
    usleep(200);
    reduce_from(beside_stack);
    if (k == 2) swapcontext(&other_context, &main_context);
  }
}
static void case_other_stack(void) {
  const size_t bytes = (128 << 10) + 1008;
  char* stack = calloc(1, bytes + BYTES + 8192);
  beside_stack = (double*)(stack + bytes);
  getcontext(&other_context);
  other_context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
  other_context.uc_link = &main_context;
  makecontext(&other_context, on_other_stack, 0);
  swapcontext(&main_context, &other_context);
  reduce_from(reduce_from(beside_stack));
  swapcontext(&main_context, &other_context);
  mix(beside_stack, BYTES);
  free(stack);
}
/* An interrupted sleep would end early, so the advisor must not interrupt it by signals. */
static void case_sleeps(void) {
  double* mine = fresh_sent();
  for (int k = 0; k < 3; ++k) {
    const struct timespec t = {0, 3000000};
    mine[k] = k;
    mix_number(nanosleep(&t, NULL));
    mine[k + 1] = k;
    mix_number(poll(NULL, 0, 3));
    fd_set none;
    struct timeval wait = {0, 3000};
    FD_ZERO(&none);
    mix_number(select(0, &none, NULL, NULL, &wait));
    reduce_from(mine);
  }
  done(mine);
}
static void case_stdio_into(void) {
  double* mine = fresh_sent();
  FILE* file = tmpfile();
  fwrite(in, sizeof *in, COUNT, file);
  rewind(file);
  mix_number((long)fread(mine, sizeof *mine, COUNT, file));
  reduce_from(reduce_from(mine));
  rewind(file);
  setvbuf(file, (char*)mine, _IOFBF, 8192);
  mix_number(fgetc(file));
  fclose(file);
  struct stat facts;
  mix_number(stat("/", (struct stat*)mine));
  memset(&facts, 0, sizeof facts);
  memcpy(mine, &facts, sizeof facts);
  done(mine);
}
static void case_socket_into(void) {
  double* mine = fresh_sent();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
  mix_number(send(ends[0], mine, 4000, 0));
  mix_number(recv(ends[1], mine + 1000, 4000, MSG_WAITALL));
  reduce_from(reduce_from(mine));
  struct iovec part = {mine, 4000};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  mix_number(sendmsg(ends[1], &message, 0));
  mix_number(recvmsg(ends[0], &message, 0));
  close(ends[0]);
  close(ends[1]);
  done(mine);
}
static void case_huge(void) {
  const size_t bytes = 4 << 20;
  double* block = aligned_alloc(2 << 20, bytes);
  madvise(block, bytes, MADV_HUGEPAGE);
  memset(block, 1, bytes);
  for (int k = 0; k < 4; ++k) {
    MPI_Allreduce(block + 3, out, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    memset(block, k, bytes / 2);
    usleep(300);
    block[5] = k;
  }
  mix(out, BYTES);
  mix(block, bytes / 4);
  free(block);
}
/* Counts which pages are written, as a library for incremental checkpoints does. */
enum { PAGE = 4096, PAGES = 6 };
static char* tracked;
static volatile int page_writes[PAGES];
static void on_write(int signal, siginfo_t* info, void* context) {
  const long page = ((char*)info->si_addr - tracked) / PAGE;
  if (page < 0 || page >= PAGES) _exit(9);
  ++page_writes[page];
  mprotect(tracked + page * PAGE, PAGE, PROT_READ | PROT_WRITE);
}
static void count_writes(double* mine, int k) {
  memset((void*)page_writes, 0, sizeof page_writes);
  mprotect(mine, PAGES * PAGE, PROT_READ);
  for (int i = 100 * k; i < COUNT; i += 700) mine[i] += k;
  mix((void*)page_writes, sizeof page_writes);
}
static void case_tracks_writes(void) {
  struct sigaction own = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO}, before;
  sigaction(SIGSEGV, &own, &before);
  tracked = aligned_alloc(PAGE, PAGES * PAGE);
  double* mine = (double*)tracked;
  fill(mine);
  for (int k = 0; k < 6; ++k) {
    reduce_from(reduce_from(mine));
    count_writes(mine, k);
    reduce_from(mine);
    mprotect(mine, PAGES * PAGE, PROT_READ | PROT_WRITE);
    count_writes(reduce_into(mine), k);
    mprotect(mine, PAGES * PAGE, PROT_READ | PROT_WRITE);
  }
  mix(mine, BYTES);
  sigaction(SIGSEGV, &before, NULL);
  free(mine);
}
static void case_shared_between(void) {
  double* mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  fill(mine);
  reduce_from(reduce_from(mine));
  const pid_t child = fork();
  if (child == 0) {
    mine[5] = 11;
    _exit(0);
  }
  waitpid(child, NULL, 0);
  mix(reduce_from(mine), BYTES);
  munmap(mine, BYTES);
}

static const struct Case cases[] = {
    {"written", case_written},
    {"read_into", case_read_into},
    {"write_from", case_write_from},
    {"read_slowly", case_read_slowly},
    {"thread_reads_beside", case_thread_reads_beside},
    {"thread_writes", case_thread_writes},
    {"threads_write", case_threads_write},
    {"openmp", case_openmp},
    {"timer_writes", case_timer_writes},
    {"fork_writes", case_fork_writes},
    {"realloc", case_realloc},
    {"munmap", case_munmap},
    {"mapped_file", case_mapped_file},
    {"own_barrier", case_own_barrier},
    {"receive_into", case_receive_into},
    {"in_turn", case_in_turn},
    {"flight", case_flight},
    {"parts", case_parts},
    {"across", case_across},
    {"busy_beside", case_busy_beside},
    {"other_stack", case_other_stack},
    {"sleeps", case_sleeps},
    {"stdio_into", case_stdio_into},
    {"socket_into", case_socket_into},
    {"huge", case_huge},
    {"tracks_writes", case_tracks_writes},
    {"shared_between", case_shared_between},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
