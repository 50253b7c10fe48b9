#include "advise/touches.h"

#include "advise/callers.h"
#include "advise/guard.h"
#include "advise/recorder.h"

namespace weft::advise {

void note_touches(Site& site) {
  for (Windows* const side : {&site.after, &site.before}) {
    for (Touch& touch : side->touches) {
      const Touch now = touch_now(touch);
      if (!now.address || now.module) continue;
      const Place place = toucher(now.address, now.returns_to);
      const char* const file = place.file[0] ? place.file : recorder.record().header.program;
      have_place(touch, now.address, place.offset, 1 + recorder.module_of(file));
    }
  }
}

}  // namespace weft::advise
