// Defines the range of code whose system calls are never redirected, and the functions in it.
#include "advise/kernel.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstddef>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

namespace weft::advise::kernel {

#if defined(__x86_64__)

asm(R"(
  .text
  .balign 64
  .local weft_advise_begin, weft_advise_direct, weft_advise_restore, weft_advise_end
weft_advise_begin:
  .type weft_advise_direct, @function
weft_advise_direct:
  .cfi_startproc
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
  ret
  .cfi_endproc
  .type weft_advise_restore, @function
weft_advise_restore:
  movq $15, %rax
  syscall
  ud2
weft_advise_end:
  .previous
)");

extern "C" {
long weft_advise_direct(long number, long a, long b, long c, long d, long e, long f)
    __attribute__((visibility("hidden")));
void weft_advise_restore() __attribute__((visibility("hidden")));
extern char weft_advise_begin[] __attribute__((visibility("hidden")));
extern char weft_advise_end[] __attribute__((visibility("hidden")));
}

long direct(long number, long a, long b, long c, long d, long e, long f) {
  return weft_advise_direct(number, a, b, c, d, e, f);
}

bool dispatch(Selector* selector) {
  return direct(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1,
                reinterpret_cast<long>(weft_advise_begin), weft_advise_end - weft_advise_begin,
                reinterpret_cast<long>(selector)) == 0;
}

void dispatch_no_more() {
  direct(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0);
}

#else

long direct(long, long, long, long, long, long, long) {
  return -1;
}
bool dispatch(Selector*) {
  return false;
}
void dispatch_no_more() {}
extern "C" {
static void weft_advise_restore() {}
}

#endif

namespace {
constexpr std::size_t kMaskBytes = sizeof(std::uint64_t);
constexpr unsigned long kRestorer = 0x04000000;
}  // namespace

std::int64_t clock_ns() {
  timespec now{};
  direct(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&now));
  return now.tv_sec * INT64_C(1'000'000'000) + now.tv_nsec;
}

bool get_action(int signal, Action* action) {
  return direct(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(action), kMaskBytes) == 0;
}

void set_action(int signal, const Action& action) {
  direct(SYS_rt_sigaction, signal, reinterpret_cast<long>(&action), 0, kMaskBytes);
}

Action own_action(void (*handler)(int, siginfo_t*, void*)) {
  return {handler, SA_SIGINFO | SA_ONSTACK | kRestorer, weft_advise_restore, ~UINT64_C(0)};
}

std::uint64_t blocked() {
  std::uint64_t mask = 0;
  direct(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<long>(&mask), kMaskBytes);
  return mask;
}

std::uint64_t block_all() {
  const std::uint64_t all = ~UINT64_C(0);
  std::uint64_t before = 0;
  direct(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&all),
         reinterpret_cast<long>(&before), kMaskBytes);
  return before;
}

void block_these(std::uint64_t mask) {
  direct(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask), 0, kMaskBytes);
}

}  // namespace weft::advise::kernel
