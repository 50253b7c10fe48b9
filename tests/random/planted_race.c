/* A planted race that the thread sanitizer must find: this library, which is preloaded behind
 * Weft, hides Weft's mutexes from the sanitizer. The mutexes still work, so nothing breaks. But
 * to the sanitizer each of them seems to be missing, in the same library and setting in which
 * the random programs run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

/* Calls glibc's own function, which the sanitizer's function precedes in the search order. */
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
