// OutsideCapture: while this object lives, the calling thread may make calls that an ongoing stream
// capture forbids.
#pragma once

namespace weft {

class OutsideCapture {
 public:
  using Exchange = int(int* mode);

  // exchange: the driver's function that exchanges the thread's capture mode; nullptr if it has
  // none.
  explicit OutsideCapture(Exchange* exchange) : exchange_(exchange) {
    if (exchange_) exchange_(&mode_);
  }
  ~OutsideCapture() {
    if (exchange_) exchange_(&mode_);
  }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  static constexpr int kRelaxed = 2;  // the value is that of cuda.h and hip_runtime_api.h

  Exchange* const exchange_;
  int mode_ = kRelaxed;
};

}  // namespace weft
