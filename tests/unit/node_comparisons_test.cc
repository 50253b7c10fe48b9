// Comparisons in a node's memory, in every order in which a few ranks can access it, one access
// after the other. All ranks must get the same answer at the same look; it must be the right one;
// and no rank may wait for another.
#include "shm/node_comparisons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weft {
namespace {

enum class Fault : std::uint8_t {
  none,
  decides_alone,   // a rank does not check whether the others have published
  one_place,       // the place of one comparison is used for the next one, too
  keeps_numbers,   // the place is not made ready for the next comparison
  is_not_at_once,  // several ranks may find that they are the first to look
  waits,           // a look lasts until all have published
};

// An operation in which each access is a step. It is repeated from its beginning up to the next
// step, with the answers that it got before.
struct Steps {
  std::vector<std::int64_t>& memory;
  std::vector<std::int64_t>& answers;
  Fault fault;
  std::size_t next = 0;
  bool may_resume = true;
};
struct HeldUp {};

class SteppedWords {
 public:
  static inline Steps* steps = nullptr;  // those of the rank that resumes

  std::int64_t get(std::size_t word) const;
  void set(std::size_t word, std::int64_t value) const;
  std::int64_t add_one(std::size_t word) const {
    return step([&] { return at(word)++; });
  }
  void change(std::size_t word, std::int64_t expected, std::int64_t value) const;

 private:
  static bool has(Fault fault) { return steps->fault == fault; }
  std::int64_t& at(std::size_t word) const;

  template <class Access>
  std::int64_t step(Access access) const {
    if (steps->next == steps->answers.size()) {
      if (!std::exchange(steps->may_resume, false)) throw HeldUp{};
      steps->answers.push_back(access());
    }
    return steps->answers[steps->next++];
  }
};

constexpr std::size_t kNumbers = 2;
using Comparisons = NodeComparisons<kNumbers, SteppedWords>;

// Returns the word's position in its place; there are two places.
std::size_t in_place(std::size_t word) {
  return word % Comparisons::kWordsOfPlace;
}

std::int64_t& SteppedWords::at(std::size_t word) const {
  return steps->memory[has(Fault::one_place) ? in_place(word) : word];
}

std::int64_t SteppedWords::get(std::size_t word) const {
  const auto read = [&] { return step([&] { return at(word); }); };
  std::int64_t seen = read();
  if (in_place(word) != Comparisons::kComplete) return seen;
  while (has(Fault::waits) && seen == 0) seen = read();
  return has(Fault::decides_alone) ? 1 : seen;
}

void SteppedWords::set(std::size_t word, std::int64_t value) const {
  const bool is_number = in_place(word) >= Comparisons::kFirstNumber;
  step([&] { return is_number && has(Fault::keeps_numbers) ? 0 : at(word) = value; });
}

void SteppedWords::change(std::size_t word, std::int64_t expected, std::int64_t value) const {
  if (has(Fault::is_not_at_once)) {
    if (get(word) == expected) set(word, value);
    return;
  }
  step([&] { return at(word) == expected ? at(word) = value : 0; });
}

// Returns what a rank publishes: less each time, so that a number left over would be noticed.
Comparisons::Numbers told_by(int rank, int comparison) {
  return {100 - 10 * comparison + (rank + comparison) % 3, rank == comparison % 2 ? 7 : 0};
}

// Ranks that make one comparison after the other, each with at most kMostLooks looks.
class World {
 public:
  static constexpr int kMostLooks = 2;

  World(int ranks, int comparisons, Fault fault)
      : ranks_(static_cast<std::size_t>(ranks), Rank(ranks)),
        memory_(Comparisons::kWords),
        comparisons_(comparisons),
        fault_(fault) {}

  std::size_t ranks() const { return ranks_.size(); }
  bool is_over(std::size_t rank) const { return ranks_[rank].is_over; }
  const std::string& wrong() const { return wrong_; }

