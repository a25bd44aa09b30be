/* fdatasync fails while a file exists, as on a disk that cannot write. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int descriptor) {
  const char *file = getenv("FAILS_WHILE");
  if (file && access(file, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return next(descriptor);
}
