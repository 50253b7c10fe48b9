/* A race to be found: preloaded behind Weft, it keeps Weft's mutexes from the thread sanitizer.
   Why: a sanitizer that has never found anything proves nothing. The mutexes do their work, so that
   nothing breaks; but to the sanitizer it looks as if each had been forgotten, in the very library
   and setting that the random programs run under. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

/* glibc's own function: the sanitizer's one stands before it in the chain. */
static int call(const char* name, pthread_mutex_t* mutex) {
  void* glibc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  int (*function)(pthread_mutex_t*);
  *(void**)&function = dlsym(glibc, name);
  dlclose(glibc);
  return function(mutex);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  return call(__func__, mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return call(__func__, mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  return call(__func__, mutex);
}