  // Lets a rank make one access to memory, and all that follows without another access.
  void resume(std::size_t number) {
    Rank& rank = ranks_[number];
    // The accesses that raise each number past those of all ranks, and make a place ready.
    const std::size_t most = 2 * kNumbers * (ranks() + 1) + Comparisons::kWordsOfPlace + 2;
    if (rank.answers.size() > most) wrong_ = "a rank waits";
    Steps steps{memory_, rank.answers, fault_};
    SteppedWords::steps = &steps;
    const Comparisons before = rank.known;
    try {
      if (rank.tells)
        rank.known.publish(told_by(static_cast<int>(number), rank.comparison));
      else
        looked(rank, rank.known.look());
    } catch (const HeldUp&) {
      rank.known = before;
      return;
    }
    rank.answers.clear();
    rank.tells = !rank.tells && rank.looks == 0;
  }

  std::string key() const {
    std::string key;
    const auto add = [&](const std::vector<std::int64_t>& values) {
      for (const std::int64_t value : values) key += static_cast<char>(value);
    };
    add(memory_);
    for (const Rank& rank : ranks_) {
      add({rank.comparison, rank.looks, rank.tells ? 1 : 0, rank.is_over ? 1 : 0, 127});
      add(rank.answers);
    }
    for (const auto& [look, answer] : answers_) key += answer ? '+' : '-';
    return key;
  }

 private:
  using Answer = std::optional<Comparisons::Numbers>;

  struct Rank {
    explicit Rank(int ranks) : known({}, ranks) {}

    Comparisons known;
    int comparison = 0, looks = 0;
    bool tells = true, is_over = false;
    // Results of the accesses that the operation under way has made.
    std::vector<std::int64_t> answers;
  };

  void looked(Rank& rank, const Answer& answer) {
    const auto look = std::pair(rank.comparison, rank.looks++);
    if (answers_.emplace(look, answer).first->second != answer)
      wrong_ = "ranks get different answers";
    if (!answer) {
      rank.is_over = rank.looks == kMostLooks;
      return;
    }
    if (*answer != greatest(rank.comparison)) wrong_ = "not the greatest of what was told";
    rank.looks = 0;
    rank.is_over = ++rank.comparison == comparisons_;
  }

  Comparisons::Numbers greatest(int comparison) const {
    Comparisons::Numbers all{};
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      for (std::size_t i = 0; i < kNumbers; ++i)
        all[i] = std::max(all[i], told_by(static_cast<int>(rank), comparison)[i]);
    return all;
  }

  std::vector<Rank> ranks_;
  std::vector<std::int64_t> memory_;
  int comparisons_;
  Fault fault_;
  std::map<std::pair<int, int>, Answer> answers_;  // by comparison and number of the look
  std::string wrong_;
};

// Tries all orders of accesses and visits each state once.
class Search {
 public:
  std::string run(const World& world) {
    look(world);
    return wrong_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  void look(const World& world) {
    if (!world.wrong().empty()) wrong_ = world.wrong();
    if (!wrong_.empty() || !seen_.insert(world.key()).second) return;
    for (std::size_t rank = 0; rank < world.ranks(); ++rank) {
      if (world.is_over(rank)) continue;
      World next = world;
      next.resume(rank);
      look(next);
    }
  }

  std::unordered_set<std::string> seen_;
  std::string wrong_;
};

TEST(NodeComparisons, AllRanksGetTheSameAnswersInAllOrders) {
  for (const auto& [ranks, comparisons] : {std::pair(2, 5), std::pair(3, 2)}) {
    Search search;
    EXPECT_EQ(search.run(World(ranks, comparisons, Fault::none)), "");
    EXPECT_GT(search.states(), 10'000u);
  }
}

std::string found(Fault fault) {
  return Search().run(World(2, 4, fault));
}

TEST(NodeComparisons, TheSearchFindsARankThatDecidesAlone) {
  EXPECT_EQ(found(Fault::decides_alone), "not the greatest of what was told");
}

TEST(NodeComparisons, TheSearchFindsAPlaceThatIsUsedAgainTooEarly) {
  EXPECT_NE(found(Fault::one_place), "");
}

TEST(NodeComparisons, TheSearchFindsAPlaceThatIsNotReady) {
  EXPECT_EQ(found(Fault::keeps_numbers), "not the greatest of what was told");
}

TEST(NodeComparisons, TheSearchFindsTwoFirstLooks) {
  EXPECT_EQ(found(Fault::is_not_at_once), "ranks get different answers");
}

TEST(NodeComparisons, TheSearchFindsARankThatWaits) {
  EXPECT_EQ(found(Fault::waits), "a rank waits");
}

}  // namespace
}  // namespace weft
