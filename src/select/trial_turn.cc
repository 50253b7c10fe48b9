// Implements TrialTurn: decides which call class of a communicator may try variants, and when it
// loses that right.
#include "select/trial_turn.h"

#include "select/learner.h"

namespace weft {
namespace {

constexpr int kMostCallsOfOthers = 64;
// Number of very short calls that count as much as one longer call.
constexpr int kShortForOne = 64;

}  // namespace

void TrialTurn::call_of(const Learner& call_class) {
  if (has(call_class)) {
    calls_of_others_ = 0;
    return;
  }
  calls_of_others_ += call_class.is_very_short() ? 1 : kShortForOne;
  if (calls_of_others_ > kMostCallsOfOthers * kShortForOne) holder_ = 0;
}

bool TrialTurn::take(const Learner& call_class) {
  if (holder_ != 0 && !has(call_class)) return false;
  holder_ = call_class.number();
  calls_of_others_ = 0;
  return true;
}

bool TrialTurn::has(const Learner& call_class) const {
  return holder_ == call_class.number();
}

void TrialTurn::give_back(const Learner& call_class) {
  if (has(call_class)) holder_ = 0;
}

}  // namespace weft
