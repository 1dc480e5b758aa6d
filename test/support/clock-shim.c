/*
 * A wall clock that a test can step, for one process: loaded with LD_PRELOAD, it adds an offset to everything that reads
 * CLOCK_REALTIME. The offset, nanoseconds as one 64-bit integer, lies in the file that CLOCK_SHIM_FILE names, mapped into
 * memory: what the test writes there holds from the next reading on. The monotonic clock is left alone, as a real step
 * leaves it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile int64_t *offset;
static const int64_t none = 0;

/* Not in a constructor: other libraries read the clock in theirs. */
static int64_t current_offset(void) {
  if (offset == NULL) {
    const char *path = getenv("CLOCK_SHIM_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    offset = memory == MAP_FAILED ? &none : memory;
  }
  return *offset;
}

/* The kernel's own function: the one of the C library is the one replaced here. */
static int read_clock(clockid_t clock, struct timespec *at) {
  int failed = (int)syscall(SYS_clock_gettime, clock, at);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t stepped = at->tv_sec * SECOND + at->tv_nsec + current_offset();
  at->tv_sec = stepped / SECOND;
  at->tv_nsec = stepped % SECOND;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) { return read_clock(clock, at); }

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (read_clock(CLOCK_REALTIME, &now)) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  if (read_clock(CLOCK_REALTIME, &now)) return (time_t)-1;
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
