// Which sites of a communicator are kept where there are more than there is room for.
#include "select/sites_in_use.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace weft {
namespace {

struct Site {
  int key;
  CallsMade made{};
};

class Program {
 public:
  // Of the site with this key, or of one for which there is no room. True: sites have been
  // forgotten.
  bool call(int key) {
    Site* site = sites.find_or_make(key, [&] {
      ++made;
      return std::make_unique<Site>(Site{key});
    });
    if (!site) ++without_room;
    return sites.count_call(site ? site->made : others_);
  }
  bool call(int key, int times) {
    bool forgotten = false;
    for (int i = 0; i < times; ++i) forgotten |= call(key);
    return forgotten;
  }
  std::set<int> kept() {
    std::set<int> keys;
    sites.let_go_forgotten([](const Site&) { return true; });
    sites.for_each([&](const Site& site) { keys.insert(site.key); });
    return keys;
  }

  int made = 0, without_room = 0;
  SitesInUse<Site> sites{{.most = 4, .calls_between_looks = 100, .most_forgotten = 2}};

 private:
  CallsMade others_;
};

TEST(SitesInUse, AllAreKeptWhereThereIsRoom) {
  Program program;
  for (int key : {1, 2, 3, 4}) program.call(key);
  EXPECT_FALSE(program.call(1, 1000));
  EXPECT_EQ(program.kept(), (std::set{1, 2, 3, 4}));
}

TEST(SitesInUse, WhatIsNoLongerCalledMakesRoom) {
  Program program;
  for (int key : {1, 2, 3, 4}) program.call(key, 10 * key);
  EXPECT_TRUE(program.call(5, 200));
  EXPECT_EQ(program.kept(), (std::set{3, 4, 5}));  // the least used have gone
  program.call(6);
  EXPECT_EQ(program.kept(), (std::set{3, 4, 5, 6}));
}

TEST(SitesInUse, NoneIsForgottenWhereThereIsRoomForAll) {
  Program program;
  program.sites.have_room_for_all();
  for (int call = 0; call < 10'000; ++call) EXPECT_FALSE(program.call(call / 100));
  EXPECT_EQ(program.made, 100);
  EXPECT_EQ(program.without_room, 0);
}

// What is called now and then stays, and nothing is forgotten again and again.
TEST(SitesInUse, WhatIsCalledInTurnsStays) {
  Program program;
  for (int call = 0; call < 10'000; ++call) EXPECT_FALSE(program.call(call % 6));
  EXPECT_EQ(program.kept(), (std::set{0, 1, 2, 3}));
  EXPECT_EQ(program.made, 4);
}

TEST(SitesInUse, PhasesWithOtherSitesEachGetTheirRoom) {
  Program program;
  for (int phase = 0; phase < 5; ++phase) {
    for (int call = 0; call < 600; ++call) program.call(10 * phase + call % 3);
    for (int key = 0; key < 3; ++key) EXPECT_EQ(program.kept().count(10 * phase + key), 1u);
  }
  EXPECT_LT(program.without_room, 5 * 300);
}

// Calls that were made before may still be under way.
TEST(SitesInUse, WhatIsForgottenIsThereAsLongAsItIsNeeded) {
  Program program;
  for (int key : {1, 2, 3, 4}) program.call(key);
  EXPECT_TRUE(program.call(5, 300));
  std::set<int> gone;
  program.sites.let_go_forgotten([&](const Site& site) {
    gone.insert(site.key);
    return site.key == 1;
  });
  EXPECT_EQ(gone, (std::set{1, 2}));
  std::set<int> there;
  program.sites.for_each([&](const Site& site) { there.insert(site.key); });
  EXPECT_EQ(there, (std::set{2, 3, 4, 5}));
}

}  // namespace
}  // namespace weft
