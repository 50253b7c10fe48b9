// FloatingPoint holds a thread's floating-point mode: the rounding, the flushing of subnormal
// numbers, and the exceptions that trap. Weft's threads adopt the mode of the application's thread,
// so that a collective computes as if that thread carried it out.
#pragma once

#include <cfenv>
#include <cstdint>
#include <optional>

namespace weft {

class FloatingPoint {
 public:
  static FloatingPoint of_this_thread();
  void set() const;
  // Returns whether any floating-point exception raises a signal in this mode.
  bool traps() const;
  bool operator==(const FloatingPoint&) const = default;

 private:
#if defined(__x86_64__)
  std::uint32_t vectors_ = 0;  // the SSE control register MXCSR without its exception flags
  std::uint16_t x87_ = 0;      // the x87 control word, which matters for long double
#elif defined(__aarch64__)
  std::uint64_t control_ = 0;  // the register FPCR: rounding mode and exception masks
#else
  int rounding_ = FE_TONEAREST;
#endif
};

#if defined(__x86_64__)
inline FloatingPoint FloatingPoint::of_this_thread() {
  constexpr std::uint32_t kFlags = 0x3f;
  FloatingPoint now;
  now.vectors_ = __builtin_ia32_stmxcsr() & ~kFlags;
  asm volatile("fnstcw %0" : "=m"(now.x87_));
  return now;
}
// Sets the calling thread's floating-point mode to the mode in this object. Clears the x87
// exception flags, since a flag that is already set would trap when the new mode unmasks its
// exception.
inline void FloatingPoint::set() const {
  __builtin_ia32_ldmxcsr(vectors_);
  asm volatile("fnclex\n\tfldcw %0" : : "m"(x87_));
}
inline bool FloatingPoint::traps() const {
  constexpr std::uint32_t kVectorMasks = 0x1f80, kX87Masks = 0x3f;
  return (vectors_ & kVectorMasks) != kVectorMasks || (x87_ & kX87Masks) != kX87Masks;
}
#elif defined(__aarch64__)
inline FloatingPoint FloatingPoint::of_this_thread() {
  FloatingPoint now;
  asm volatile("mrs %0, fpcr" : "=r"(now.control_));
  return now;
}
inline void FloatingPoint::set() const {
  asm volatile("msr fpcr, %0" : : "r"(control_));
}
inline bool FloatingPoint::traps() const {
  constexpr std::uint64_t kTraps = 0x9f00;
  return (control_ & kTraps) != 0;
}
#else
inline FloatingPoint FloatingPoint::of_this_thread() {
  FloatingPoint now;
  now.rounding_ = std::fegetround();
  return now;
}
inline void FloatingPoint::set() const {
  std::fesetround(rounding_);
}
// Always returns true: on this processor Weft cannot tell whether exceptions raise signals.
inline bool FloatingPoint::traps() const {
  return true;
}
#endif

// Sets the calling thread's floating-point mode while this object lives.
class ComputesAs {
 public:
  explicit ComputesAs(const FloatingPoint& other) {
    const FloatingPoint own = FloatingPoint::of_this_thread();
    if (own == other) return;
    before_ = own;
    other.set();
  }
  ~ComputesAs() {
    if (before_) before_->set();
  }
  ComputesAs(const ComputesAs&) = delete;
  ComputesAs& operator=(const ComputesAs&) = delete;

 private:
  std::optional<FloatingPoint> before_;
};

}  // namespace weft
