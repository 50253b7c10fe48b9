// Decides which site has the turn, and when it loses it.
#include "select/trial_turn.h"

#include "select/learner.h"

namespace weft {
namespace {

constexpr int kMostCallsOfOthers = 64;
constexpr int kShortForOne = 64;  // calls of a very short site

}  // namespace

void TrialTurn::call_of(const Learner& site) {
  if (has(site)) {
    calls_of_others_ = 0;
    return;
  }
  calls_of_others_ += site.is_very_short() ? 1 : kShortForOne;
  if (calls_of_others_ > kMostCallsOfOthers * kShortForOne) holder_ = 0;
}

bool TrialTurn::take(const Learner& site) {
  if (holder_ != 0 && !has(site)) return false;
  holder_ = site.number();
  calls_of_others_ = 0;
  return true;
}

bool TrialTurn::has(const Learner& site) const {
  return holder_ == site.number();
}

void TrialTurn::give_back(const Learner& site) {
  if (has(site)) holder_ = 0;
}

}  // namespace weft
