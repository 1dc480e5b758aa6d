/*
 * Loaded into one process (LD_PRELOAD): its file locks hang for ever, or fail with EIO, once the file named by
 * FAILING_LOCKS exists and says "hang" or "error"; or one of them takes long, where it says "slow" and how many
 * milliseconds. What SQLite sees of a dead or busy disk; nobody else sees anything of it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int must_fail(int command) {
  if (command != F_SETLK && command != F_SETLKW) return 0;
  const char *path = getenv("FAILING_LOCKS");
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return 0;
  int how = fgetc(file), ms = 0;
  if (how == 's') fscanf(file, "low %d", &ms);
  fclose(file);
  if (ms > 0) {
    unlink(path);
    usleep(ms * 1000);
  }
  while (how == 'h') pause();
  return how == 'e';
}

#define WRAP(name)                                                       \
  int name(int fd, int command, ...) {                                   \
    va_list list;                                                        \
    va_start(list, command);                                             \
    void *argument = va_arg(list, void *);                               \
    va_end(list);                                                        \
    if (must_fail(command)) {                                            \
      errno = EIO;                                                       \
      return -1;                                                         \
    }                                                                    \
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name); \
    return real(fd, command, argument);                                  \
  }

WRAP(fcntl)
WRAP(fcntl64)
