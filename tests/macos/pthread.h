/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>
int pthread_create(pthread_t *t, const void *attributes, void *(*run)(void *), void *arg);

typedef struct pthread_mutex_t {
  long signature;
  char opaque[56];
} pthread_mutex_t;

#define PTHREAD_MUTEX_INITIALIZER                                                                            \
  {                                                                                                          \
    0x32AAABA7, { 0 }                                                                                        \
  }
int pthread_mutex_init(pthread_mutex_t *m, const void *attributes);
int pthread_mutex_lock(pthread_mutex_t *m);
int pthread_mutex_unlock(pthread_mutex_t *m);
int pthread_mutex_destroy(pthread_mutex_t *m);
int pthread_join(pthread_t t, void **result);
pthread_t pthread_self(void);
int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int pthread_mutex_trylock(pthread_mutex_t *m);
