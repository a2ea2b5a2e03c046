// Preloaded into a job, prints the stack of the thread that crashes it (the machine has no debugger for that).
// Build: gcc -O1 -fPIC -shared backtrace.c -o backtrace.so
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void on_crash(int signal) {
  void *frames[64];
  char head[120];
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  int n = snprintf(head, sizeof head, "crash: signal %d in thread %ld of %d at %ld ms\n", signal, syscall(SYS_gettid),
                   getpid(), t.tv_sec * 1000 + t.tv_nsec / 1000000);
  if (write(2, head, n) < 0) _exit(3);
  backtrace_symbols_fd(frames, backtrace(frames, 64), 2);
  _exit(128 + signal);
}

__attribute__((constructor)) static void arrange(void) {
  void *frames[1];
  backtrace(frames, 1);  // Loads libgcc now, not in the handler.
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_crash;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGABRT, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}
