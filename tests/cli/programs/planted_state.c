/* A tool between Weft and the MPI library that plants the state of a machine: how long Weft's short
 * copies take, and the library's bcasts and alltoallvs, or the starts of its persistent ones.
 * Weft's clock is this tool's, and goes on by these times alone, so that no load of the real
 * machine matters. The program sets both times (states.c, lengths.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_BYTES = 1024 }; /* of a copy that is data */

int planted_copy_us, planted_library_us, planted_library_calls;

static uintptr_t weft_begin, weft_end;
static long long clock_ns;
static MPI_Request of_library = MPI_REQUEST_NULL; /* its request that was initialised last */

static int note_weft(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  if (!strstr(object->dlpi_name, "libweft-mpich") && !strstr(object->dlpi_name, "libweft-openmpi"))
    return 0;
  weft_begin = object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const uintptr_t end = weft_begin + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;
    if (object->dlpi_phdr[i].p_type == PT_LOAD && end > weft_end) weft_end = end;
  }
  return 1;
}

static int is_weft(const void* caller) {
  return weft_begin <= (uintptr_t)caller && (uintptr_t)caller < weft_end;
}

__attribute__((constructor)) static void begin(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  clock_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
  dl_iterate_phdr(&note_weft, NULL);
}

static void takes(int us) {
  __atomic_fetch_add(&clock_ns, us * 1000LL, __ATOMIC_RELAXED);
}

/* Each look at the clock takes a moment, so that nobody waits for ever. */
int clock_gettime(clockid_t clock, struct timespec* now) {
  if (!is_weft(__builtin_return_address(0))) return (int)syscall(SYS_clock_gettime, clock, now);
  const long long ns = __atomic_add_fetch(&clock_ns, 10, __ATOMIC_RELAXED);
  now->tv_sec = ns / 1000000000;
  now->tv_nsec = ns % 1000000000;
  return 0;
}

void* memmove(void* to, const void* from, size_t bytes) {
  if (bytes >= LEAST_BYTES && is_weft(__builtin_return_address(0))) takes(planted_copy_us);
  char* target = to;
  const char* source = from;
  if (target <= source)
    for (size_t i = 0; i < bytes; ++i) target[i] = source[i];
  else
    for (size_t i = bytes; i > 0; --i) target[i - 1] = source[i - 1];
  return to;
}

static void library_takes(void) {
  ++planted_library_calls;
  takes(planted_library_us);
}

int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int (*next)(void*, int, MPI_Datatype, int, MPI_Comm);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Bcast");
  library_takes();
  return next(data, count, type, root, comm);
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(data, count, type, root, comm);
}

int PMPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request* request) {
  int (*next)(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Ibcast");
  library_takes();
  return next(data, count, type, root, comm, request);
}

int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  return PMPI_Ibcast(data, count, type, root, comm, request);
}

int PMPI_Bcast_init(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                    MPI_Info info, MPI_Request* request) {
  int (*next)(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Bcast_init");
  const int code = next(data, count, type, root, comm, info, request);
  of_library = *request;
  return code;
}

int MPI_Bcast_init(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                   MPI_Request* request) {
  return PMPI_Bcast_init(data, count, type, root, comm, info, request);
}

#define BLOCKS(name) \
  const void *name, const int *name##_counts, const int *name##_places, MPI_Datatype name##_type
#define INTO void *to, const int *to_counts, const int *to_places, MPI_Datatype to_type
#define GIVEN from, from_counts, from_places, from_type, to, to_counts, to_places, to_type

int PMPI_Alltoallv(BLOCKS(from), INTO, MPI_Comm comm) {
  int (*next)(BLOCKS(from), INTO, MPI_Comm);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Alltoallv");
  library_takes();
  return next(GIVEN, comm);
}

int MPI_Alltoallv(BLOCKS(from), INTO, MPI_Comm comm) {
  return PMPI_Alltoallv(GIVEN, comm);
}

int PMPI_Ialltoallv(BLOCKS(from), INTO, MPI_Comm comm, MPI_Request* request) {
  int (*next)(BLOCKS(from), INTO, MPI_Comm, MPI_Request*);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Ialltoallv");
  library_takes();
  return next(GIVEN, comm, request);
}

int MPI_Ialltoallv(BLOCKS(from), INTO, MPI_Comm comm, MPI_Request* request) {
  return PMPI_Ialltoallv(GIVEN, comm, request);
}

int PMPI_Alltoallv_init(BLOCKS(from), INTO, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  int (*next)(BLOCKS(from), INTO, MPI_Comm, MPI_Info, MPI_Request*);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Alltoallv_init");
  const int code = next(GIVEN, comm, info, request);
  of_library = *request;
  return code;
}

int MPI_Alltoallv_init(BLOCKS(from), INTO, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PMPI_Alltoallv_init(GIVEN, comm, info, request);
}

int PMPI_Start(MPI_Request* request) {
  int (*next)(MPI_Request*);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Start");
  if (*request == of_library) library_takes();
  return next(request);
}

int MPI_Start(MPI_Request* request) {
  return PMPI_Start(request);
}
