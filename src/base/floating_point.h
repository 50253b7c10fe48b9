// FloatingPoint: how a thread computes with floating-point numbers: rounding, what becomes of very
// small ones, which exceptions trap. Why: MPI_Allreduce rounds as its caller has said, also where
// another thread carries it out.
#pragma once

#include <cfenv>
#include <cstdint>
#include <optional>

namespace weft {

class FloatingPoint {
 public:
  static FloatingPoint of_this_thread();
  void set() const;
  // Some exception raises a signal.
  bool traps() const;
  bool operator==(const FloatingPoint&) const = default;

 private:
#if defined(__x86_64__)
  std::uint32_t vectors_ = 0;  // MXCSR without its flags
  std::uint16_t x87_ = 0;      // the control word, for long double
#elif defined(__aarch64__)
  std::uint64_t control_ = 0;  // FPCR
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
// Flags of before would trap where their exceptions do now.
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
// Whether exceptions raise signals is not known on this processor.
inline bool FloatingPoint::traps() const {
  return true;
}
#endif

// Makes the calling thread compute in the given mode while it lives.
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
