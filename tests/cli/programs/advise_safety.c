/* What programs do with the result of a collective, and what `weft advise` must not disturb when
 * it watches this result. Usage: advise_safety [CASE]. It prints a checksum of what each case
 * computed, in which the advisor must not change a digit. */
#include "advise_safety.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

extern char** environ;
static void case_write(void) {
  double *out = fresh(), back[COUNT];
  int file = scratch_file();
  mix("w", write(file, out, sizeof back) == sizeof back);
  mix(back, pread(file, back, sizeof back, 0));
  close(file);
  free(out);
}
static void case_read(void) {
  double* out = fresh();
  int file = open("/proc/version", O_RDONLY);
  mix("r", read(file, out, 16) == 16);
  close(file);
  mix(out, COUNT * sizeof *out);
  free(out);
}
static void case_writev(void) {
  double *out = fresh(), back[COUNT];
  int file = scratch_file();
  struct iovec parts[3] = {{"abc", 3}, {out, 800}, {out + 1000, 8000}};
  mix("v", writev(file, parts, 3) == 8803);
  mix(back, pread(file, back, 8803, 0));
  close(file);
  free(out);
}
static void case_stdio(void) {
  double *out = fresh(), back[COUNT];
  FILE* file = tmpfile();
  fwrite(out, sizeof *out, COUNT, file);
  rewind(file);
  mix("f", fread(back, sizeof *back, COUNT, file) == COUNT);
  mix(back, sizeof back);
  fclose(file);
  free(out);
}
static void case_socket(void) {
  double *out = fresh(), back[COUNT];
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
  struct iovec part = {out, 4000};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  mix("m", sendmsg(ends[0], &message, 0) == 4000);
  mix("s", send(ends[0], out + 600, 4000, 0) == 4000);
  mix(back, recv(ends[1], back, 8000, MSG_WAITALL));
  close(ends[0]);
  close(ends[1]);
  free(out);
}
static void case_fork(void) {
  double* out = fresh();
  int ends[2];
  if (pipe(ends)) abort();
  pid_t child = fork();
  if (child == 0) {
    double total = 0;
    for (int i = 0; i < COUNT; ++i) total += out[i];
    _exit(write(ends[1], &total, sizeof total) != sizeof total || write(ends[1], out, 64) != 64);
  }
  int status;
  double got[9];
  waitpid(child, &status, 0);
  mix(&status, sizeof status);
  mix(got, read(ends[0], got, sizeof got));
  close(ends[0]);
  close(ends[1]);
  mix(out, COUNT * sizeof *out);
  free(out);
}
static void case_spawn(void) {
  char* out = (char*)fresh();
  pid_t child;
  strcpy(out + 8000, "exit 7");
  reduce_into((double*)out);
  strcpy(out, "exit 7");
  char* arguments[] = {"sh", "-c", out, NULL};
  int status = -1;
  if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0)
    waitpid(child, &status, 0);
  mix(&status, sizeof status);
  status = system("exit 5");
  mix(&status, sizeof status);
  free(out);
}
static void* sum_of(void* data) {
  double* out = data;
  double* total = malloc(sizeof *total);
  *total = 0;
  for (int i = 0; i < COUNT; ++i) *total += out[i];
  return total;
}
static void case_thread(void) {
  double* out = fresh();
  pthread_t thread;
  void* total;
  pthread_create(&thread, NULL, sum_of, out);
  pthread_join(thread, &total);
  mix(total, sizeof(double));
  free(total);
  free(out);
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static double* shared;
static int stage;
static void* writer(void* data) {
  int file = *(int*)data;
  pthread_mutex_lock(&lock);
  while (stage != 1) pthread_cond_wait(&changed, &lock);
  mix("p", pwrite(file, shared, COUNT * sizeof(double), 0) > 0);
  stage = 2;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void case_thread_writes(void) {
  double back[COUNT];
  int file = scratch_file();
  pthread_t thread;
  stage = 0;
  pthread_create(&thread, NULL, writer, &file);
  shared = fresh();
  pthread_mutex_lock(&lock);
  stage = 1;
  pthread_cond_signal(&changed);
  while (stage != 2) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  mix(back, pread(file, back, sizeof back, 0));
  close(file);
  free(shared);
}
static void* blocked_thread(void* data) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  for (int i = 0; i < 50; ++i) usleep(100);
  return sum_of(data);
}
static void case_blocked_thread(void) {
  double* out = malloc(COUNT * sizeof *out);
  for (int i = 0; i < COUNT; ++i) out[i] = 1;
  pthread_t thread;
  void* total;
  double* other = malloc(COUNT * sizeof *other);
  pthread_create(&thread, NULL, blocked_thread, out);
  for (int i = 0; i < 3; ++i) mix(reduce_into(other), COUNT * sizeof *other);
  pthread_join(thread, &total);
  mix(total, sizeof(double));
  free(total);
  free(out);
  free(other);
}
static sigjmp_buf jump;
static double* watched;
static volatile int faults;
static void on_fault(int signal, siginfo_t* info, void* context) {
  ++faults;
  if (info->si_addr == NULL) siglongjmp(jump, 1);
  mprotect((void*)((unsigned long)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}
static void case_own_handler(void) {
  struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
  sigaction(SIGSEGV, &mine, &before);
  char* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  faults = 0;
  watched = fresh();
  page[5] = 3;
  if (!sigsetjmp(jump, 1)) *(volatile int*)NULL = 1;
  mix((void*)&faults, sizeof faults);
  mix(watched, COUNT * sizeof *watched);
  munmap(page, 4096);
  free(watched);
  sigaction(SIGSEGV, &before, NULL);
}
static volatile int ticks;
static void on_tick(int signal) {
  char c = watched ? ((char*)watched)[9000] : 0;
  const int null = open("/dev/null", O_WRONLY);
  ++ticks;
  if (write(null, &c, 1) < 0) _exit(9);
  close(null);
}
static void with_timer(int full_mask) {
  struct sigaction mine = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, before;
  if (full_mask) sigfillset(&mine.sa_mask);
  sigaction(SIGALRM, &mine, &before);
  struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
  ticks = 0;
  watched = malloc(COUNT * sizeof *watched);
  memset(watched, 0, COUNT * sizeof *watched);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 6; ++i) {
    reduce_into(watched);
    while (ticks < i) usleep(500);
    mix(watched, COUNT * sizeof *watched);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  free(watched);
  watched = NULL;
}
static void case_timer(void) {
  with_timer(0);
}
static void case_timer_mask(void) {
  with_timer(1);
}
static void case_realloc(void) {
  double* out = fresh();
  out = realloc(out, 40 * COUNT * sizeof *out);
  mix(out, COUNT * sizeof *out);
  out = realloc(reduce_into(out), 8000);
  mix(out, 8000);
  free(out);
  free(fresh());
}
static void case_munmap(void) {
  for (int i = 0; i < 3; ++i) {
    double* out =
        mmap(NULL, COUNT * sizeof *out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    reduce_into(out);
    if (i == 1) mprotect(out, COUNT * sizeof *out, PROT_READ);
    if (i == 2) out = mremap(out, COUNT * sizeof *out, 4 * COUNT * sizeof *out, MREMAP_MAYMOVE);
    mix(out, i ? COUNT * sizeof *out : 0);
    munmap(out, (i == 2 ? 4 : 1) * COUNT * sizeof *out);
  }
}
static void case_mapped_file(void) {
  int file = scratch_file();
  double back[COUNT];
  if (ftruncate(file, sizeof back)) abort();
  double* out = mmap(NULL, sizeof back, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  reduce_into(out);
  mix(back, pread(file, back, sizeof back, 0));
  reduce_into(out);
  msync(out, sizeof back, MS_SYNC);
  munmap(out, sizeof back);
  mix(back, pread(file, back, sizeof back, 0));
  close(file);
}
static void case_small(void) {
  static double scalars[4];
  double local, *heap = malloc(24);
  double one = 1.25;
  for (int i = 0; i < 20; ++i) {
    MPI_Allreduce(&one, &scalars[1], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    scalars[0] += 1;
    MPI_Allreduce(&one, &local, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&one, heap + 1, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    heap[0] = i;
    heap[2] = scalars[1] + local;
    mix(heap, 24);
    mix(scalars, sizeof scalars);
  }
  free(heap);
}
static void case_inner(void) {
  double* all = calloc(3 * COUNT, sizeof *all);
  for (int i = 0; i < 5; ++i) {
    reduce_into(all + COUNT + i);
    MPI_Bcast(all, 3 * COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    mix(all, 3 * COUNT * sizeof *all);
    reduce_into(all + 7);
    all[3 * COUNT - 1] = i;
    mix(all + 1, 300);
  }
  free(all);
}
static void case_neighbours(void) {
  char* block = calloc(9000, 1);
  for (int i = 0; i < 300; ++i) block[i] = (char)i;
  double* out = (double*)(block + 304);
  for (int k = 0; k < 3; ++k) {
    double part[10] = {k, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    MPI_Allreduce(part, out, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 300; ++i) block[i] += block[(i * 7) % 300];
    memmove(block + 500, block, 200);
    mix(block, 600);
  }
  free(block);
}
static void case_send_result(void) {
  double *out = fresh(), *got = malloc(COUNT * sizeof *got);
  int size, other;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  other = (rank + 1) % size;
  MPI_Request request;
  MPI_Irecv(got, COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request);
  MPI_Send(out, COUNT, MPI_DOUBLE, other, 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  mix(got, COUNT * sizeof *got);
  free(out);
  free(got);
}
static void case_io(void) {
  double *out = fresh(), *back = calloc(COUNT, sizeof *back);
  char name[100];
  snprintf(name, sizeof name, "/tmp/weft-safety-%d", getpid());
  MPI_File file;
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, out, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, 0, back, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  mix(back, COUNT * sizeof *back);
  free(out);
  free(back);
}
static void case_bad_pointers(void) {
  double* out = fresh();
  struct iovec bad = {(void*)8, 10};
  int null = open("/dev/null", O_RDWR);
  int file = scratch_file();
  mix("b", write(file, (void*)16, 10) == -1 && errno == EFAULT);
  mix("b", writev(file, (struct iovec*)24, 1) == -1 && errno == EFAULT);
  mix("b", writev(file, &bad, 1) == -1 && errno == EFAULT);
  close(null);
  close(file);
  mix(out, COUNT * sizeof *out);
  free(out);
}
static void case_huge(void) {
  size_t bytes = 4 << 20;
  double* out = aligned_alloc(2 << 20, bytes);
  madvise(out, bytes, MADV_HUGEPAGE);
  memset(out, 1, bytes);
  reduce_into(out + 100);
  mix(out, bytes / 4);
  free(out);
}
static void case_sleep(void) {
  double* out = fresh();
  struct timeval t = {0, 20000};
  fd_set none;
  FD_ZERO(&none);
  usleep(15000);
  select(0, &none, NULL, NULL, &t);
  char* text = NULL;
  mix("a", asprintf(&text, "%d", 42) == 2);
  mix(text, 2);
  free(text);
  mix(out, COUNT * sizeof *out);
  free(out);
}

static const struct Case cases[] = {
    {"write", case_write},
    {"read", case_read},
    {"writev", case_writev},
    {"stdio", case_stdio},
    {"socket", case_socket},
    {"fork", case_fork},
    {"spawn", case_spawn},
    {"thread", case_thread},
    {"thread_writes", case_thread_writes},
    {"blocked_thread", case_blocked_thread},
    {"own_handler", case_own_handler},
    {"timer", case_timer},
    {"timer_mask", case_timer_mask},
    {"realloc", case_realloc},
    {"munmap", case_munmap},
    {"mapped_file", case_mapped_file},
    {"small", case_small},
    {"inner", case_inner},
    {"neighbours", case_neighbours},
    {"send_result", case_send_result},
    {"io", case_io},
    {"bad_pointers", case_bad_pointers},
    {"huge", case_huge},
    {"sleep", case_sleep},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
