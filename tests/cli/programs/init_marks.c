// Marks MPI_Init among the system calls of a process by failing to open files. The program opens
// "/mark/begin" and "/mark/end" around MPI_Init. If AS_A_TOOL is defined, this source is a PMPI
// tool behind Weft, which opens "/mark/library" before and after the MPI library's own part.
#include <ctype.h>
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(AS_A_TOOL)
static void mark(void) {
  access("/mark/library", F_OK);
}

int MPI_Init(int* argc, char*** argv) {
  mark();
  const int code = PMPI_Init(argc, argv);
  mark();
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  mark();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  mark();
  return code;
}
#else
/* Returns whether this thread of the process has not fallen asleep yet. */
static int is_awake(const char* thread) {
  char name[300], line[500] = "";
  snprintf(name, sizeof name, "/proc/self/task/%s/stat", thread);
  FILE* file = fopen(name, "r");
  if (!file) return 0;
  if (!fgets(line, sizeof line, file)) line[0] = 0;
  fclose(file);
  const char* const state = strrchr(line, ')');
  return state && state[2] != 'S';
}

/* Waits until all threads sleep, so that what each does before its first sleep is recorded,
 * however late it begins. */
static void wait_for_threads(void) {
  for (int tries = 0, awake = 2; awake > 1 && tries < 10000; ++tries) {
    usleep(1000);
    awake = 0;
    DIR* threads = opendir("/proc/self/task");
    for (struct dirent* entry; threads && (entry = readdir(threads));)
      if (isdigit(entry->d_name[0])) awake += is_awake(entry->d_name);
    closedir(threads);
  }
}

int main(int argc, char** argv) {
  access("/mark/begin", F_OK);
  MPI_Init(&argc, &argv);
  access("/mark/end", F_OK);
  wait_for_threads();
  return MPI_Finalize();
}
#endif
