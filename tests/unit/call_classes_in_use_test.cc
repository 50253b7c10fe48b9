// Which call classes of a communicator are kept if there is not room for all.
#include "select/call_classes_in_use.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace weft {
namespace {

struct CallClass {
  int key;
  CallsMade made{};
};

class Program {
 public:
  // Makes a call of the class with this key, or of a class without room. Returns whether call
  // classes have been forgotten.
  bool call(int key) {
    CallClass* call_class = call_classes.find_or_make(key, [&] {
      ++made;
      return std::make_unique<CallClass>(CallClass{key});
    });
    if (!call_class) ++without_room;
    return call_classes.count_call(call_class ? call_class->made : others_);
  }
  bool call(int key, int times) {
    bool forgotten = false;
    for (int i = 0; i < times; ++i) forgotten |= call(key);
    return forgotten;
  }
  std::set<int> kept() {
    std::set<int> keys;
    call_classes.free_forgotten([](const CallClass&) { return true; });
    call_classes.for_each([&](const CallClass& call_class) { keys.insert(call_class.key); });
    return keys;
  }

  int made = 0, without_room = 0;
  CallClassesInUse<CallClass> call_classes{
      {.most = 4, .calls_between_looks = 100, .most_forgotten = 2}};

 private:
  CallsMade others_;
};

TEST(CallClassesInUse, AllAreKeptWhereThereIsRoom) {
  Program program;
  for (int key : {1, 2, 3, 4}) program.call(key);
  EXPECT_FALSE(program.call(1, 1000));
  EXPECT_EQ(program.kept(), (std::set{1, 2, 3, 4}));
}

TEST(CallClassesInUse, WhatIsNoLongerCalledMakesRoom) {
  Program program;
  for (int key : {1, 2, 3, 4}) program.call(key, 10 * key);
  EXPECT_TRUE(program.call(5, 200));
  EXPECT_EQ(program.kept(), (std::set{3, 4, 5}));  // the least used have been forgotten
  program.call(6);
  EXPECT_EQ(program.kept(), (std::set{3, 4, 5, 6}));
}

TEST(CallClassesInUse, NoneIsForgottenWhereThereIsRoomForAll) {
  Program program;
  program.call_classes.have_room_for_all();
  for (int call = 0; call < 10'000; ++call) EXPECT_FALSE(program.call(call / 100));
  EXPECT_EQ(program.made, 100);
  EXPECT_EQ(program.without_room, 0);
}

// Classes that are called in turns are not forgotten and made again and again.
TEST(CallClassesInUse, WhatIsCalledInTurnsStays) {
  Program program;
  for (int call = 0; call < 10'000; ++call) EXPECT_FALSE(program.call(call % 6));
  EXPECT_EQ(program.kept(), (std::set{0, 1, 2, 3}));
  EXPECT_EQ(program.made, 4);
}

TEST(CallClassesInUse, PhasesWithOtherSitesEachGetTheirRoom) {
  Program program;
  for (int phase = 0; phase < 5; ++phase) {
    for (int call = 0; call < 600; ++call) program.call(10 * phase + call % 3);
    for (int key = 0; key < 3; ++key) EXPECT_EQ(program.kept().count(10 * phase + key), 1u);
  }
  EXPECT_LT(program.without_room, 5 * 300);
}

// A forgotten class is freed only when none of its calls is under way.
TEST(CallClassesInUse, WhatIsForgottenIsThereAsLongAsItIsNeeded) {
  Program program;
  for (int key : {1, 2, 3, 4}) program.call(key);
  EXPECT_TRUE(program.call(5, 300));
  std::set<int> gone;
  program.call_classes.free_forgotten([&](const CallClass& call_class) {
    gone.insert(call_class.key);
    return call_class.key == 1;
  });
  EXPECT_EQ(gone, (std::set{1, 2}));
  std::set<int> there;
  program.call_classes.for_each([&](const CallClass& call_class) { there.insert(call_class.key); });
  EXPECT_EQ(there, (std::set{2, 3, 4, 5}));
}

}  // namespace
}  // namespace weft
