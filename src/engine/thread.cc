// Starts threads of Weft. They block asynchronous signals, but not synchronous ones: a blocked one
// would end the process. The application may have a handler for these that tracks pages or traps
// floating-point errors, whichever thread causes them.
#include "engine/thread.h"

#include <dlfcn.h>
#include <signal.h>

#include <memory>
#include <system_error>
#include <utility>

namespace weft {
namespace {

sigset_t asynchronous_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&signals, own);
  return signals;
}

// Attributes of a new thread. If the C library can set its signal mask at creation, that saves two
// system calls; otherwise the thread inherits the mask of its creator. This is decided at run time,
// since the function needs glibc 2.32 and Weft is linked to an older one.
class Attributes {
 public:
  explicit Attributes(std::span<std::byte> stack) : blocked_(asynchronous_signals()) {
    using SetMask = int (*)(pthread_attr_t*, const sigset_t*);
    static const auto set_mask =
        reinterpret_cast<SetMask>(dlsym(RTLD_DEFAULT, "pthread_attr_setsigmask_np"));
    pthread_attr_init(&attributes_);
    if (!stack.empty()) pthread_attr_setstack(&attributes_, stack.data(), stack.size());
    is_inherited_ = !set_mask || set_mask(&attributes_, &blocked_) != 0;
    if (is_inherited_) pthread_sigmask(SIG_SETMASK, &blocked_, &before_);
  }
  Attributes(const Attributes&) = delete;
  ~Attributes() {
    if (is_inherited_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    pthread_attr_destroy(&attributes_);
  }
  const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
  sigset_t blocked_, before_;
  bool is_inherited_;
};

void* run(void* main) {
  const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(main));
  (*own)();
  return nullptr;
}

}  // namespace

Result<bool> Thread::start(std::function<void()> main, std::span<std::byte> stack) {
  auto own = std::make_unique<std::function<void()>>(std::move(main));
  pthread_t made;
  int code = pthread_create(&made, Attributes(stack).get(), run, own.get());
  if (code == EINVAL && !stack.empty())
    code = pthread_create(&made, Attributes({}).get(), run, own.get());
  if (code != 0) return Error{std::generic_category().message(code)};
  own.release();
  thread_ = made;
  return true;
}

void Thread::join() {
  pthread_join(*std::exchange(thread_, std::nullopt), nullptr);
}

void Thread::detach() {
  pthread_detach(*std::exchange(thread_, std::nullopt));
}

}  // namespace weft
